# What a person asks for.
rule figures:
    input:
        gallery(),
        "<results>/claims.md",


# Every figure, whatever the claims say.
rule gallery:
    input:
        gallery(),


# Metrics of everything that is planned.
rule cells:
    input:
        result_files(all_metrics()),


rule metrics:
    input:
        rules.cells.input,
        "<results>/metrics.csv",


rule claims:
    input:
        "<results>/claims.md",
        "<results>/claims.csv",
        "<results>/findings.md",
        "<results>/claims.accepted",


rule blind:
    input:
        "<results>/blind.json",


# No output: it runs whenever it is asked for. No input: who verifies wants nothing computed.
rule verify:
    log:
        "<results>/logs/verify.log",
    localrule: True
    run:
        planned = {
            f"{RESULTS}/{cell}/{kind}.nc": key
            for cell, spec in PLAN.cells.items()
            for kind, key in fingerprints(cell, spec).items()
        }
        work("verify", "verify", log, root=RESULTS, gallery=GALLERY, planned=planned)
