"""Cells and runs of a sweep: by init scale, by learning rate, and typed datasets of cells."""

from collections.abc import Mapping
from typing import Any, TypeVar

import xarray as xr
from matplotlib.axes import Axes

from neuralrace.datasets.base import Dataset
from neuralrace.errors import UserError
from neuralrace.figures import style
from neuralrace.results.cells import CellResults, Results

D = TypeVar("D", bound=Dataset)


def smallest_scale_index(cell: CellResults) -> int:
    """Index of the smallest init scale of a cell."""
    return int(cell.trajectory["init_scale"].values.argmin())


def smallest_scale(values: xr.DataArray) -> xr.DataArray:
    """Values of the runs from the smallest init scale."""
    return values.isel(init_scale=int(values["init_scale"].values.argmin()), drop=True)


def relative_loss(loss: xr.DataArray) -> xr.DataArray:
    """Loss over initial loss of the runs from the smallest init scale."""
    loss = smallest_scale(loss)
    return loss / loss.isel(time=0, drop=True)


def metric(cell: CellResults, name: str, **labels: str) -> xr.DataArray:
    """A metric of the runs from the smallest init scale."""
    return smallest_scale(cell.get("metrics", name, **labels))


def metric_mean(cell: CellResults, name: str, **labels: str) -> float:
    """A metric of the runs from the smallest init scale, the mean over seeds."""
    return float(metric(cell, name, **labels).mean("seed"))


def draw_relative_loss(
    ax: Axes,
    cell: CellResults,
    props: Mapping[str, Any],
    solutions: Mapping[str, Mapping[str, Any]] | None = None,
) -> xr.DataArray:
    """Loss over initial loss of a cell, (seed, time), with solutions on top.

    Args:
        ax: axes to draw on; their y axis gets a label.
        cell: the cell.
        props: properties of the line.
        solutions: properties of the lines of theory, by label of the solution.
    """
    loss = relative_loss(cell.get("trajectory", "loss"))
    style.over_seeds(ax, cell.flow_time, loss, **props)
    for solution, line in (solutions or {}).items():
        theory = relative_loss(cell.get("theory", "loss", solution=solution))
        ax.plot(cell.flow_time, theory.mean("seed"), **line)
    ax.set_ylabel("loss over initial loss")
    return loss


def learning_rate(cell: CellResults) -> float:
    """The learning rate of a cell."""
    return cell.spec.training.learning_rate


def finest(results: Results, experiment: str) -> CellResults:
    """The cell of an experiment with the smallest learning rate, closest to gradient flow."""
    return min(results.cells(experiment), key=learning_rate)


def layer_widths(cell: CellResults) -> tuple[int, ...]:
    """Widths of all layers of a fully connected network, from inputs to outputs."""
    return (cell.data.x.shape[1], *cell.spec.layered.hidden, cell.data.y.shape[1])


def dataset_of(cell: CellResults, dataset_class: type[D], part: str) -> D:
    """The dataset of a cell, of the class that a figure can draw.

    Args:
        cell: results of any dataset.
        dataset_class: the class that the dataset must have.
        part: what other datasets lack, for the message.

    Raises:
        UserError: a dataset of another class.
    """
    dataset = cell.spec.dataset
    if not isinstance(dataset, dataset_class):
        raise cannot_draw(cell, "dataset", part)
    return dataset


def cannot_draw(cell: CellResults, section: str, part: str) -> UserError:
    """The error of a figure whose cell lacks what it draws.

    Args:
        cell: the cell.
        section: section of its specification, `dataset` or `network`.
        part: what the section lacks.
    """
    experiment = ".".join(cell.name.split("/")[:2])
    return UserError(
        f"has no {part} to draw",
        key=f"experiments.{experiment}.{section}.name",
        value=getattr(cell.spec, section).name,
        remedy="configure one that has, or leave the figure out",
    )
