# Verdicts on the claims of the papers, from metrics alone; a claim that fails fails no job.
rule judge:
    input:
        exit_on_user_error()(lambda w: study.claim_inputs()),
        ancient(study.claims_files),  # their content is a param, so that comments judge nothing again
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
        **study.table_params("judge"),
        # checksum of blind.json, if there is one when Snakemake starts; not an input, as judging
        # claims must not start an hour of robustness runs
        robustness=study.robustness_checksum(),
        statements=exit_on_user_error()(lambda w: study.claims_fingerprint()),
    run:
        run_in_worker("judge", "claims", input, output, params, log)


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
        run_in_worker("accept", "claims", input, output, params, log)


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
        run_in_worker("blind", wildcards.experiment, input, output, params, log)


rule judge_blind:
    input:
        exit_on_user_error()(lambda w: study.blind_files()),
        ancient(study.claims_files),
    output:
        update("<results>/blind.json"),
    log:
        "<results>/logs/judge_blind.log",
    localrule: True
    params:
        code=study.table_params("judge_blind")["code"],
        statements=exit_on_user_error()(lambda w: study.claims_fingerprint()),
        cells={name: cell.canonical() for name, cell in study.plan.cells.items()},
    run:
        run_in_worker("judge_blind", "blind", input, output, params, log)
