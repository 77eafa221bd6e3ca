#!/bin/sh
# properties = {properties}
# Snakemake fills in the words in single braces. PBS, Grid Engine and LSF tell a job its number.
id=${{PBS_JOBID:-${{JOB_ID:-$LSB_JOBID}}}}
# at a signal, the shell waits for the run, which writes a checkpoint
trap : TERM INT HUP
# run in the folder of the repository, where the job goes first
trap 'code=$?; mkdir -p .snakemake/jobs; echo $code > ".snakemake/jobs/${{id%%.*}}"' EXIT
{exec_job}
