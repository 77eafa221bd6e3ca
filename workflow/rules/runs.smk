# Cells share jobs: one process trains, solves and measures many, and compiles once what is alike.
# A job makes what is outdated of its cells, told by the seals of the files, and nothing else; a
# file that is up to date has no rule, and is an input like any other. The longest go first.
for group in JOBS:
    work = {cell: OUTDATED[cell] for cell in group.cells if cell in OUTDATED}

    rule:
        name:
            f"cells_{group.name}"
        input:
            parts=[f"{RESULTS}/{c}/parts/{part}.nc" for c in work for part in parts_of(work[c])],
            outdated=OVERDUE,
        output:
            [f"{RESULTS}/{c}/{kind}.nc" for c, w in work.items() for kind in w.keys],
        log:
            f"{RESULTS}/logs/{group.name}.log",
        priority: int(group.seconds)
        conda:
            "../../environment.yml"
        threads: group.threads
        resources:
            gpu=int(group.place == "gpu"),
            mem_mb=grown(group.asked_mb, ROOM),
            runtime=grown(group.minutes),
            disk_mb=group.disk_mb,
        params:
            work=json.dumps(
                {
                    cell: {
                        "cell": w.cell.canonical(),
                        "keys": dict(w.keys),
                        "parts": parts_of(w),
                    }
                    for cell, w in work.items()
                }
            ),
        script:
            "../scripts/make.py"


rule train_part:
    output:
        f"{RESULTS}/{{folder}}/{{part}}.nc",
    log:
        f"{RESULTS}/logs/{{folder}}/{{part}}.log",
    conda:
        "../../environment.yml"
    threads: lambda w: part_of(cell_of(w)).threads
    resources:
        gpu=lambda w: int(part_of(cell_of(w)).place == "gpu"),
        mem_mb=grown(lambda w: part_of(cell_of(w)).asked_mb, ROOM),
        runtime=grown(lambda w: part_of(cell_of(w)).minutes),
        disk_mb=lambda w: part_of(cell_of(w)).disk_mb,
    params:
        cell=cell_of,
        key=lambda w: wanted(cell_of(w))["trajectory"],
        spec=lambda w: PLAN.cells[cell_of(w)].only(Ensemble).canonical(),
    script:
        "../scripts/train_part.py"


# On a cluster too, what takes seconds runs where Snakemake does: to wait in a queue costs more.
rule tabulate:
    input:
        metrics=result_files(cell_files("metrics")),
        again=lambda w: again(tabulated()),
    output:
        update(f"{RESULTS}/metrics.csv"),
    log:
        f"{RESULTS}/logs/tabulate.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        product=lambda w: tabulated().canonical(),
        cells=list(PLAN.cells),
    script:
        "../scripts/tabulate.py"
