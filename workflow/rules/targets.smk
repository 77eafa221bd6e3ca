# What a person asks for.
rule figures:
    input:
        study.gallery(),
        study.metrics,
        "<results>/claims.md",


# Every figure, whatever the claims say.
rule gallery:
    input:
        study.gallery(),


# Metrics of everything that is planned.
rule cells:
    input:
        study.metrics,


# A plot of each cell that no figure module shows; `neuralrace run` asks for these.
rule plots:
    input:
        lambda w: study.plots,


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
        wanted = {
            "root": study.results,
            "gallery": study.figures,
            "planned": study.fingerprints,
        }
        work("verify", "verify", input, output, params, log, **wanted)
