# Claims and findings, judged from metrics alone; the tables are written whatever they say.
TABLES = [f"{RESULTS}/{name}.{kind}" for name in ("claims", "findings") for kind in ("md", "json", "csv")]


rule judge:
    input:
        metrics=lambda w: claimed(),
        claims=CLAIMS,
    output:
        report(update("<results>/claims.md"), caption="../report/claims.rst", category="claims"),
        update("<results>/claims.json"),
        report(update("<results>/claims.csv"), caption="../report/claims.rst", category="claims"),
        report(update("<results>/findings.md"), caption="../report/claims.rst", category="claims"),
        update("<results>/findings.json"),
        update("<results>/findings.csv"),
    log:
        "<results>/logs/judge.log",
    params:
        code=code_sha256("judge"),
        cells=digests_of(PLAN.cells),
        # no input: to judge the claims must not ask for an hour of robustness runs
        robustness=sha256(Path(RESULTS, "blind.json")) if os.path.exists(f"{RESULTS}/blind.json") else "",
    localrule: True
    run:
        work(
            "judge",
            "claims",
            log,
            code=params.code,
            cells=params.cells,
            root=RESULTS,
            claims=list(input.claims),
            inputs=list(input.metrics),
            paths=list(output),
        )


# An unexpected failure, or a known discrepancy that no longer is one, stops here.
rule accept_claims:
    input:
        "<results>/claims.json",
        "<results>/findings.json",
    output:
        touch("<results>/claims.accepted"),
    log:
        "<results>/logs/accept_claims.log",
    localrule: True
    run:
        work("accept", "claims", log, root=RESULTS)


# Robustness: fresh seeds, and what a paper does not print doubled, for all cells of an experiment.
rule blind_runs:
    output:
        directory("<results>/blind/{experiment}"),
    log:
        "<results>/logs/blind/{experiment}.log",
    params:
        variants=lambda w: {name: c.canonical() for name, c in blind_runs()[w.experiment].items()},
        code=lambda w: [code(*item) for c in blind_runs()[w.experiment].values() for item in specifications(c).items()],
    resources:
        mem_mb=lambda w, attempt: 2 ** attempt * max(cost_of(c).memory_mb for c in blind_runs()[w.experiment].values()),
        runtime=minutes(blind_seconds),
    run:
        work(
            "blind",
            f"blind {wildcards.experiment}",
            log,
            experiment=wildcards.experiment,
            variants=params.variants,
            folder=output[0],
        )


rule judge_blind:
    input:
        folders=lambda w: [f"{RESULTS}/blind/{name}" for name in blind_runs()],
        claims=CLAIMS,
    output:
        "<results>/blind.json",
    log:
        "<results>/logs/judge_blind.log",
    params:
        code=code_sha256("judge"),
        cells={name: cell.canonical() for name, cell in PLAN.cells.items()},
    localrule: True
    run:
        work(
            "judge_blind",
            "blind",
            log,
            cells=params.cells,
            claims=list(input.claims),
            folders=list(input.folders),
            path=output[0],
        )
