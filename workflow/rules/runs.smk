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
            mem_mb=group.memory_mb,
            runtime=group.minutes,
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
        f"{RESULTS}/{{cell}}/parts/{{part}}.nc",
    log:
        f"{RESULTS}/logs/{{cell}}/{{part}}.log",
    conda:
        "../../environment.yml"
    params:
        key=lambda w: keys(w.cell, PLAN.cells[w.cell])["trajectory"],
        spec=lambda w: PLAN.cells[w.cell].only(Ensemble).canonical(),
    script:
        "../scripts/train_part.py"


rule tabulate:
    input:
        metrics=result_files(cell_files("metrics")),
        again=lambda w: again(tabulated()),
    output:
        update(f"{RESULTS}/metrics.csv"),
    log:
        f"{RESULTS}/logs/tabulate.log",
    conda:
        "../../environment.yml"
    params:
        product=lambda w: tabulated().canonical(),
        cells=list(PLAN.cells),
    script:
        "../scripts/tabulate.py"
