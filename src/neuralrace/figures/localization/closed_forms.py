"""Closed forms for frozen gates, as the notes have them and as they hold (sec. 4)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from neuralrace.figures import frozen, gated, style
from neuralrace.records.results import CellResults, Results
from neuralrace.registry import Figure
from neuralrace.theory.as_written import written_weights
from neuralrace.theory.frozen_gates import FrozenGates

STATED = {"color": "0.35", "marker": "_", "markersize": 6}


@Figure(
    reads={
        "closed_forms": {
            "trajectory": "loss pathway_maps",
            "theory": "loss",
            "metrics": "corrected_error field_error written_error",
        },
    }
)
def draw(results: Results) -> Canvas:
    """Loss over time by gating scheme, distances by learning rate, and by equation.

    Losses and equations are those of the smallest learning rate, closest to gradient flow.
    """
    schemes = _by_scheme(results.cells("closed_forms"))
    looks: list[dict[str, Any]] = [
        {"color": colour, "marker": style.marker(index)}
        for index, colour in enumerate(style.ordered(len(schemes)))
    ]
    figure = Canvas(figsize=(style.COLUMN, 3.2 + 0.95 * len(schemes)))
    *losses, rates, equations = figure.subplots(
        len(schemes) + 2, 1, height_ratios=[*[1] * len(schemes), 1.3, 1.2]
    )
    for ax, cells, look in zip(losses, schemes.values(), looks, strict=True):
        _draw_loss(ax, cells[0], look["color"])
    losses[-1].set_xlabel(style.FLOW_TIME)
    _draw_rates(rates, list(schemes.values()), looks)
    _draw_equations(equations, [cells[0] for cells in schemes.values()], looks)
    titles = [f"loss, {name}" for name in schemes]
    style.letters(
        [*losses, rates, equations],
        [
            *titles,
            "end of training against closed form",
            "by equation, corrected and of the notes",
        ],
    )
    entries = [style.entry(name, **look) for name, look in zip(schemes, looks, strict=True)]
    theory = [
        style.entry("closed form", **style.THEORY),
        style.entry("notes, eq. 7", **style.PAPER),
        style.entry("notes, by equation", linestyle="", **STATED),
        style.entry("slope 1", **style.GUIDE),
        style.BAND,
    ]
    style.legend(figure, [*entries, *theory], columns=2)
    return figure


def _by_scheme(cells: Sequence[CellResults]) -> dict[str, list[CellResults]]:
    """Cells by gating scheme, smallest learning rate first."""
    found: dict[str, list[CellResults]] = {}
    for cell in sorted(cells, key=_rate):
        found.setdefault(frozen.scheme(frozen.gates(cell)), []).append(cell)
    order = dict.fromkeys(frozen.scheme(frozen.gates(cell)) for cell in cells)
    return {name: found[name] for name in order}


def _rate(cell: CellResults) -> float:
    return cell.spec.training.learning_rate


def _draw_loss(ax: Axes, cell: CellResults, colour: Any) -> None:
    """Loss of training, its closed form, and that by eq. 7 of the notes."""
    loss = gated.smallest(cell.get("trajectory", "loss"))
    theory = gated.smallest(cell.get("theory", "loss", solution="frozen_gates"))
    style.over_seeds(ax, cell.flow_time, loss, color=colour)
    ax.plot(cell.flow_time, theory.mean("seed"), **style.THEORY)
    ax.plot(cell.flow_time, written_loss(cell).mean(axis=0), **style.PAPER)
    ax.set(xlim=(0, style.settled(loss, cell.flow_time)), ylim=(0, None), ylabel="loss")


def written_loss(cell: CellResults) -> Float[np.ndarray, "seed time"]:
    """Loss by eq. 7 of the notes, from the initial weights of the smallest init scale."""
    data, gating = cell.data, frozen.gates(cell)
    network = FrozenGates.from_samples(data.x, data.y[:, 0], gating.gates(data))
    start = gated.smallest(cell.receptive_fields).isel(snapshot=0).values
    a = network.a.reshape(2 * (network.b.size,))
    paths = [
        written_weights(
            cell.flow_time.values, network.b.ravel(), a, len(network.b), each.ravel()
        ).reshape(-1, *each.shape)
        for each in start.astype(float)
    ]
    return cell.spec.training.loss.factor(len(data.x)) * network.loss(np.stack(paths))


def _draw_rates(
    ax: Axes, schemes: Sequence[Sequence[CellResults]], looks: Sequence[dict[str, Any]]
) -> None:
    """Distance of weights from the closed form at the end, by learning rate."""
    for cells, look in zip(schemes, looks, strict=True):
        errors = [
            gated.smallest(cell.get("metrics", "field_error", solution="frozen_gates"))
            for cell in cells
        ]
        rates = list(map(_rate, cells))
        for rate, error in zip(rates, errors, strict=True):
            style.points(ax, rate, error, **look)
        style.slope_one(ax, rates, float(errors[-1].mean("seed")))
    style.loglog(ax, sorted({_rate(cell) for cells in schemes for cell in cells}))
    ax.set(
        xlabel=r"learning rate (flow time per step, units of $\tau$)", ylabel="distance\nof weights"
    )


def _draw_equations(
    ax: Axes, cells: Sequence[CellResults], looks: Sequence[dict[str, Any]]
) -> None:
    """Distance of weights from equations at the end, corrected and of the notes."""
    for index, (cell, look) in enumerate(zip(cells, looks, strict=True)):
        forms = (("corrected_error", look), ("written_error", STATED))
        for metric, style_of in forms:
            errors = gated.smallest(cell.get("metrics", metric))
            names = errors["equation"].values.tolist()
            for place, name in enumerate(names):
                error = errors.sel(equation=name)
                if error.notnull().any():
                    offset = 0.2 * (index - (len(cells) - 1) / 2)
                    style.points(ax, place + offset, error, **style_of)
    ax.set_xticks(range(len(names)), names)
    ax.set(yscale="log", xlabel="equation of the notes", ylabel="distance\nof weights")
