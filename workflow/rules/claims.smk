# Tables of judged claims (of papers) and findings (ours). Surprising verdicts do not fail this rule:
# accept_claims refuses them.
rule judge:
    input:
        exit_on_user_error()(lambda w: study.claim_inputs()),
        ancient(study.claims_files),  # the param `statements` has their content
    output:
        report(update("<results>/claims.md"), caption="../report/claims.rst", category="claims"),
        update("<results>/claims.json"),
        update("<results>/claims.svg"),
        report(update("<results>/claims.csv"), caption="../report/claims.rst", category="claims"),
        report(update("<results>/findings.md"), caption="../report/claims.rst", category="claims"),
        update("<results>/findings.json"),
        update("<results>/findings.csv"),
        pages=[update(f"<results>/{page}") for page in study.claim_pages],
    log:
        "<results>/logs/judge.log",
    localrule: True
    params:
        **study.table_params("judge"),
        # checksum of robustness.json, if it exists when Snakemake starts; no input, as judging
        # claims must not start an hour of robustness runs
        robustness=study.robustness_checksum(),
        statements=exit_on_user_error()(lambda w: study.claims_fingerprint()),
    run:
        run_in_worker("judge", "claims", input, output, params, log)


# Fails if a claim or finding differs from its known outcome.
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
# doubled that the paper does not state. Their metrics are beside the list of failed runs.
rule robustness_runs:
    output:
        update("<results>/robustness/{experiment}/failed.json"),
    log:
        "<results>/logs/robustness/{experiment}.log",
    resources:
        mem_mb=lambda w, attempt: study.robustness_memory(w.experiment, attempt),
        runtime=lambda w, attempt: study.minutes(study.robustness_seconds(w.experiment), attempt),
    params:
        cells=lambda w: {k: c.canonical() for k, c in study.robustness[w.experiment].items()},
        code=lambda w: study.robustness_code(w.experiment),
    run:
        run_in_worker("robustness", wildcards.experiment, input, output, params, log)


rule judge_robustness:
    input:
        exit_on_user_error()(lambda w: study.robustness_files()),
        ancient(study.claims_files),
    output:
        update("<results>/robustness.json"),
    log:
        "<results>/logs/judge_robustness.log",
    localrule: True
    params:
        code=study.table_params("judge_robustness")["code"],
        statements=exit_on_user_error()(lambda w: study.claims_fingerprint()),
        cells={name: cell.canonical() for name, cell in study.plan.cells.items()},
    run:
        run_in_worker("judge_robustness", "robustness", input, output, params, log)
