# One job draws a figure, from result files alone.
def results_of(gallery):
    return os.path.dirname(gallery) or "results"


def figure_data(w):
    figure = FIGURES[f"{w.paper}/{w.figure}"]
    root = results_of(w.gallery)
    files = [cell_files(root, figure.files, pattern) for pattern in figure.cells]
    return sorted({name for group in files for name in group})


rule draw:
    input:
        data=figure_data,
        style=stage("draw"),
        code="src/neuralrace/figures/{paper}/{figure}.py",
    output:
        png=report(
            "{gallery}/{paper}/{figure}.png",
            caption="../report/{paper}/{figure}.rst",
            category="{paper}",
            labels={"figure": "{figure}"},
        ),
        pdf="{gallery}/{paper}/{figure}.pdf",
    params:
        figure=lambda w: f"{w.paper}/{w.figure}",
    log:
        "{gallery}/logs/{paper}/{figure}.log",
    benchmark:
        "{gallery}/benchmarks/{paper}/{figure}.tsv"
    conda:
        "../../environment.yml"
    script:
        "../scripts/draw.py"
