# A cell is one point of a sweep (dataset, network, initialisation, training), with all its init
# scales and seeds. `spec` is its specification, `code` a checksum of the modules that compute it; a
# change of either runs the rule again. update() keeps the former file when a job fails.
# Priorities: solve, measure and draw before any training, as Snakemake is slow while many jobs
# wait; among trainings the longest first.
rule train:
    output:
        update("<results>/{cell}/trajectory.nc"),
    log:
        "<results>/logs/{cell}/train.log",
    priority: lambda w: min(study.seconds(w.cell), 9_999)
    group:
        submission_group
    threads: lambda w: 1 + int(study.seconds(w.cell) / 600)
    resources:
        gpu=lambda w: int(study.cost(w.cell).device == "gpu"),
        mem_mb=lambda w, attempt: study.memory(w.cell, attempt),
        runtime=lambda w, attempt: study.minutes(study.seconds(w.cell), attempt),
        disk_mb=lambda w: study.cost(w.cell).disk_mb,
    params:
        spec=lambda w: study.spec(w.cell, "trajectory"),
        code=lambda w: study.code(w.cell, "trajectory"),
    run:
        often = study.plan.checkpoint_seconds
        run_in_worker(
            "train", wildcards.cell, input, output, params, log, threads, resources, often=often
        )


rule solve:
    output:
        update("<results>/{cell}/theory.nc"),
    log:
        "<results>/logs/{cell}/solve.log",
    priority: 10_000
    group:
        submission_group
    resources:
        mem_mb=lambda w, attempt: study.memory(w.cell, attempt),
        runtime=lambda w, attempt: study.minutes(study.cost(w.cell).solve, attempt),
    params:
        spec=lambda w: study.spec(w.cell, "theory"),
        code=lambda w: study.code(w.cell, "theory"),
    run:
        run_in_worker("solve", wildcards.cell, input, output, params, log)


rule measure:
    input:
        "<results>/{cell}/trajectory.nc",
        lambda w: study.theory_files(w.cell),  # none for a cell without solutions
    output:
        update("<results>/{cell}/metrics.nc"),
    log:
        "<results>/logs/{cell}/measure.log",
    priority: 20_000
    group:
        submission_group
    resources:
        mem_mb=lambda w, attempt: study.memory(w.cell, attempt),
        runtime=lambda w, attempt: study.minutes(study.cost(w.cell).measure, attempt),
    params:
        spec=lambda w: study.spec(w.cell, "metrics"),
        code=lambda w: study.code(w.cell, "metrics"),
    run:
        run_in_worker("measure", wildcards.cell, input, output, params, log)


# All metrics as one table. Rules that take a second are local on a cluster too, as waiting in the
# queue would take longer.
rule tabulate:
    input:
        study.metrics_files,
    output:
        update("<results>/metrics.csv"),
    log:
        "<results>/logs/tabulate.log",
    localrule: True
    params:
        **study.table_params("tabulate"),
    run:
        run_in_worker("tabulate", "metrics.csv", input, output, params, log)
