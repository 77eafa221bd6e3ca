# The board of the benchmark: scores of every theory on every task. Its tasks are configured by
# config/benchmark/tasks.yaml, which `neuralrace benchmark` adds to the configuration.
rule board:
    input:
        exit_on_user_error()(lambda w: study.board_inputs()),
        ancient(study.board_findings_file),  # the param `findings` has its content
    output:
        update("<results>/benchmark.md"),
        update("<results>/benchmark.csv"),
        update("<results>/benchmark.nc"),
        update("<results>/benchmark_findings.json"),
    log:
        "<results>/logs/board.log",
    localrule: True
    params:
        cells=lambda w: study.spec_digests(study.benchmark_cells),
        code=study.board_code,
        findings=exit_on_user_error()(lambda w: study.board_findings_fingerprint()),
    run:
        run_in_worker("board", "benchmark", input, output, params, log)


# The picture of the board, and a map for each entry: where it holds, over init scales and one more
# axis.
rule draw_board:
    input:
        "<results>/benchmark.nc",
    output:
        [update(path) for path in study.board_pictures],
    log:
        "<figures>/logs/benchmark.log",
    localrule: True
    params:
        code=study.draw_board_code,
    run:
        run_in_worker("draw_board", "benchmark", input, output, params, log)
