# The files of a cell. The last good file stays until there is another one: update().
# Jobs of the longest cells go first, and what is begun is finished before more is begun.
rule train:
    output:
        update("<results>/{cell}/trajectory.nc"),
    log:
        "<results>/logs/{cell}/train.log",
    params:
        spec=spec_of("trajectory"),
        code=code_of("trajectory"),
    group:
        submission
    priority: seconds("compile", "train")
    threads: lambda w: 1 + int(cost(w.cell).train / 600)
    resources:
        gpu=lambda w: int(cost(w.cell).place == "gpu"),
        mem_mb=memory,
        runtime=minutes(seconds("compile", "train")),
        disk_mb=lambda w: cost(w.cell).disk_mb,
    run:
        work(
            "train",
            wildcards.cell,
            log,
            threads,
            resources.gpu,
            cell=wildcards.cell,
            spec=params.spec,
            code=params.code,
            path=output[0],
            checkpoint=f"{RESULTS}/checkpoints/{wildcards.cell}.npz",
            seconds=PLAN.checkpoint_seconds,
        )


rule solve:
    output:
        update("<results>/{cell}/theory.nc"),
    log:
        "<results>/logs/{cell}/solve.log",
    params:
        spec=spec_of("theory"),
        code=code_of("theory"),
    group:
        submission
    priority: seconds("compile", "train")
    resources:
        mem_mb=memory,
        runtime=minutes(seconds("solve")),
    run:
        work(
            "solve",
            wildcards.cell,
            log,
            cell=wildcards.cell,
            spec=params.spec,
            code=params.code,
            path=output[0],
        )


rule measure:
    input:
        trajectory="<results>/{cell}/trajectory.nc",
        theory=lambda w: f"{RESULTS}/{w.cell}/theory.nc" if PLAN.cells[w.cell].solutions else [],
    output:
        update("<results>/{cell}/metrics.nc"),
    log:
        "<results>/logs/{cell}/measure.log",
    params:
        spec=spec_of("metrics"),
        code=code_of("metrics"),
    group:
        submission
    priority: 10_000
    resources:
        mem_mb=memory,
        runtime=minutes(seconds("measure")),
    run:
        work(
            "measure",
            wildcards.cell,
            log,
            cell=wildcards.cell,
            spec=params.spec,
            code=params.code,
            path=output[0],
            inputs=list(input),
        )


# What takes a second runs where Snakemake does, on a cluster too: to wait in a queue costs more.
rule tabulate:
    input:
        result_files(all_metrics()),
    output:
        update("<results>/metrics.csv"),
    log:
        "<results>/logs/tabulate.log",
    params:
        code=code_sha256("tabulate"),
        cells=digests_of(PLAN.cells),
    localrule: True
    run:
        work(
            "tabulate",
            "metrics.csv",
            log,
            code=params.code,
            cells=params.cells,
            root=RESULTS,
            inputs=list(input),
            path=output[0],
        )
