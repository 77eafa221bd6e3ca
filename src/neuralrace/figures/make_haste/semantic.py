"""A deep and a shallow linear network on a semantic hierarchy.

Follows Jarvis, Klein, Rosman and Saxe, fig. 7: four items with seven properties, the modes that
their correlation splits into, and how linear networks learn these. With a hidden layer modes are
learned one after the other, the strongest first, and the loss falls in stages; without, all begin
at once. Curves are means over 10 runs from the smallest init scale, with ranges; dashed are closed
forms from the same initial weights, with nothing fitted. Networks without a hidden layer are ours.
"""

from typing import Any

from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.modes import draw_modes, draw_task
from neuralrace.figures.sweeps import draw_relative_loss, smallest_scale
from neuralrace.results.cells import Results

DEEP, SHALLOW = ("semantic_deep", "aligned_modes"), ("semantic_shallow", "shallow_modes")
"""Experiments, and labels of their solutions."""
NETWORKS: tuple[tuple[str, float, dict[str, Any]], ...] = (
    ("one hidden\nlayer", 0.5, {"color": style.categorical(5)}),
    ("no\nhidden\nlayer", 0.22, {"color": "0.45"}),
)
"""Names of both networks, losses at which these stand, and their colours."""
SHORT = r"flow time (units of $\tau$)"


@Figure(
    layout="aaaa;bc.d",
    height=4.0,
    widths=(1.0, 1.0, 0.02, 1.0),
    heights=(1.35, 1.0),
    cf={"a": "Fig. 7", "b": "Fig. 7"},
    reads={
        "deep_linear/semantic_deep deep_linear/semantic_shallow": {
            "trajectory": "loss mode_strength",
            "theory": "loss mode_strength",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Simulation and theory; all lines have names."""
    simulation = style.handle("simulation", color="0.3", **style.SIMULATION)
    return [simulation, style.BAND, style.handle("closed form", **style.THEORY)]


def panel_a(results: Results, ax: Axes) -> None:
    """Correlation of items and properties, over the variance of inputs, and the singular vectors
    and values it splits into. Singular values are written on grey.
    """
    draw_task(ax, results.cell(DEEP[0]))
    ax.set_title("A hierarchy splits into modes, level by level")


def panel_b(results: Results, ax: Axes) -> None:
    """Mode strengths with a hidden layer; modes 3 and 4 are equally strong."""
    _draw_modes(results, DEEP, ax)
    ax.set_title("Hidden layer: in stages")


def panel_c(results: Results, ax: Axes) -> None:
    """Mode strengths without a hidden layer."""
    _draw_modes(results, SHALLOW, ax)
    ax.set_title("No hidden layer: all at once")


def panel_d(results: Results, ax: Axes) -> None:
    """Loss of both networks as a share of its start."""
    for (experiment, solution), (name, level, props) in zip((DEEP, SHALLOW), NETWORKS, strict=True):
        cell = results.cell(experiment)
        loss = draw_relative_loss(ax, cell, props, {solution: style.THEORY}).mean("seed")
        time = float(cell.flow_time[int((loss > level).sum()) - 1])
        style.note_at(ax, name, (time, level), (6, 5), va="center", **props)
    ax.set(xlabel=SHORT, ylim=(0, None))
    _same_clock(results, ax)
    ax.set_title("Only depth makes stages")


def _draw_modes(results: Results, network: tuple[str, str], ax: Axes) -> None:
    """Draws mode strengths and closed forms, with the numbers of modes at their ends."""
    experiment, solution = network
    cell = results.cell(experiment)
    strengths, closed = (
        smallest_scale(values)
        for values in (
            cell.get("trajectory", "mode_strength"),
            cell.get("theory", "mode_strength", solution=solution),
        )
    )
    draw_modes(ax, cell, strengths, closed)
    names: dict[float, list[str]] = {}
    for mode in style.mode_colours(cell.strength):
        names.setdefault(round(float(cell.target.sel(mode=mode)), 6), []).append(str(mode))
    for height, modes in names.items():
        text = f"mode{'s' * (len(modes) > 1)} {', '.join(modes)}"
        ax.annotate(
            text,
            (1, height),
            (0, 3),
            ax.get_yaxis_transform(),
            "offset points",
            ha="right",
        )
    ax.set(xlabel=SHORT, ylabel="mode strength", ylim=(0, 1.12 * max(names)))
    _same_clock(results, ax)


def _same_clock(results: Results, ax: Axes) -> None:
    """Ends the time axis where the deep network has learned."""
    cell = results.cell(DEEP[0])
    theory = smallest_scale(cell.get("theory", "mode_strength", solution=DEEP[1])).mean("seed")
    ax.set_xlim(0, style.settling_time(theory, cell.flow_time))
