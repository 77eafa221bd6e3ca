"""Singular modes learned one by one from small random weights.

Mode strengths of a network with one hidden layer (means, bands over the range of seeds) follow the
closed form, which starts from the initial weights of each run with nothing fitted. The smaller the
weights at the start, the longer each mode waits and the further the stairs are apart.
"""

from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes

from neuralrace.figures import style
from neuralrace.records.results import CellResults, Results
from neuralrace.registry import Figure


@Figure(
    layout="abc;ddd",
    height=3.6,
    cf={"b": "Fig. 3, left"},
    reads={
        "staircase": {
            "trajectory": "loss mode_strength",
            "theory": "loss mode_strength",
        },
    },
)
def legend(results: Results) -> Sequence[Artist]:
    """Modes by singular value."""
    theory = style.entry("closed form", **style.THEORY)
    return [*style.mode_entries(results.cell("staircase").strength), style.BAND, theory]


def panel_a(results: Results, ax: Axes) -> None:
    """Mode strengths from the smallest weights."""
    _modes(results.cell("staircase"), 0, ax)


def panel_b(results: Results, ax: Axes) -> None:
    """Mode strengths from weights ten times as large."""
    _modes(results.cell("staircase"), 1, ax)


def panel_c(results: Results, ax: Axes) -> None:
    """Mode strengths from weights a hundred times as large."""
    _modes(results.cell("staircase"), 2, ax)


def panel_d(results: Results, ax: Axes) -> None:
    """Loss at all init scales, a stair for each mode."""
    cell = results.cell("staircase")
    loss, time = cell.get("trajectory", "loss"), cell.flow_time
    closed = cell.get("theory", "loss", solution="aligned_modes").mean("seed")
    scales = loss["init_scale"].values
    for scale, colour in zip(scales, style.ordered(len(scales)), strict=True):
        at = {"init_scale": scale}
        style.over_seeds(ax, time, loss.sel(at), color=colour, label=f"{scale:g}")
        ax.plot(time, closed.sel(at), **style.THEORY)
    ax.legend(title="init scale", loc="upper right")
    ax.set(xlabel=style.FLOW_TIME, ylabel="training loss", xlim=(0, time[-1]))
    ax.set_title("The loss falls in stairs, one for each mode")


def _modes(cell: CellResults, index: int, ax: Axes) -> None:
    modes = cell.get("trajectory", "mode_strength").isel(init_scale=index)
    closed = cell.get("theory", "mode_strength", solution="aligned_modes").mean("seed")
    time = cell.flow_time
    for mode, colour in style.mode_colours(cell.strength).items():
        style.over_seeds(ax, time, modes.sel(mode=mode), color=colour)
        ax.plot(time, closed.isel(init_scale=index).sel(mode=mode), **style.THEORY)
    style.epochs(ax, time)
    ax.set(xlabel=style.FLOW_TIME, ylabel="mode strength", xlim=(0, time[-1]))
    ax.set_title(f"Init scale {float(modes['init_scale']):g}")
