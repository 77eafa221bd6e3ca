# One job trains a cell, one solves its theory, one measures both.
# Training comes first: its longest jobs must not be left for the end.
rule train:
    output:
        "{root}/{cell}/trajectory.nc",
    log:
        "{root}/logs/{cell}/train.log",
    benchmark:
        "{root}/benchmarks/{cell}/train.tsv"
    wildcard_constraints:
        cell=split_cells(False),
    conda:
        "../../environment.yml"
    resources:
        gpu=GPU,
        mem_mb=PLANS["results"].train_memory_mb,
        runtime=PLANS["results"].train_minutes,
    params:
        code=code_sha256("train"),
        spec=lambda w: cell_of(w).only(Run).canonical(),
    script:
        "../scripts/train.py"


rule train_part:
    output:
        "{root}/{cell}/parts/{part}.nc",
    log:
        "{root}/logs/{cell}/train_{part}.log",
    benchmark:
        "{root}/benchmarks/{cell}/train_{part}.tsv"
    conda:
        "../../environment.yml"
    resources:
        gpu=GPU,
        mem_mb=PLANS["results"].train_memory_mb,
        runtime=PLANS["results"].train_minutes,
    params:
        code=code_sha256("train"),
        spec=lambda w: cell_of(w).only(Run).canonical(),
    script:
        "../scripts/train.py"


rule gather:
    input:
        parts=lambda w: [
            f"{w.root}/{w.cell}/parts/{part}.nc" for part in PLANS[w.root].parts(w.cell)
        ],
    output:
        "{root}/{cell}/trajectory.nc",
    log:
        "{root}/logs/{cell}/gather.log",
    benchmark:
        "{root}/benchmarks/{cell}/gather.tsv"
    wildcard_constraints:
        cell=split_cells(True),
    conda:
        "../../environment.yml"
    params:
        code=code_sha256("train"),
        spec=lambda w: cell_of(w).only(Run).canonical(),
    script:
        "../scripts/gather.py"


rule solve:
    output:
        "{root}/{cell}/theory.nc",
    log:
        "{root}/logs/{cell}/solve.log",
    benchmark:
        "{root}/benchmarks/{cell}/solve.tsv"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=2000,
        runtime=60,
    params:
        code=code_sha256("solve"),
        spec=lambda w: cell_of(w).only(SolvedRun).canonical(),
    script:
        "../scripts/solve.py"


rule measure:
    input:
        trajectory="{root}/{cell}/trajectory.nc",
        theory=lambda w: f"{w.root}/{w.cell}/theory.nc" if cell_of(w).solutions else [],
    output:
        "{root}/{cell}/metrics.nc",
    log:
        "{root}/logs/{cell}/measure.log",
    benchmark:
        "{root}/benchmarks/{cell}/measure.tsv"
    conda:
        "../../environment.yml"
    resources:
        gpu=lambda w: GPU * any(METRICS[m].declaration.trains for m in cell_of(w).metrics),
        mem_mb=2000,
        runtime=60,
    params:
        code=lambda w: code_sha256("measure", *metric_modules(cell_of(w))),
        spec=lambda w: cell_of(w).canonical(),
    script:
        "../scripts/measure.py"


rule tabulate:
    input:
        metrics=lambda w: cell_files(w.root, "metrics"),
    output:
        "{root}/metrics.csv",
    log:
        "{root}/logs/tabulate.log",
    benchmark:
        "{root}/benchmarks/tabulate.tsv"
    conda:
        "../../environment.yml"
    params:
        code=code_sha256("measure"),
    script:
        "../scripts/tabulate.py"
