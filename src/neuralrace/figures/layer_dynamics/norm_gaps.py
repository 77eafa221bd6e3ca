r"""The gap between layer norms stays below its bound, and narrows as layers grow.

Basu, Mukherjee and Vasudevan, lemma 2 and its corollaries, have no figure of these. The gap of the
Frobenius norms of adjacent layers is at most the root of the trace of the imbalance :math:`C` at
the start (a). It is not invariant, as theorem 3 has it, but :math:`|\mathrm{tr}\,C|` over the sum
of the norms, so that it narrows as they grow. Eq. 11, on spectral norms, lacks that root, and
breaks for small weights (b). Balanced layers (corollary 2.2) keep equal norms up to the step size;
semi-orthogonal ones, which the corollary does not mean, are not balanced.
"""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.layers import VARIANCES, depth, label, networks, unit_scale
from neuralrace.results.cells import CellResults, Results
from neuralrace.theory.balance import norm_gap, norm_gap_bound

START: dict[str, Any] = {"color": style.categorical(0), "marker": "o", "markerfacecolor": "white"}
END: dict[str, Any] = {"color": style.categorical(0), "marker": "o", "markersize": 4.5}
IDENTITY: dict[str, Any] = {"color": "black", "marker": "|", "markersize": 7, "zorder": 4}
LARGEST: dict[str, Any] = {"color": "0.4", "marker": "x", "markersize": 3.5}
HEADING = 1.25
"""Width of bold text over that of the same text."""
EQUAL = 0.01
"""Gap over the sum of the norms below which norms that start equal are called equal."""
STARTS = {"zero_balanced": "balanced", "orthogonal": "semi-orthogonal"}
"""Names of starts that are not random."""


