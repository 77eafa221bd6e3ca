# Targets.
# All figures, with the metrics and claims behind them.
rule figures:
    input:
        study.gallery(),
        study.metrics,
        "<results>/claims.md",


# All figures, without judging claims.
rule gallery:
    input:
        study.gallery(),


# Metrics of all cells, a file for each.
rule cells:
    input:
        study.metrics,


# A plot of each cell that no figure module shows; `neuralrace run` asks for these.
rule plots:
    input:
        lambda w: study.plots,


# The same, with all metrics in one table.
rule metrics:
    input:
        rules.cells.input,
        "<results>/metrics.csv",


# Verdicts on all claims; fails if one came out otherwise than expected.
rule claims:
    input:
        "<results>/claims.md",
        "<results>/claims.csv",
        "<results>/findings.md",
        "<results>/claims.accepted",


# Verdicts on fresh seeds.
rule blind:
    input:
        "<results>/blind.json",


# Checks all result files. No output, so that it always runs; no input, so that it computes nothing.
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
