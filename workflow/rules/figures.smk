# A figure, drawn from result files alone. The second PNG, in slim/, is a small one for screens.
rule draw:
    input:
        exit_on_user_error()(lambda w: study.figure_inputs(f"{w.paper}/{w.figure}")),
    output:
        report(
            update("<figures>/{paper}/{figure}.png"),
            caption="../report/figure.rst",
            category="{paper}",
            labels={"figure": "{figure}"},
        ),
        update("<figures>/{paper}/{figure}.pdf"),
        update("<figures>/{paper}/{figure}.svg"),
        update("<figures>/slim/{paper}/{figure}.png"),
    log:
        "<figures>/logs/{paper}/{figure}.log",
    priority: 30_000
    localrule: True
    params:
        caption=lambda w: study.caption(f"{w.paper}/{w.figure}"),
        code=lambda w: study.figure_code(f"{w.paper}/{w.figure}"),
        cells=lambda w: study.spec_digests(study.figure_cells(f"{w.paper}/{w.figure}")),
    run:
        name = f"{wildcards.paper}/{wildcards.figure}"
        run_in_worker("draw", name, input, output, params, log, root=study.results)


# The standard figure of a cell, for experiments that no figure module shows.
rule plot:
    input:
        "<results>/{cell}/trajectory.nc",
        lambda w: study.theory_files(w.cell),
    output:
        update("<figures>/{cell}.png"),
    log:
        "<figures>/logs/{cell}.log",
    priority: 30_000
    localrule: True
    params:
        code=lambda w: study.plot_code,
        cells=lambda w: study.spec_digests([w.cell]),
    run:
        run_in_worker("plot", wildcards.cell, input, output, params, log, root=study.results)
