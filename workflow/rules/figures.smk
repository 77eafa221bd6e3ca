# One rule and one job for each figure, drawn from result files alone. They are so short that they
# start from one process that has imported everything, beside Snakemake on a cluster too.
for name in FIGURES:
    paper, label = name.split("/")

    rule:
        name:
            f"draw_{paper}_{label}"
        input:
            data=lambda w, name=name: result_files(inputs(name, figure_cells(name))),
            again=lambda w, name=name: again(figure(name)),
        # what is there stays until there is another one
        output:
            png=report(
                update(f"{GALLERY}/{name}.png"),
                caption="../report/figure.rst",
                category=paper,
                labels={"figure": label},
            ),
            pdf=update(f"{GALLERY}/{name}.pdf"),
            svg=update(f"{GALLERY}/{name}.svg"),
            slim=update(f"{GALLERY}/slim/{name}.png"),
        log:
            f"{GALLERY}/logs/{name}.log",
        # before cells: figures are seen early, and fewer jobs wait, all of which the scheduler looks
        # at again every second
        priority: 1_000_000
        localrule: True
        resources:
            mem_mb=1000,
        params:
            figure=name,
            product=lambda w, name=name: figure(name).canonical(),
            cells=lambda w, name=name: figure_cells(name),
            caption=lambda w, name=name: caption(name, PLAN.cells),
        run:
            drawn(params.figure, params.product, params.cells, params.caption, log[0], *output)
