r"""Which correlation lengths make units localise, for every activation.

The notes (sec. 1) have ReLU networks localise if the class with :math:`y = 1` has the longer
correlation length :math:`\xi_1 > \xi_2`, and oscillate otherwise. Each panel shows all pairs of
lengths at gain 3: the share of localised units at the end, of 24 units of one run, as shade and as
number. On the grey line both classes are the same, and there is nothing to learn. By symmetry the
two orders are one task for sigmoid networks, and for erf networks with the offset
:math:`b_2 = 1/2`: there each entry is the mean of both orders, two runs. Near the line classes
differ little, and training is short. Runs are of fewer units, fewer steps and smaller batches than
those of the figure classes, whose ranges over five runs an entry can leave.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.image import AxesImage

from neuralrace.extensions.registry import Figure
from neuralrace.figures import maps, style
from neuralrace.figures.receptive_fields import process
from neuralrace.figures.sweeps import metric_mean
from neuralrace.results.cells import CellResults, Results


@Figure(
    layout="ab;cd",
    height=4.3,
    cf={"a": "sec. 1", "b": "sec. 1"},
    reads={
        "lengths_relu lengths_erf lengths_erf_offset lengths_sigmoid": {
            "metrics": "localised_share",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """The line of equal lengths, and what entries of the lower panels are."""
    return [
        style.handle("equal lengths: nothing to learn", **style.GUIDE),
        style.handle("c, d: means of both orders, which are one task", linestyle=""),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """ReLU units."""
    _draw(ax, results.cells("lengths_relu"))
    ax.set_title(r"ReLU units localise if $\xi_1 > \xi_2$")


def panel_b(results: Results, ax: Axes) -> None:
    """Units with the error function, with biases and the offset 0 of the output."""
    _draw(ax, results.cells("lengths_erf"))
    ax.set_title(r"erf: localised if $\xi_1 < \xi_2$, unless both exceed 3")


def panel_c(results: Results, ax: Axes) -> None:
    """Units with the error function and the offset 1/2, here as targets that are lower by 1/2."""
    _draw(ax, results.cells("lengths_erf_offset"), orders_alike=True)
    ax.set_title("erf with offset: fewer localise if both long")


def panel_d(results: Results, ax: Axes) -> None:
    """Sigmoid units with biases."""
    shades = _draw(ax, results.cells("lengths_sigmoid"), orders_alike=True)
    label = "share of localised units"
    ax.figure.colorbar(shades, ax=list(ax.figure.axes), label=label, pad=0.02, aspect=45)
    ax.set_title("Sigmoid units: fewer localise if both long")


def over_orders(shares: Mapping[tuple[float, float], float]) -> dict[tuple[float, float], float]:
    """Means over both orders of each pair of lengths, or of the only order there is."""
    return {
        (one, two): float(np.mean([shares[o] for o in ((one, two), (two, one)) if o in shares]))
        for one, two in shares
    }


def _draw(ax: Axes, cells: Sequence[CellResults], orders_alike: bool = False) -> AxesImage:
    """The share of localised units by the lengths of both classes, or of either order of them."""
    shares = {_lengths(cell): metric_mean(cell, "localised_share") for cell in cells}
    if orders_alike:
        shares = over_orders(shares)
    table = maps.grid(shares)
    rows, columns = ([f"{length:g}" for length in table[dim].values] for dim in ("y", "x"))
    image = style.heat(ax, table.values, 0, 1, rows, columns)
    ax.invert_yaxis()
    for (row, column), share in np.ndenumerate(table.values):
        if np.isfinite(share):
            style.write_entry(ax, image, (row, column), share, f"{round(share, 2):g}")
            ax.texts[-1].set(fontsize=7.5)
    both = sorted({*table["x"].values} & {*table["y"].values})
    if both:
        equal = (maps.position(table, dim, both) for dim in ("x", "y"))
        ax.plot(*equal, **style.GUIDE)
    place = style.subplot_spec(ax)
    if place.is_last_row():
        ax.set_xlabel(r"length $\xi_1$ where $y$ = 1 (inputs)")
    if place.is_first_col():
        ax.set_ylabel(r"length $\xi_2$ where $y$ = 0 (inputs)")
    return image


def _lengths(cell: CellResults) -> tuple[float, float]:
    one, other = process(cell).xi
    return one, other
