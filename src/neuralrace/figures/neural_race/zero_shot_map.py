"""Which pairs are answered that were never trained: a map over partners and init scale.

Figures 5c and 6 of Saxe, Sodhani, Lewallen (2022) are one column and one row of this map, which the
slides do not show. Ten input and ten output domains; each input domain is trained with K output
domains and tested on the others. Values are medians over three runs. The dotted line is the share
that the slides name. The dashed line is where outer weights start as large as the strongest mode
needs them at the end, the cube root of s/d over the sixth root of the number of domains. That is a
scale beyond which the race has no time to run, and no sharp boundary; of the share there is no
theory.
"""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import domains, maps, style
from neuralrace.figures.ends import label_ends
from neuralrace.results.cells import CellResults, Results
from neuralrace.theory.routing import routing_fixed_point

SMALL = 0.1
"""Errors up to this value are small, as in the claims."""
LEAST = 1e-5
"""Lower end of the axis of errors."""
SCALE = r"init scale $\sigma_0$"


@Figure(
    layout="a.b",
    height=2.9,
    widths=(1.15, 0.04, 1.0),
    reads={"zero_shot_map": {"trajectory": "", "metrics": "final_untrained_error"}},
)
def legend(results: Results) -> style.Handles:
    """Boundaries."""
    return [
        style.handle("outer weights start at final size (theory)", **style.THEORY),
        style.handle(f"Saxe et al.: {domains.PAPER_SHARE:.0%}", **style.PAPER),
        style.handle(f"error of {SMALL:g}", color="0.6", linewidth=1.2),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Relative error of untrained pairs at the end of training; 1 is that of a network that answers
    zero, and errors above have its colour. The grey line interpolates an error of a tenth.
    """
    table = untrained_errors(results)
    maps.draw_map(ax, table, "error on untrained pairs", extend="max")
    maps.draw_boundary(ax, table, SMALL, color="0.7", linewidth=1.4)
    (x,) = maps.position(table, "x", [domains.PAPER_SHARE])
    ax.axvline(x, **maps.PAPER)
    learned = learned_scale(results.cells("zero_shot_map")[0])
    (y,) = maps.position(table, "y", [learned], log=True)
    ax.axhline(y, **maps.BOUNDARY)
    ax.set(xlabel=domains.PARTNER_LABEL, ylabel=f"{SCALE} (steps are uneven)")
    ax.set_title("Untrained pairs need partners and small starts")


def panel_b(results: Results, ax: Axes) -> None:
    """The same errors against the init scale, a line for each number K of partners; every
    second line is named.
    """
    cells, table = results.cells("zero_shot_map"), untrained_errors(results)
    count = cells[0].spec.dataset.count
    shares, ends = table["x"].values, []
    for number, colour in enumerate(style.sequential(len(shares), style.PURPLE)):
        errors = table.isel(x=number)
        ax.plot(table["y"], errors, color=colour, linewidth=1.5)
        if number % 2 == 0:
            partners = f"{shares[number] * count:.0f}"
            ends.append((float(errors[-1]), partners if ends else f"$K$ = {partners}", colour))
    ax.axvline(learned_scale(cells[0]), **style.THEORY)
    ax.axhline(SMALL, **style.GUIDE)
    style.note_at(ax, f"error {SMALL:g}", (0, SMALL), (3, 2))
    runs = cells[0].get("metrics", "final_untrained_error").sizes["seed"]
    corner = {"xycoords": "axes fraction", "ha": "right"}
    style.note_at(
        ax, f"lines: $K$ = 1 to {len(shares)}\n(medians of\n{runs} runs)", (1, 0), (-3, 4), **corner
    )
    ax.set(yscale="log", xlabel=SCALE, ylabel="error on untrained pairs")
    ax.set_xlim(0, float(table["y"][-1]))
    ax.set_ylim(LEAST, 3)
    label_ends(ax, ends)
    ax.set_title("Large starts spoil transfer")


def untrained_errors(results: Results) -> xr.DataArray:
    """Median error of untrained pairs over seeds, by init scale (y) and trained share (x)."""
    errors = {}
    for cell in results.cells("zero_shot_map"):
        medians = cell.get("metrics", "final_untrained_error").median("seed")
        for scale, error in zip(medians["init_scale"].values, medians.values, strict=True):
            errors[round(domains.partner_share(cell), 6), float(scale)] = float(error)
    return maps.grid(errors)


def learned_scale(cell: CellResults) -> float:
    """Strength of the outer layers in the strongest mode, when it is learned from a small start."""
    data = cell.domains
    strongest = np.linalg.svd(np.linalg.pinv(data.inputs[0]) @ data.targets[0])[1][:1]
    hidden = routing_fixed_point(strongest, np.ones(1), np.zeros(1), data.count)
    return float(hidden[0] / np.sqrt(data.count))
