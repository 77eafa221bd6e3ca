"""Input domains that are never trained with a common output come to share one representation."""

from matplotlib.figure import Figure as Canvas

from neuralrace.figures import domains, style
from neuralrace.records.results import Results
from neuralrace.registry import Figure

PAIRS = {
    "together": "same item,\ncommon trained output",
    "never_together": "same item, no\ncommon trained output",
    "within": "different items\nof one domain",
}
ENDS = {
    "initial": {"color": "0.45", "marker": "o", "markerfacecolor": "white"},
    "final": {"color": style.distinct(0), "marker": "o"},
}


@Figure(
    reads={
        "pathways_apart": {
            "trajectory": "similarity trained_error untrained_error",
            "metrics": (
                "final_similarity_never_together final_similarity_together "
                "final_similarity_within initial_similarity_never_together "
                "initial_similarity_together initial_similarity_within"
            ),
        },
    }
)
def draw(results: Results) -> Canvas:
    """Trained pairs, representations of one seed, their cosines, and errors over time."""
    cell = results.cell("pathways_apart")
    figure = Canvas(figsize=(style.COLUMN, 4.9))
    rows = figure.add_gridspec(3, 1, height_ratios=(1.3, 1.1, 1.3))
    # a grid of its own for each row, so that the long names of one do not indent the others
    grids = [rows[row].subgridspec(1, columns) for row, columns in enumerate((2, 1, 1))]
    pairs, layer, cosines, errors = (figure.add_subplot(cell) for grid in grids for cell in grid)
    domains.draw_mask(pairs, cell)
    shades = domains.draw_similarity(layer, cell)
    figure.colorbar(shades, ax=layer, label="cosine", ticks=(-1, 0, 1))

    for row, name in enumerate(PAIRS):
        for end, look in ENDS.items():
            cosine = cell.get("metrics", f"{end}_similarity_{name}").isel(init_scale=0)
            style.points(cosines, row, cosine, across=True, **look)
    cosines.set_yticks(range(len(PAIRS)), PAIRS.values())
    cosines.set(xlabel="mean cosine in the first hidden layer", ylim=(len(PAIRS) - 0.5, -0.5))
    cosines.axvline(0, color="0.8", linewidth=0.6, zorder=0)

    domains.draw_errors(errors, cell)
    errors.set(xlabel=style.FLOW_TIME, xlim=(0, float(cell.flow_time[-1])))
    style.epochs(errors, cell.flow_time)
    titles = ["trained pairs", "first hidden layer", "representations", "pairs of domains"]
    style.letters([pairs, layer, cosines, errors], titles)
    entries = [
        style.entry("c: at the start", linestyle="", **ENDS["initial"]),
        style.entry("c: at the end", linestyle="", **ENDS["final"]),
        style.BAND,
        style.entry("d: trained", **domains.TRAINED | {"marker": None}),
        style.entry("d: untrained", **domains.UNTRAINED | {"marker": None}),
    ]
    style.legend(figure, entries, columns=3)
    return figure
