# One job trains a cell, one solves its theory, one measures both.
rule train:
    input:
        code=stage("train"),
    output:
        "{root}/{cell}/trajectory.nc",
    wildcard_constraints:
        cell=split_cells(False),
    params:
        spec=lambda w: cell_of(w).only(Run).canonical(),
    log:
        "{root}/logs/{cell}/train.log",
    benchmark:
        "{root}/benchmarks/{cell}/train.tsv"
    resources:
        gpu=1,
        mem_mb=2000,
        runtime=60,
    conda:
        "../../environment.yml"
    script:
        "../scripts/train.py"


rule train_part:
    input:
        code=stage("train"),
    output:
        "{root}/{cell}/parts/{part}.nc",
    params:
        spec=lambda w: cell_of(w).only(Run).canonical(),
    log:
        "{root}/logs/{cell}/train_{part}.log",
    benchmark:
        "{root}/benchmarks/{cell}/train_{part}.tsv"
    resources:
        gpu=1,
        mem_mb=2000,
        runtime=60,
    conda:
        "../../environment.yml"
    script:
        "../scripts/train.py"


rule gather:
    input:
        parts=lambda w: [
            f"{w.root}/{w.cell}/parts/{part}.nc" for part in PLANS[w.root].parts(w.cell)
        ],
        code=stage("train"),
    output:
        "{root}/{cell}/trajectory.nc",
    wildcard_constraints:
        cell=split_cells(True),
    params:
        spec=lambda w: cell_of(w).only(Run).canonical(),
    log:
        "{root}/logs/{cell}/gather.log",
    benchmark:
        "{root}/benchmarks/{cell}/gather.tsv"
    conda:
        "../../environment.yml"
    script:
        "../scripts/gather.py"


rule solve:
    input:
        code=stage("solve"),
    output:
        "{root}/{cell}/theory.nc",
    params:
        spec=lambda w: cell_of(w).only(SolvedRun).canonical(),
    log:
        "{root}/logs/{cell}/solve.log",
    benchmark:
        "{root}/benchmarks/{cell}/solve.tsv"
    resources:
        mem_mb=2000,
        runtime=60,
    conda:
        "../../environment.yml"
    script:
        "../scripts/solve.py"


rule measure:
    input:
        trajectory="{root}/{cell}/trajectory.nc",
        theory=lambda w: f"{w.root}/{w.cell}/theory.nc" if cell_of(w).solutions else [],
        code=stage("measure"),
    output:
        "{root}/{cell}/metrics.nc",
    params:
        spec=lambda w: cell_of(w).canonical(),
    log:
        "{root}/logs/{cell}/measure.log",
    benchmark:
        "{root}/benchmarks/{cell}/measure.tsv"
    resources:
        mem_mb=2000,
        runtime=30,
    conda:
        "../../environment.yml"
    script:
        "../scripts/measure.py"


rule tabulate:
    input:
        metrics=lambda w: cell_files(w.root, ["metrics"]),
        code=stage("measure"),
    output:
        "{root}/metrics.csv",
    log:
        "{root}/logs/tabulate.log",
    benchmark:
        "{root}/benchmarks/tabulate.tsv"
    conda:
        "../../environment.yml"
    script:
        "../scripts/tabulate.py"
