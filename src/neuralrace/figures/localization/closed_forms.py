"""Frozen gates against the closed form, as the notes have it and as it holds.

Gated networks whose gates overlap in general, are exclusive, or are redundant, with a copy of each:
the three cases that the notes set out to test. The closed form starts from the same weights, with
nothing fitted. Equation 7 of the notes lacks the readout's 1/K in the second moments, so that its
weights end elsewhere (dotted); equation 30 drops half of the difference of two redundant units,
which stays as it was. With both restored what is left is the error of the steps, of first order in
the learning rate, and nothing at all with the power of the step in the place of the exponential.
Each exclusive pathway ends at least squares on the samples that open it, as the notes have it.
Losses and equations are those of the smallest learning rate, closest to gradient flow.
"""

from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import frozen_gates, style
from neuralrace.figures.sweeps import learning_rate, metric, smallest_scale
from neuralrace.results.cells import CellResults, Results
from neuralrace.theory.frozen_gates import FrozenGates
from neuralrace.theory.printed_equations import written_weights

STATED = {"color": "0.35", "marker": "_", "markersize": 7}
"""Marker of equations as printed in the notes."""
ROUNDING = 1e-18
"""Smaller values are drawn at this value, with the marker `BELOW`."""
BELOW: dict[str, Any] = {"color": "0.3", "marker": "v", "fillstyle": "none"}
SHARES = {"negative_coefficients": "modes with\nnegative $e^C$", "null_share": "null\ndirections"}
"""Names of shares of modes and of directions of the weights, by metric."""
SOLUTIONS = {"frozen_gates": "exponential", "frozen_gates_descent": "power of\nthe step"}
"""Names of the closed forms of gradient flow and of gradient descent."""
FITTED = {"own gate": "own", "next gate": "next", "all": "all"}
"""Names of the samples of least squares."""


