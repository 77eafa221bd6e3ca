# A figure, drawn from result files alone, as soon as they are there.
rule draw:
    input:
        figure_files,
    output:
        png=report(
            update("<figures>/{paper}/{figure}.png"),
            caption="../report/figure.rst",
            category="{paper}",
            labels={"figure": "{figure}"},
        ),
        pdf=update("<figures>/{paper}/{figure}.pdf"),
        svg=update("<figures>/{paper}/{figure}.svg"),
        slim=update("<figures>/slim/{paper}/{figure}.png"),
    log:
        "<figures>/logs/{paper}/{figure}.log",
    params:
        caption=lambda w: caption(f"{w.paper}/{w.figure}", PLAN.cells),
        code=lambda w: code_sha256("draw", [FIGURES[f"{w.paper}/{w.figure}"].module]),
        cells=lambda w: digests_of(figure_cells(f"{w.paper}/{w.figure}")),
    priority: 20_000
    localrule: True
    run:
        work(
            "draw",
            f"{wildcards.paper}/{wildcards.figure}",
            log,
            figure=f"{wildcards.paper}/{wildcards.figure}",
            caption=params.caption,
            code=params.code,
            cells=params.cells,
            root=RESULTS,
            inputs=list(input),
            paths=list(output),
        )
