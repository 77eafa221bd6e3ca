# Claims and findings are judged from metrics alone; the tables are written whatever they say.
rule judge:
    input:
        metrics=lambda w: result_files(claimed()),
        claims=CLAIMS,
        again=lambda w: again(judged()),
    output:
        report(update(f"{RESULTS}/claims.md"), caption="../report/claims.rst", category="claims"),
        update(f"{RESULTS}/claims.json"),
        report(update(f"{RESULTS}/claims.csv"), caption="../report/claims.rst", category="claims"),
        report(update(f"{RESULTS}/findings.md"), caption="../report/claims.rst", category="claims"),
        update(f"{RESULTS}/findings.json"),
        update(f"{RESULTS}/findings.csv"),
    log:
        f"{RESULTS}/logs/judge.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        # with the digest of blind.json, which is no input: who judges the claims must not thereby
        # ask for an hour of blind runs
        product=lambda w: judged().canonical(),
        cells=list(PLAN.cells),
    script:
        "../scripts/judge.py"


# An unexpected failure, or a known discrepancy that no longer is one, stops here.
rule accept_claims:
    input:
        claims=f"{RESULTS}/claims.json",
        findings=f"{RESULTS}/findings.json",
    output:
        touch(f"{RESULTS}/claims.accepted"),
    log:
        f"{RESULTS}/logs/accept_claims.log",
    localrule: True
    conda:
        "../../environment.yml"
    script:
        "../scripts/accept_claims.py"


# Seeds that nobody looked at, and what is ours doubled: one job runs all variants of an experiment.
rule blind_runs:
    output:
        directory(f"{RESULTS}/blind/{{experiment}}"),
    log:
        f"{RESULTS}/logs/blind/{{experiment}}.log",
    wildcard_constraints:
        experiment="[a-z0-9_]+/[a-z0-9_]+",
    conda:
        "../../environment.yml"
    resources:
        mem_mb=grown(lambda w: blind_job(w.experiment).asked_mb, ROOM),
        runtime=grown(lambda w: blind_job(w.experiment).minutes),
        disk_mb=lambda w: blind_job(w.experiment).disk_mb,
    params:
        made_from=lambda w: [keys(*item) for item in blind_runs()[w.experiment].items()],
        variants=lambda w: json.dumps(
            {place: cell.canonical() for place, cell in blind_runs()[w.experiment].items()}
        ),
    script:
        "../scripts/blind.py"


rule judge_blind:
    input:
        folders=lambda w: [f"{RESULTS}/blind/{name}" for name in blind_runs()],
        claims=CLAIMS,
    output:
        f"{RESULTS}/blind.json",
    log:
        f"{RESULTS}/logs/judge_blind.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        code=code_sha256("judge"),
        cells={name: cell.canonical() for name, cell in PLAN.cells.items()},
    script:
        "../scripts/judge_blind.py"
