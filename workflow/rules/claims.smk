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
        # checksums of blind.json and ranges.json, of these results or else as released; no inputs,
        # as judging claims must not start hours of variants
        tables=study.variant_checksums(),
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


# Variants: all cells of an experiment again, with fresh seeds (blind), or with other values of each
# setting that the paper does not state (ranges). Their metrics are beside the list of failed runs.
rule variants:
    output:
        update("<results>/variants/{variants}/{experiment}/failed.json"),
    log:
        "<results>/logs/variants/{variants}/{experiment}.log",
    resources:
        mem_mb=lambda w, attempt: study.variant_memory(w.variants, w.experiment, attempt),
        runtime=lambda w, attempt: study.minutes(
            study.variant_seconds(w.variants, w.experiment), attempt
        ),
    params:
        cells=lambda w: {
            k: c.canonical() for k, c in study.variants[w.variants][w.experiment].items()
        },
        code=lambda w: study.variant_code(w.variants, w.experiment),
    run:
        run_in_worker("variants", wildcards.experiment, input, output, params, log)


rule judge_variants:
    input:
        exit_on_user_error()(lambda w: study.variant_files(w.variants)),
        ancient(study.claims_files),
    output:
        update("<results>/{variants}.json"),
    log:
        "<results>/logs/judge_{variants}.log",
    localrule: True
    params:
        group=lambda w: w.variants,
        code=study.table_params("judge_variants")["code"],
        statements=exit_on_user_error()(lambda w: study.claims_fingerprint()),
        cells={name: cell.canonical() for name, cell in study.plan.cells.items()},
    run:
        run_in_worker("judge_variants", wildcards.variants, input, output, params, log)
