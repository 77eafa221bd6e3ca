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


# Metrics of what is planned, without the table of all.
rule cells:
    input:
        result_files(cell_files("metrics")),


rule metrics:
    input:
        rules.cells.input,
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


# No output: it runs whenever it is asked for. No input: who verifies wants nothing made.
rule verify:
    log:
        f"{RESULTS}/logs/verify.log",
    conda:
        "../../environment.yml"
    params:
        results=RESULTS,
        gallery=GALLERY,
        planned={f"{RESULTS}/{c}/{kind}.nc": k for c in PLAN.cells for kind, k in wanted(c).items()},
    script:
        "../scripts/verify.py"


onstart:
    if workflow.is_main_process:
        with refusing():
            prepare(Path(RESULTS), Path(GALLERY), map(Path, to_make()), ALONE)


onsuccess:
    finish(map(Path, to_make()))
    write_own_cost()
    print(f"figures: {os.path.abspath(GALLERY)}")
    if os.path.exists(f"{RESULTS}/claims.md"):
        print(f"claims:  {os.path.abspath(RESULTS)}/claims.md")


onerror:
    finish(map(Path, to_make()))
    print("A job failed; its message stands above and in its log, under " f"{RESULTS}/logs/.")
