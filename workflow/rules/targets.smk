# Targets.
# All figures, with the metrics and claims behind them.
rule figures:
    input:
        study.figure_files(),
        study.metrics_files,
        "<results>/claims.md",


# All figures, without judging claims.
rule gallery:
    input:
        study.figure_files(),


# Metrics of all cells, a file for each.
rule cells:
    input:
        study.metrics_files,


# A plot of each cell that no figure module shows; `neuralrace run` asks for these.
rule plots:
    input:
        lambda w: study.plot_files,


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
        paths = {"root": study.results, "gallery": study.figures, "planned": study.fingerprints}
        run_in_worker("verify", "verify", input, output, params, log, **paths)
