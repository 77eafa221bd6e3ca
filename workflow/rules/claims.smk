# Verdicts on the claims of the papers, from metrics alone; a claim that fails fails no job.
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
        # checksum of blind.json, if there is one when Snakemake starts; not an input, as judging
        # claims must not start an hour of robustness runs
        robustness=study.robustness(),
        statements=refusing()(lambda w: study.statements()),
    run:
        work("judge", "claims", input, output, params, log)


# Fails if a claim came out otherwise than its entry `expect` says.
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


# Robustness runs: all cells of an experiment again, with fresh seeds, and with each setting
# doubled that the paper does not state.
rule blind_runs:
    output:
        update("<results>/blind/{experiment}/failed.json"),
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
        refusing()(lambda w: [f"{study.results}/blind/{name}/failed.json" for name in study.blind]),
        ancient(study.claims),
    output:
        update("<results>/blind.json"),
    log:
        "<results>/logs/judge_blind.log",
    localrule: True
    params:
        code=study.judgement("judge_blind")["code"],
        statements=refusing()(lambda w: study.statements()),
        cells={name: cell.canonical() for name, cell in study.plan.cells.items()},
    run:
        work("judge_blind", "blind", input, output, params, log)
