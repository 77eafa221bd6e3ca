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
        # not an input: who judges the claims must not thereby ask for an hour of blind runs
        blind=lambda w: sha256_of("results/blind.json"),
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


# Seeds that nobody looked at, and what is ours doubled: one job runs all variants of an experiment.
rule blind_runs:
    output:
        directory("results/blind/{experiment}"),
    log:
        "results/logs/blind/{experiment}.log",
    benchmark:
        "results/benchmarks/blind/{experiment}.tsv"
    wildcard_constraints:
        experiment="[a-z0-9_]+/[a-z0-9_]+",
    conda:
        "../../environment.yml"
    params:
        made_from=lambda w: [keys(*item) for item in blind_runs()[w.experiment].items()],
        variants=lambda w: json.dumps(
            {place: cell.canonical() for place, cell in blind_runs()[w.experiment].items()}
        ),
    script:
        "../scripts/blind.py"


rule judge_blind:
    input:
        folders=lambda w: [f"results/blind/{name}" for name in blind_runs()],
        claims=CLAIMS,
    output:
        "results/blind.json",
    log:
        "results/logs/judge_blind.log",
    benchmark:
        "results/benchmarks/judge_blind.tsv"
    conda:
        "../../environment.yml"
    params:
        code=code_sha256("judge"),
        cells={name: cell.canonical() for name, cell in PLANS["results"].cells.items()},
    script:
        "../scripts/judge_blind.py"
