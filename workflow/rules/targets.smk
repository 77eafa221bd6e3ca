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


# Metrics of all cells, one file each.
rule cells:
    input:
        study.metrics_files,


# Metrics of all cells, and one table of all metrics.
rule metrics:
    input:
        rules.cells.input,
        "<results>/metrics.csv",


# A plot of each cell that no figure module shows, for `neuralrace run`.
rule plots:
    input:
        lambda w: study.plot_files,


# Verdicts on claims and findings; fails if one differs from its known outcome.
rule claims:
    input:
        "<results>/claims.md",
        "<results>/claims.csv",
        "<results>/findings.md",
        "<results>/claims.accepted",


# Verdicts with fresh seeds.
rule blind:
    input:
        "<results>/blind.json",


# Verdicts with each of our own settings doubled.
rule ranges:
    input:
        "<results>/ranges.json",


# The board of the benchmark, its figure and a map for each theory.
rule benchmark:
    input:
        "<results>/benchmark.md",
        rules.draw_board.output,


# Checks all result files. No output, so that it always runs; no input, so that it computes nothing.
rule verify:
    log:
        "<results>/logs/verify.log",
    localrule: True
    run:
        paths = {"root": study.results, "gallery": study.figures, "planned": study.fingerprints}
        run_in_worker("verify", "verify", input, output, params, log, **paths)
