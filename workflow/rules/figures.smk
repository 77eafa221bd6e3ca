# One job draws a figure, from result files alone.
rule draw:
    input:
        data=lambda w: result_files(results_of(w), shown(w), FIGURES[f"{w.paper}/{w.figure}"].files),
        code=lambda w: stage("draw", f"neuralrace.figures.{w.paper}.{w.figure}"),
    output:
        png=report(
            "{gallery}/{paper}/{figure}.png",
            caption="../report/{paper}/{figure}.rst",
            category="{paper}",
            labels={"figure": "{figure}"},
        ),
        pdf="{gallery}/{paper}/{figure}.pdf",
    log:
        "{gallery}/logs/{paper}/{figure}.log",
    benchmark:
        "{gallery}/benchmarks/{paper}/{figure}.tsv"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=2000,
    params:
        cells=shown,
        root=results_of,
    script:
        "../scripts/draw.py"
