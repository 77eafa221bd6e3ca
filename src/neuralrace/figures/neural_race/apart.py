"""Domains that never meet share one representation.

Figure 4g of Saxe, Sodhani, Lewallen (2022) with ten domains in place of seven: at the paper's
number any two input domains have a trained output in common, among ten some have none. The same
item comes to be represented alike in all input domains, a little less so in those that are never
trained with a common output, and untrained pairs are answered. Ten runs.
"""

import numpy as np
import xarray as xr
from jaxtyping import Float, Int
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import domains, style
from neuralrace.figures.ends import label_ends
from neuralrace.results.cells import CellResults, Results

PAIRS = {
    "trained_error": ("trained\npairs", style.COLOURS["trained"]),
    "untrained_error": ("untrained\npairs", style.COLOURS["untrained"]),
}
BARS = 25
"""Number of bars along time."""


@Figure(
    layout="ab;cd",
    height=5.0,
    heights=(1.5, 1),
    cf={"a": "Fig. 4d", "b": "Fig. 4g"},
    reads={
        "pathways_apart": {
            "trajectory": "similarity trained_error untrained_error",
            "metrics": "final_similarity_within",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """None: lines are labelled."""
    return []


def panel_a(results: Results, ax: Axes) -> None:
    """Which pairs of domains are trained; the others are never seen."""
    domains.draw_mask(ax, results.cell("pathways_apart"))
    ax.set_box_aspect(1)
    inside = {"xycoords": "axes fraction", "ha": "center", "va": "center"}
    style.note_at(ax, "dark: trained\nlight: never seen", (0.72, 0.75), (0, 0), **inside)
    ax.set_title("Far domains share no trained output")


def panel_b(results: Results, ax: Axes) -> None:
    """Cosines between the representations of all items of all input domains in the first hidden
    layer, at the end of one run. Lines surround pairs of domains that have no trained output in
    common: the pattern is the same there.
    """
    cell = results.cell("pathways_apart")
    shades = domains.draw_similarity(ax, cell)
    items = cell.get("trajectory", "similarity").sizes["domain_item"] // cell.spec.dataset.count
    domains.outline(ax, _common(cell)[0] == 0, (items, items))
    ax.set_box_aspect(1)
    ax.set_xlabel("input domain (framed: no trained output in common)")
    beside = ax.inset_axes((1.02, 0, 0.035, 1))
    ax.figure.colorbar(shades, cax=beside, ticks=(-1, 0, 1)).set_label("cosine", labelpad=-4)
    ax.set_title("All domains share one representation")


def panel_c(results: Results, ax: Axes) -> None:
    """Cosine between representations of the same item in two input domains at the end, by the
    number of trained outputs that the domains have in common. Dots are means over pairs of domains
    and items, one for each run; bars are medians. The band is the range of different items of one
    domain, which share some of their targets. At the start all cosines are near zero.
    """
    cell = results.cell("pathways_apart")
    same, common = _cosines(cell), _common(cell)
    apart = ~np.eye(common.shape[-1], dtype=bool)
    counts, least = np.unique(common[:, apart])[::-1], 1.0
    ax.set_ylim(0, 1.04)
    for column, count in enumerate(counts):
        members = (common == count) & apart
        means = (same * members).sum((1, 2)) / members.sum((1, 2))
        least = min(least, float(means.min()))
        dots = {"marker": "o", "color": style.COLOURS["gated"], "alpha": 0.7}
        style.single_runs(ax, column, xr.DataArray(means, dims="seed"), 0.3, **dots)
    within = cell.get("metrics", "final_similarity_within")
    ax.axhspan(float(within.min()), float(within.max()), color="0.8", zorder=0)
    style.named_columns(ax, [str(count) if count else "none" for count in counts])
    below = {"xycoords": ax.get_yaxis_transform(), "va": "top"}
    text = "same item, two domains\n(dots: runs, bars: medians)"
    style.note_at(ax, text, (0, least), (4, 0), **below)
    at = (1, float(within.min()))
    style.note_at(ax, "different items, one domain", at, (-1, -2), ha="right", **below)
    ax.set(xlabel="trained outputs in common", ylabel="cosine", yticks=np.linspace(0, 1, 5))
    ax.set_title("Alike even without a trained output in common")


def panel_d(results: Results, ax: Axes) -> None:
    """Squared error over that of answering zero, of trained and of untrained pairs: means and
    ranges over runs, of trained pairs a band and of untrained ones bars.
    """
    cell = results.cell("pathways_apart")
    ends = []
    for name, (label, colour) in PAIRS.items():
        error = cell.get("trajectory", name).isel(init_scale=0)
        if name == "trained_error":
            style.over_seeds(ax, cell.flow_time, error, color=colour)
        else:  # Two bands would be one in grey.
            ax.plot(cell.flow_time, error.mean("seed"), color=colour, **style.SIMULATION)
            some = error.isel(time=slice(None, None, max(1, error.sizes["time"] // BARS)))
            at = cell.flow_time.sel(time=some["time"])
            ax.vlines(at, some.min("seed"), some.max("seed"), color=colour, linewidth=0.6)
        ends.append((float(error.isel(time=-1).mean()), label, colour))
    ax.set(xlabel=style.FLOW_TIME, xlim=(0, float(cell.flow_time[-1])))
    ax.set(yscale="log", ylabel="relative error")
    text = "band, bars:\nranges of ten runs"
    style.note_at(ax, text, (0, 0), (4, 4), xycoords="axes fraction")
    label_ends(ax, ends)
    ax.set_title("Untrained pairs are answered too")


def _common(cell: CellResults) -> Int[np.ndarray, "seed input_domain input_domain"]:
    """Number of trained outputs that two input domains have in common."""
    mask = cell.trained_pairs.astype(int)
    return mask @ mask.mT


def _cosines(cell: CellResults) -> Float[np.ndarray, "seed input_domain input_domain"]:
    """Cosine of the same item in two input domains at the end of training, a mean over items."""
    products = cell.get("trajectory", "similarity").isel(init_scale=0, snapshot=-1)
    products = products.transpose("seed", "domain_item", "other_domain_item").values
    length = np.sqrt(np.einsum("sii->si", products))
    count = cell.spec.dataset.count
    items = products.shape[-1] // count
    cosines = products / (length[:, :, None] * length[:, None])
    return np.einsum("siaja->sij", cosines.reshape(-1, count, items, count, items)) / items
