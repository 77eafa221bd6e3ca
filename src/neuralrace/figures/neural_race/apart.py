"""Domains that never meet share one representation.

Figure 4g of Saxe, Sodhani, Lewallen (2022) with more domains: at the paper's number any two input
domains have a trained output in common. The same item comes to be represented alike in two input
domains, and nearly as much so in two that are never trained with a common output domain; errors of
untrained pairs fall with those of trained ones, and end above them. Markers and lines are means,
bars and bands ranges over seeds.
"""

from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import domains, style
from neuralrace.results.cells import Results

PAIRS = {
    "together": "same item,\ncommon trained output",
    "never_together": "same item, no\ncommon trained output",
    "within": "different items\nof one domain",
}
ENDS = {
    "initial": {"color": "0.45", "marker": "o", "markerfacecolor": "white"},
    "final": {"color": style.categorical(0), "marker": "o"},
}


@Figure(
    layout="ab;cd",
    height=4.3,
    widths=(1, 1.25),
    heights=(1.25, 1),
    cf={"a": "Fig. 4d", "b": "Fig. 4g"},
    reads={
        "pathways_apart": {
            "trajectory": "similarity trained_error untrained_error",
            "metrics": (
                "final_similarity_never_together final_similarity_together "
                "final_similarity_within initial_similarity_never_together "
                "initial_similarity_together initial_similarity_within"
            ),
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Times of panel c, and pairs of panel d."""
    return [
        style.handle("c: at the start", linestyle="", **ENDS["initial"]),
        style.handle("c: at the end", linestyle="", **ENDS["final"]),
        style.handle("d: trained pairs", **domains.TRAINED | {"marker": None}),
        style.handle("d: untrained pairs", **domains.UNTRAINED | {"marker": None}),
        style.BAND,
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Which pairs of domains are trained (dark)."""
    cell = results.cell("pathways_apart")
    domains.draw_mask(ax, cell)
    ax.set_box_aspect(1)
    mask = domains.mask(cell)
    ax.set_title(f"{mask[0].sum()} of {len(mask)} outputs trained with each input")


def panel_b(results: Results, ax: Axes) -> None:
    """Cosines of all items in the first hidden layer at the end of one seed."""
    shades = domains.draw_similarity(ax, results.cell("pathways_apart"))
    ax.set_box_aspect(1)
    ax.figure.colorbar(shades, ax=ax, label="cosine", ticks=(-1, 0, 1), aspect=15)
    ax.set_title("One representation of all domains")


def panel_c(results: Results, ax: Axes) -> None:
    """Mean cosine in the first hidden layer.

    Different items of one domain, which share some of their targets, are for comparison.
    """
    cell = results.cell("pathways_apart")
    for row, name in enumerate(PAIRS):
        for end, props in ENDS.items():
            cosine = cell.get("metrics", f"{end}_similarity_{name}").isel(init_scale=0)
            style.points(ax, row, cosine, across=True, **props)
    ax.set_yticks(range(len(PAIRS)), PAIRS.values())
    ax.set(xlabel="mean cosine in the first hidden layer", ylim=(len(PAIRS) - 0.5, -0.5))
    ax.axvline(0, **style.GUIDE)
    apart = cell.get("metrics", "final_similarity_never_together").isel(init_scale=0)
    ax.set_title(f"Never together, cosine {float(apart.mean('seed')):.2f}")


def panel_d(results: Results, ax: Axes) -> None:
    """Relative error of pairs of domains."""
    cell = results.cell("pathways_apart")
    domains.draw_errors(ax, cell)
    ax.set(xlabel=style.FLOW_TIME, xlim=(0, float(cell.flow_time[-1])))
    style.epoch_axis(ax, cell.flow_time)
    last = cell.get("trajectory", "untrained_error").isel(init_scale=0, time=-1).mean("seed")
    ax.set_title(f"Untrained pairs follow, to an error of {float(last):.2g}")
