# What a person asks for.
rule figures:
    input:
        gallery("figures"),
        "results/claims.md",


for paper in sorted({name.partition("/")[0] for name in FIGURES}):

    rule:
        name:
            f"figures_{paper}"
        input:
            gallery("figures", paper),


rule metrics:
    input:
        cell_files("results", "metrics"),
        "results/metrics.csv",


rule claims:
    input:
        "results/claims.md",
        "results/claims.csv",
        "results/findings.md",
        "results/claims.accepted",


rule blind:
    input:
        "results/blind.json",


# Everything at a fraction of its size; what the numbers say is not judged.
rule smoke:
    input:
        gallery("results/smoke/figures"),
        "results/smoke/metrics.csv",


# No output and no benchmark file, which would count as one: it runs whenever it is asked for.
rule verify:
    input:
        files=cell_files("results", "trajectory", "theory", "metrics"),
    log:
        "results/logs/verify.log",
    conda:
        "../../environment.yml"
    params:
        spec={
            f"results/{name}/{kind}.nc": part.sha256()
            for name, cell in PLANS["results"].cells.items()
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
    print(f"figures: {os.path.abspath('figures')}")
    if os.path.exists("results/claims.md"):
        print(f"claims:  {os.path.abspath('results/claims.md')}")


onerror:
    print("A job failed; its message stands above and in its log under results/logs/.")
