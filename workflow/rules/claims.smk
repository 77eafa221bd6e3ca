# Claims and findings are judged from metrics alone; the tables are written whatever they say.
rule judge:
    input:
        metrics=claimed_metrics,
        claims=CLAIMS,
    output:
        report("results/claims.md", caption="../report/claims.rst", category="claims"),
        "results/claims.json",
        report("results/claims.csv", caption="../report/claims.rst", category="claims"),
        report("results/findings.md", caption="../report/claims.rst", category="claims"),
        "results/findings.json",
        "results/findings.csv",
    log:
        "results/logs/judge.log",
    benchmark:
        "results/benchmarks/judge.tsv"
    conda:
        "../../environment.yml"
    params:
        code=code_sha256("judge"),
        cells=list(PLANS["results"].cells),
    script:
        "../scripts/judge.py"


# An unexpected failure, or a known discrepancy that no longer is one, stops here.
rule accept_claims:
    input:
        claims="results/claims.json",
        findings="results/findings.json",
    output:
        touch("results/claims.accepted"),
    log:
        "results/logs/accept_claims.log",
    benchmark:
        "results/benchmarks/accept_claims.tsv"
    conda:
        "../../environment.yml"
    script:
        "../scripts/accept_claims.py"
