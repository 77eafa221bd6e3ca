# One rule and one job for each figure, drawn from result files alone. They are so short that they
# start from one process that has imported everything, beside Snakemake on a cluster too.
for name, entry in FIGURES.items():
    paper, figure = name.split("/")

    rule:
        name:
            f"draw_{paper}_{figure}"
        input:
            data=partial(figure_data, name),
        output:
            png=report(
                f"{GALLERY}/{name}.png",
                caption="../report/figure.rst",
                category=paper,
                labels={"figure": figure},
            ),
            pdf=f"{GALLERY}/{name}.pdf",
            svg=f"{GALLERY}/{name}.svg",
            slim=f"{GALLERY}/slim/{name}.png",
        log:
            f"{GALLERY}/logs/{name}.log",
        # before cells: figures are seen early, and fewer jobs wait, all of which the scheduler looks
        # at again every second
        priority: 1_000_000
        localrule: True
        resources:
            mem_mb=1000,
        params:
            code=code_sha256("draw", [entry.module]),
            figure=name,
            cells=lambda w, name=name: figure_cells(name),
            caption=lambda w, name=name: caption(name, PLAN.cells),
        run:
            drawn(params.figure, RESULTS, params.cells, params.caption, log[0], *output)
