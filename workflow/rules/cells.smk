# The files of a cell. update(): the last good file stays until there is another one.
# Long trainings go first, and what is begun is finished before more is begun.
rule train:
    output:
        update("<results>/{cell}/trajectory.nc"),
    log:
        "<results>/logs/{cell}/train.log",
    priority: lambda w: study.seconds(w.cell)
    group:
        submission
    threads: lambda w: 1 + int(study.seconds(w.cell) / 600)
    resources:
        gpu=lambda w: int(study.cost(w.cell).place == "gpu"),
        mem_mb=lambda w, attempt: study.memory(w.cell, attempt),
        runtime=lambda w, attempt: study.minutes(study.seconds(w.cell), attempt),
        disk_mb=lambda w: study.cost(w.cell).disk_mb,
    params:
        spec=lambda w: study.spec(w.cell, "trajectory"),
        code=lambda w: study.code(w.cell, "trajectory"),
    run:
        often = study.plan.checkpoint_seconds
        work(
            "train", wildcards.cell, input, output, params, log, threads, resources, often=often
        )


rule solve:
    output:
        update("<results>/{cell}/theory.nc"),
    log:
        "<results>/logs/{cell}/solve.log",
    priority: 10_000
    group:
        submission
    resources:
        mem_mb=lambda w, attempt: study.memory(w.cell, attempt),
        runtime=lambda w, attempt: study.minutes(study.cost(w.cell).solve, attempt),
    params:
        spec=lambda w: study.spec(w.cell, "theory"),
        code=lambda w: study.code(w.cell, "theory"),
    run:
        work("solve", wildcards.cell, input, output, params, log)


rule measure:
    input:
        "<results>/{cell}/trajectory.nc",
        lambda w: study.theory(w.cell),
    output:
        update("<results>/{cell}/metrics.nc"),
    log:
        "<results>/logs/{cell}/measure.log",
    priority: 20_000
    group:
        submission
    resources:
        mem_mb=lambda w, attempt: study.memory(w.cell, attempt),
        runtime=lambda w, attempt: study.minutes(study.cost(w.cell).measure, attempt),
    params:
        spec=lambda w: study.spec(w.cell, "metrics"),
        code=lambda w: study.code(w.cell, "metrics"),
    run:
        work("measure", wildcards.cell, input, output, params, log)


# What takes a second runs where Snakemake does, on a cluster too: to wait in a queue costs more.
rule tabulate:
    input:
        study.metrics,
    output:
        update("<results>/metrics.csv"),
    log:
        "<results>/logs/tabulate.log",
    localrule: True
    params:
        **study.judgement("tabulate"),
    run:
        work("tabulate", "metrics.csv", input, output, params, log)
