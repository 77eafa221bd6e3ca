# neuralrace: `snakemake --cores all figures` rebuilds every figure and the claims table.
include: "workflow/Snakefile"


rule all:
    default_target: True
    input:
        rules.figures.input,
        rules.claims.input,
        rules.metrics.input,
