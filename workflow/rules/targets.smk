# What a person asks for.
rule figures:
    input:
        gallery(),
        f"{RESULTS}/claims.md",


# Every figure, whatever the numbers say of claims.
rule gallery:
    input:
        gallery(),


for paper in sorted({name.partition("/")[0] for name in FIGURES}):

    rule:
        name:
            f"figures_{paper}"
        input:
            gallery(paper),


rule metrics:
    input:
        cell_files("metrics"),
        f"{RESULTS}/metrics.csv",


rule claims:
    input:
        f"{RESULTS}/claims.md",
        f"{RESULTS}/claims.csv",
        f"{RESULTS}/findings.md",
        f"{RESULTS}/claims.accepted",


rule blind:
    input:
        f"{RESULTS}/blind.json",


# No output: it runs whenever it is asked for.
rule verify:
    input:
        files=cell_files("trajectory", "theory", "metrics"),
    log:
        f"{RESULTS}/logs/verify.log",
    conda:
        "../../environment.yml"
    params:
        spec={
            f"{RESULTS}/{name}/{kind}.nc": part.sha256()
            for name, cell in PLAN.cells.items()
            for kind, part in (
                ("trajectory", cell.only(Ensemble)),
                ("theory", cell.only(SolvedEnsemble)),
                ("metrics", cell),
            )
        },
    script:
        "../scripts/verify.py"


onsuccess:
    write_own_cost()
    print(f"figures: {os.path.abspath(GALLERY)}")
    if os.path.exists(f"{RESULTS}/claims.md"):
        print(f"claims:  {os.path.abspath(RESULTS)}/claims.md")


onerror:
    print("A job failed; its message stands above and in its log, under " f"{RESULTS}/logs/.")