@Figure(
    layout="ab",
    height=3.4,
    widths=(1.7, 1.0),
    cf={"a": "lemma 2", "b": "eq. 11"},
    reads={
        "growth growth_standard small_weights balanced_start": {
            "trajectory": "imbalance_trace layer_norm",
            "metrics": (
                "any_pair_gap_over_bound final_norm_gap final_relative_norm_gap initial_norm_gap "
                "norm_gap_over_bound"
            ),
        },
        "growth small_weights": {
            "metrics": "spectral_gap_over_bound spectral_gap_over_written_bound",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Gaps at both ends, and the largest."""
    styles = {
        "gap at start": START,
        "at end": END,
        "at end, by conservation": IDENTITY,
        "largest, any pair, run and time": LARGEST,
    }
    return [style.handle(name, linestyle="", **props) for name, props in styles.items()]


def panel_a(results: Results, ax: Axes) -> None:
    r"""Gap over its bound :math:`\sqrt{|\mathrm{tr}\,C|}` (dashed), from the start (open) to the
    end (filled): means over pairs of adjacent layers and over runs, 60 of each random start and 10
    of the others. Of balanced layers gap and bound are both about 0. The stroke is what
    conservation gives for the end, :math:`|\mathrm{tr}\,C|` over the sum of the norms. The cross is
    the largest of any two layers in any run, at any time, over their own bound (corollary 2.1).
    Rows are numbers of layers and factors of the weights, for the entry variance that the paper
    prints and for that of the paper it cites.
    """
    rows = _rows(results)
    ax.set_title("Gaps stay below the bound, and narrow")
    ax = style.named_rows(ax, [name for name, _, _ in rows])
    ax.set(xlim=(-0.03, 1.05), xlabel="gap of norms over its bound")
    widths = [
        style.text_width(name, HEADING * style.RC_PARAMS["ytick.labelsize"]) for name, *_ in rows
    ]
    ax.tick_params(axis="y", length=0, pad=max(widths) + 3)
    for tick, (_, cell, _) in zip(ax.get_yticklabels(), rows, strict=True):
        tick.set(ha="left", fontweight="normal" if cell is not None else "bold")
    ax.axvline(1, **style.THEORY)
    ax.text(0.99, 0.1, "bound", ha="right", va="center")
    for row, (_, cell, index) in enumerate(rows):
        if cell is None:
            ax.axhline(row - 0.5, **style.GUIDE)
        else:
            _dumbbell(ax, row, cell, index)


def panel_b(results: Results, ax: Axes) -> None:
    """Largest gap of spectral norms in a run over the bound of eq. 11, as printed and with the root
    that it lacks, at two layers; thick lines are means and thin ones ranges over 60 runs at the
    four init scales of the axis. Above 1 a bound is broken.
    """
    cells = [*results.cells("small_weights"), networks(results, "growth")[0]]
    for name, colour in (
        ("spectral_gap_over_written_bound", style.categorical(1)),
        ("spectral_gap_over_bound", style.categorical(0)),
    ):
        ratios = xr.concat(
            [cell.get("metrics", name).isel(pair=0) for cell in cells], "init_scale", join="inner"
        )
        ax.plot(ratios["init_scale"], ratios.mean("seed"), color=colour, **style.SIMULATION)
        for edge in (ratios.min("seed"), ratios.max("seed")):  # bands would merge
            ax.plot(ratios["init_scale"], edge, color=colour, linewidth=0.8)
    label(ax, 0.45, 0.8, "over $|C|_2$, as printed", style.categorical(1), 0, "axes fraction")
    scales = ratios["init_scale"].values
    start = scales.min(), float(ratios.mean("seed").isel(init_scale=int(scales.argmin())))
    style.note_at(ax, r"over $\sqrt{|C|_2}$", start, (4, -4), color=colour, va="top")
    ax.axhline(1, **style.THEORY)
    ax.text(0.98, 1.1, "bound", transform=ax.get_yaxis_transform(), ha="right", va="bottom")
    ax.set(xscale="log", yscale="log", xlim=(scales.min(), scales.max()))
    ax.set_xticks(scales, [f"{scale:g}" for scale in scales])
    ax.minorticks_off()
    ax.set(xlabel="init scale", ylabel="largest gap over bound")
    style.note(ax, "thick: mean, thin:\nrange of 60 runs")
    ax.set_title("Eq. 11 breaks for small weights")


def _rows(results: Results) -> list[tuple[str, CellResults | None, int]]:
    """Name, network and index of the init scale of each row; headings have no network."""
    rows: list[tuple[str, CellResults | None, int]] = [
        (f"{STARTS[cell.spec.init.name]}, {depth(cell)} layers", cell, 0)
        for cell in results.cells("balanced_start")
    ]
    for experiment, variance in VARIANCES.items():
        shapes = networks(results, experiment)
        first, unit = shapes[0], unit_scale(shapes[0])["init_scale"]
        printed = experiment == "growth"
        small = results.cells("small_weights") if printed else []
        scaled = [(cell, i) for cell in small for i in range(cell.metrics.sizes["init_scale"])]
        scaled += [(first, i) for i in range(first.metrics.sizes["init_scale"])]
        rows.append((f"Variance: {variance}", None, 0))
        for cell, index in scaled if printed else [(first, unit)]:
            scale = float(cell.metrics["init_scale"][index])
            rows.append((f"2 layers, weights \u00d7 {scale:g}", cell, index))
        for cell in shapes[1:]:
            rows.append((f"{depth(cell)} layers, weights \u00d7 1", cell, unit))
    return rows


def _dumbbell(ax: Axes, row: int, cell: CellResults, index: int) -> None:
    at = {"init_scale": index}
    trace = cell.get("trajectory", "imbalance_trace").isel(at | {"time": 0})
    bound = trace.copy(data=norm_gap_bound(trace.values))
    start, end, adjacent, widest, relative = (
        cell.get("metrics", name).isel(at)
        for name in (
            "initial_norm_gap",
            "final_norm_gap",
            "norm_gap_over_bound",
            "any_pair_gap_over_bound",
            "final_relative_norm_gap",
        )
    )
    if not adjacent.notnull().any():
        apart = float(relative.max())
        equal = "gap and bound about 0"
        text = equal if apart < EQUAL else f"gap up to {apart:.0%} of the norms"
        ax.text(0.03, row, text, va="center")
        return
    norms = cell.get("trajectory", "layer_norm").isel(at | {"time": -1})
    sums = norms.rolling(layer=2).sum().isel(layer=slice(1, None)).transpose("seed", "layer")
    trace, bound = trace.transpose("seed", "pair"), bound.transpose("seed", "pair")
    ends = [float((gap / bound).mean()) for gap in (start, end)]
    identity = float((norm_gap(trace.values, sums.values) / bound).mean())
    ax.plot(ends, [row, row], color=style.categorical(0), linewidth=2.2, alpha=0.4)
    for x, props in (
        (ends[0], START),
        (ends[1], END),
        (identity, IDENTITY),
        (float(np.fmax(adjacent.max(), widest.max())), LARGEST),
    ):
        ax.plot([x], [row], linestyle="", **props)
