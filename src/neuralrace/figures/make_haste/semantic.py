"""A deep and a shallow linear network on a semantic hierarchy.

Follows Jarvis, Klein, Rosman and Saxe, fig. 7: four items with seven properties, the modes that
their correlation splits into, and how linear networks learn these. With a hidden layer modes are
learned one after the other, the strongest first, and the loss falls in stages; without, all begin
at once. Curves are simulations from the smallest init scale, dashed are closed forms from the same
initial weights with nothing fitted.
"""

import numpy as np
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.modes import draw_decomposition, draw_strengths, signed_vectors
from neuralrace.figures.sweeps import draw_relative_loss, smallest_scale, smallest_scale_index
from neuralrace.results.cells import Results

DEEP, SHALLOW = ("semantic_deep", "aligned_modes"), ("semantic_shallow", "shallow_modes")
"""Experiments, and labels of their solutions."""
LABELS = {"one hidden layer": 0, "none": 4}
"""Indices of the colours of both networks, by name."""
SHORT = r"flow time (units of $\tau$)"


@Figure(
    layout="aaa;bcd",
    height=4.0,
    heights=(1.35, 1.0),
    cf={"a": "Fig. 7", "b": "Fig. 7", "d": "Fig. 7"},
    reads={
        "deep_linear/semantic_deep deep_linear/semantic_shallow": {
            "trajectory": "loss mode_strength",
            "theory": "loss mode_strength",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Modes by singular value."""
    theory = style.handle("closed form", **style.THEORY)
    return [*style.mode_handles(results.cell(DEEP[0]).strength), style.BAND, theory]


def panel_a(results: Results, ax: Axes) -> None:
    """Correlation of items and properties, and the singular vectors and values it splits into."""
    cell = results.cell(DEEP[0])
    data, modes = cell.data, cell.data.modes
    u, v = signed_vectors(cell)
    # Orthogonal matrices have entries of at most 1; the others are shares of their largest entry.
    total, middle = data.sigma_yx / data.sigma_yx.max(), np.diag(modes.s) / modes.s[0]
    symbols = (r"$\Sigma^{yx}$", "$=$ $U$", r"$\times$ $S$", r"$\times$ $V^T$")
    axes = draw_decomposition(ax, cell, (total, u, middle, v.T), symbols, data.output_names)
    for part in axes[1:3]:
        part.set_xlabel("mode")
    ax.set_title(f"The hierarchy has {len(modes.s)} modes, from the whole to single items")


def panel_b(results: Results, ax: Axes) -> None:
    """Mode strengths with a hidden layer."""
    first, last = _draw_modes(results, DEEP, ax)
    ax.set_title(
        f"One hidden layer: the last mode takes {last / first:.1f} times as long as the first"
    )


def panel_c(results: Results, ax: Axes) -> None:
    """Mode strengths without a hidden layer."""
    first, last = _draw_modes(results, SHALLOW, ax)
    ax.set_title(f"No hidden layer: the last mode takes {last / first:.1f} times as long")


def panel_d(results: Results, ax: Axes) -> None:
    """Loss of both networks as a share of its start."""
    for (experiment, solution), (label, index) in zip((DEEP, SHALLOW), LABELS.items(), strict=True):
        cell = results.cell(experiment)
        props = {"color": style.categorical(index), "label": label}
        draw_relative_loss(ax, cell, props, {solution: style.THEORY})
    ax.legend(loc="upper right")
    style.epoch_axis(ax, cell.flow_time)
    ax.set(xlabel=SHORT, ylim=(0, None))
    _same_clock(results, ax)
    ax.set_title("With a hidden layer the loss falls in stages, without it at once")


def _draw_modes(results: Results, network: tuple[str, str], ax: Axes) -> tuple[float, float]:
    """Draws mode strengths and closed forms; returns half times of the first and the last mode."""
    experiment, solution = network
    cell = results.cell(experiment)
    draw_strengths(ax, cell, solution, smallest_scale_index(cell))
    ax.set(xlabel=SHORT, ylim=(0, None))
    _same_clock(results, ax)
    strength = smallest_scale(cell.get("trajectory", "mode_strength")).mean("seed")
    below = (strength < cell.target / 2).sum("time").clip(max=len(cell.flow_time) - 1)
    half = cell.flow_time.values[below.sel(mode=list(style.mode_colours(cell.strength)))]
    return float(half[0]), float(half[-1])


def _same_clock(results: Results, ax: Axes) -> None:
    """Ends the time axis where the deep network has learned."""
    cell = results.cell(DEEP[0])
    theory = smallest_scale(cell.get("theory", "mode_strength", solution=DEEP[1])).mean("seed")
    ax.set_xlim(0, style.settling_time(theory, cell.flow_time))
