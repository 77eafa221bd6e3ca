# Cells share jobs: one process trains, solves and measures many, and compiles once what is alike.
# A job makes what is outdated of its cells, told by the seals of the files, and nothing else; a
# file that is up to date has no rule, and is an input like any other. The longest go first.
for root, todo in OUTDATED.items():
    for group in groups(PLANS[root]) if todo else ():
        work = {cell: todo[cell] for cell in group.cells if cell in todo}
        if not work:
            continue

        rule:
            name:
                f"{'smoke' if root.endswith('smoke') else 'cells'}_{group.name}"
            input:
                parts=[
                    f"{root}/{c}/parts/{part}.nc" for c in work for part in parts_of(root, work[c])
                ],
                # newer than what is there and outdated: that is made again
                outdated=OVERDUE[root] if any(exists(root, w) for w in work.values()) else [],
            output:
                [f"{root}/{c}/{kind}.nc" for c, w in work.items() for kind in w.keys],
            log:
                f"{root}/logs/{group.name}.log",
            benchmark:
                f"{root}/benchmarks/{group.name}.tsv"
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
                            "parts": parts_of(root, w),
                        }
                        for cell, w in work.items()
                    }
                ),
            script:
                "../scripts/make.py"


rule train_part:
    output:
        "{root}/{cell}/parts/{part}.nc",
    log:
        "{root}/logs/{cell}/{part}.log",
    benchmark:
        "{root}/benchmarks/{cell}/{part}.tsv"
    conda:
        "../../environment.yml"
    params:
        key=lambda w: keys(w.cell, PLANS[w.root].cells[w.cell])["trajectory"],
        spec=lambda w: PLANS[w.root].cells[w.cell].only(Ensemble).canonical(),
    script:
        "../scripts/train_part.py"


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