@Figure(
    layout="abc;def;ghi",
    height=4.5,
    heights=(1.5, 1.0, 1.0),
    cf={
        "a": "sec. 4.1",
        "b": "sec. 4.2",
        "c": "sec. 4.3",
        "g": "sec. 3.4",
        "h": "eq. 31",
        "i": "eq. 9",
    },
    reads={
        "closed_forms": {
            "trajectory": "loss pathway_maps",
            "theory": "loss",
            "metrics": (
                "corrected_error difference_drift field_error loss_error_sup "
                "negative_coefficients null_share written_error"
            ),
        },
        "exclusive_limit": {"metrics": "least_squares_misfit"},
    },
)
def legend(results: Results) -> style.Handles:
    """Gating schemes, the closed form, and equations of the notes."""
    return [
        *(style.handle(name, **props) for name, props in _styles(results).items()),
        style.handle("closed form", **style.THEORY),
        style.handle("notes, eq. 7", **style.PAPER),
        style.handle("notes", linestyle="", **STATED),
        style.handle("slope 1", **style.GUIDE),
        style.handle(f"below {ROUNDING:g}", linestyle="", **BELOW),
        style.BAND,
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Loss with gates that overlap in general."""
    _loss(results, ax, 0)


def panel_b(results: Results, ax: Axes) -> None:
    """Loss with exclusive gates, of which one is open at a time."""
    _loss(results, ax, 1)


def panel_c(results: Results, ax: Axes) -> None:
    """Loss with redundant gates, two copies of each."""
    _loss(results, ax, -1)


def panel_d(results: Results, ax: Axes) -> None:
    """Distance of the weights from the closed form at the end, over their norm."""
    largest = []
    styles = _styles(results)
    for name, cells in _by_scheme(results).items():
        rates = list(map(learning_rate, cells))
        errors = [metric(cell, "field_error", solution="frozen_gates") for cell in cells]
        means = style.point_series(ax, rates, errors, **styles[name])
        style.slope_one(ax, rates, means[-1])
        largest += means
    style.loglog(ax, sorted({learning_rate(cell) for cell in results.cells("closed_forms")}))
    ax.set(xlabel=r"learning rate (units of $\tau$ per step)", ylabel="distance of weights")
    ax.set_title(f"Steps add {max(largest):.1g} at most")


def panel_e(results: Results, ax: Axes) -> None:
    """Largest distance of the loss from theory over the initial loss: by the flow, and by steps."""
    exact = []
    for offset, cell, props in _spread(results):
        for position, solution in enumerate(SOLUTIONS):
            error = metric(cell, "loss_error_sup", solution=solution)
            _point(ax, position + offset, error, props)
        exact.append(float(error.max("seed")))
    style.named_columns(ax, SOLUTIONS.values())
    ax.set(yscale="log", ylabel="distance of loss")
    ax.set_title(f"Step by step: {max(exact):.0e} at most")


def panel_f(results: Results, ax: Axes) -> None:
    """Distance of the weights at the end from equations, corrected (coloured) and as printed."""
    least = []
    for offset, cell, props in _spread(results):
        for name, mark in (("corrected_error", props), ("written_error", STATED)):
            errors = metric(cell, name).dropna("equation", how="all")
            equations = cell.metrics[name]["equation"].values.tolist()
            known = errors["equation"].values.tolist()
            positions = [equations.index(equation) + offset for equation in known]
            means = style.point_series(ax, positions, errors.transpose("equation", "seed"), **mark)
            least += means * (name == "written_error")
    ax.set_xticks(range(len(equations)), equations)
    ax.set(yscale="log", xlabel="equation of the notes", ylabel="distance of weights")
    ax.set_title(f"As printed: {min(least, default=np.nan):.1g} or more")


def panel_g(results: Results, ax: Axes) -> None:
    """Distance of exclusive pathways from least squares on the samples of a gate, or all."""
    cell = results.cells("exclusive_limit")[0]
    misfit = metric(cell, "least_squares_misfit")
    own, *_ = (
        _point(ax, position, misfit.sel(fitted_on=samples), props | {"markersize": 5})
        for position, (samples, props) in enumerate(style.styled(list(FITTED)))
    )
    style.named_columns(ax, FITTED.values())
    ax.set(yscale="log", xlabel="samples of the gate", ylabel="distance from\nleast squares")
    ax.set_title(f"Own samples: {own:.0e}")


def panel_h(results: Results, ax: Axes) -> None:
    """Change of the difference of neighbouring units over its start; redundant ones keep it."""
    drifts = [
        _point(ax, position, metric(cell, "difference_drift"), props)
        for position, (_, cell, props) in enumerate(_spread(results))
    ]
    style.named_columns(ax, [name.replace(", ", ",\n") for name in _by_scheme(results)])
    ax.set(yscale="log", ylabel="drift of $w_1 - w_2$")
    ax.set_title(f"Least drift: {min(drifts):.0e}")


def panel_i(results: Results, ax: Axes) -> None:
    """Modes in which exp(C) 1 would be negative, and directions in which inputs do not vary."""
    negative = []
    for offset, cell, props in _spread(results):
        positions = [position + offset for position in range(len(SHARES))]
        shares = [metric(cell, name) for name in SHARES]
        negative.append(style.point_series(ax, positions, shares, **props)[0])
    ax.axhline(0.5, **style.GUIDE)
    style.named_columns(ax, SHARES.values())
    ax.set(ylabel="share", ylim=(-0.05, 1))
    ax.set_title(f"{min(negative):.0%} or more negative")


def written_loss(cell: CellResults) -> Float[np.ndarray, "seed time"]:
    """Loss by eq. 7 of the notes, from the initial weights of the smallest init scale."""
    data, gating = cell.data, frozen_gates.gates(cell)
    network = FrozenGates.from_samples(data.x, data.y[:, 0], gating.gates(data))
    start = smallest_scale(cell.receptive_fields).isel(snapshot=0).values
    a = network.a.reshape(2 * (network.b.size,))
    paths = [
        written_weights(
            cell.flow_time.values, network.b.ravel(), a, len(network.b), run.ravel()
        ).reshape(-1, *run.shape)
        for run in start.astype(float)
    ]
    return cell.spec.training.loss.factor(len(data.x)) * network.loss(np.stack(paths))


def _by_scheme(results: Results) -> dict[str, list[CellResults]]:
    """Cells by gating scheme, smallest learning rate first."""
    by_scheme: dict[str, list[CellResults]] = {}
    for cell in results.cells("closed_forms"):
        by_scheme.setdefault(frozen_gates.scheme_name(frozen_gates.gates(cell)), []).append(cell)
    return {name: sorted(cells, key=learning_rate) for name, cells in by_scheme.items()}


def _styles(results: Results) -> dict[str, dict[str, Any]]:
    """Colour and marker of each gating scheme."""
    return dict(style.styled(list(_by_scheme(results))))


def _loss(results: Results, ax: Axes, index: int) -> None:
    """Draws the loss of training, its closed form, and the loss by eq. 7 of the notes."""
    name, cells = list(_by_scheme(results).items())[index]
    cell, head = cells[0], ax
    ax = style.split(ax, 1)[0, 0]  # The title needs the full width of the panel.
    loss = smallest_scale(cell.get("trajectory", "loss"))
    theory = smallest_scale(cell.get("theory", "loss", solution="frozen_gates"))
    printed = written_loss(cell).mean(axis=0)
    style.over_seeds(ax, cell.flow_time, loss, color=_styles(results)[name]["color"])
    ax.plot(cell.flow_time, theory.mean("seed"), **style.THEORY)
    ax.plot(cell.flow_time, printed, **style.PAPER)
    ax.set(xlim=(0, style.settling_time(loss, cell.flow_time)), ylim=(0, None))
    ax.set(xlabel=style.FLOW_TIME, ylabel="loss")
    over = printed[-1] / float(loss.isel(time=-1).mean("seed"))
    head.set_title(f"{name}: {over:.1f} times by eq. 7")


def _spread(results: Results) -> list[tuple[float, CellResults, dict[str, Any]]]:
    """The cell of the smallest learning rate of each scheme, with an offset and its marker."""
    schemes, styles = _by_scheme(results), _styles(results)
    offsets = 0.22 * (np.arange(len(schemes)) - (len(schemes) - 1) / 2)
    return [
        (offset, cells[0], styles[name])
        for offset, (name, cells) in zip(offsets, schemes.items(), strict=True)
    ]


def _point(ax: Axes, position: int | float, values: xr.DataArray, props: dict[str, Any]) -> float:
    """Draws a mean on a logarithmic axis, as `BELOW` if it is below rounding, and returns it."""
    mean = float(values.mean("seed"))
    shown = props if mean > ROUNDING else BELOW
    style.points(ax, position, values.clip(min=ROUNDING), **shown)
    return mean
