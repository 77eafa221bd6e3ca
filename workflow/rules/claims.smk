# Claims and findings, judged from metrics alone; the tables are written whatever they say.
rule judge:
    input:
        refusing()(lambda w: study.claim_inputs()),
        ancient(study.claims),  # what they say is a parameter: a comment is none of it
    output:
        report(update("<results>/claims.md"), caption="../report/claims.rst", category="claims"),
        update("<results>/claims.json"),
        report(update("<results>/claims.csv"), caption="../report/claims.rst", category="claims"),
        report(update("<results>/findings.md"), caption="../report/claims.rst", category="claims"),
        update("<results>/findings.json"),
        update("<results>/findings.csv"),
    log:
        "<results>/logs/judge.log",
    localrule: True
    params:
        **study.judgement("judge"),
        # no input: to judge the claims must not ask for an hour of robustness runs
        robustness=study.robustness(),
        statements=refusing()(lambda w: study.statements()),
    run:
        work("judge", "claims", input, output, params, log)


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
        work("accept", "claims", input, output, params, log)


# Robustness: fresh seeds, and what a paper does not print doubled, for all cells of an experiment.
rule blind_runs:
    output:
        directory("<results>/blind/{experiment}"),
    log:
        "<results>/logs/blind/{experiment}.log",
    resources:
        mem_mb=lambda w, attempt: study.blind_memory(w.experiment, attempt),
        runtime=lambda w, attempt: study.minutes(study.blind_seconds(w.experiment), attempt),
    params:
        cells=lambda w: {name: c.canonical() for name, c in study.blind[w.experiment].items()},
        code=lambda w: study.blind_code(w.experiment),
    run:
        work("blind", wildcards.experiment, input, output, params, log)


rule judge_blind:
    input:
        refusing()(lambda w: [f"{study.results}/blind/{name}" for name in study.blind]),
        ancient(study.claims),
    output:
        "<results>/blind.json",
    log:
        "<results>/logs/judge_blind.log",
    localrule: True
    params:
        code=study.judgement("judge")["code"],
        statements=refusing()(lambda w: study.statements()),
        cells={name: cell.canonical() for name, cell in study.plan.cells.items()},
    run:
        work("judge_blind", "blind", input, output, params, log)
