#!/bin/sh
# properties = {properties}
# PBS_JOBID is what qsub printed; in Grid Engine it is JOB_ID, in LSF LSB_JOBID.
( {exec_job} )
code=$?
mkdir -p .snakemake/jobs && echo $code > ".snakemake/jobs/$PBS_JOBID"
exit $code
