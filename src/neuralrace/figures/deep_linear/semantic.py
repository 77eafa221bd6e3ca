"""The semantic hierarchy: its data, its modes, and what a network makes of them over time."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from neuralrace.figures import style
from neuralrace.figures.results import Results

STAGES = 6
"""Snapshots of the outputs that are drawn, the first and the last among them."""


def draw(results: Results) -> Figure:
    """Items by properties, singular vectors, and network outputs at stages of development.

    Outputs are means over seeds at the smallest init scale.
    """
    (cell,) = results.cells("semantic_deep")
    data = cell.evidence.data
    outputs = cell.get("trajectory", "outputs")
    outputs = outputs.isel(init_scale=int(outputs["init_scale"].values.argmin())).mean("seed")
    stages = np.unique(np.linspace(0, outputs.sizes["snapshot"] - 1, STAGES).round().astype(int))
    times = cell.trajectory["snapshot_flow_time"].values

    figure = Figure(figsize=(style.COLUMN, 5.2))
    above, below = figure.add_gridspec(2, 1, height_ratios=(1.25, 1))
    grid = above.subgridspec(2, 2, width_ratios=(len(data.output_names), len(data.item_names)))
    table, spectrum, properties, items = (figure.add_subplot(cell) for cell in grid)
    shades = _matrix(table, data.y, data.output_names, data.item_names, 0, 1)
    figure.colorbar(shades, ax=table, label="target", ticks=(0, 1))
    modes = cell.strength["mode"].values
    spectrum.barh(modes, cell.strength, color=style.ordered(len(modes)))
    spectrum.invert_yaxis()
    spectrum.set(yticks=modes, xlabel="singular value")
    signs = np.sign(data.modes.v.sum(0) + 1e-9)  # a pair of vectors has no sign of its own
    names = [f"mode {mode}" for mode in modes]
    shades = _matrix(properties, (signs * data.modes.u).T, data.output_names, names, -1, 1)
    figure.colorbar(shades, ax=properties, label="entry", ticks=(-1, 0, 1))
    _matrix(items, (signs * data.modes.v).T, data.item_names, modes, -1, 1)

    grid = below.subgridspec(-(-len(stages) // 3), 3)
    frames = [figure.add_subplot(grid[index // 3, index % 3]) for index in range(len(stages))]
    for ax, stage in zip(frames, stages, strict=True):
        first = ax.get_subplotspec().is_first_col()
        last = ax.get_subplotspec().is_last_row()
        _matrix(
            ax,
            outputs[stage].values,
            data.output_names if last else (),
            data.item_names if first else (),
            0,
            1,
        )
    style.letters(
        [table, spectrum, properties, items, frames[0]],
        ["hierarchy", "its modes", "property vectors", "item vectors", "outputs at"],
    )
    for ax, stage in zip(frames, stages, strict=True):
        ax.set_title(rf"$t$ = {times[stage]:g} $\tau$", loc="right")
    return figure


def _matrix(
    ax: Axes,
    values: np.ndarray,
    columns: Sequence[object],
    rows: Sequence[object],
    low: float,
    high: float,
) -> AxesImage:
    """A matrix as shades, with names on its sides."""
    image = ax.imshow(values, cmap=style.HEAT, vmin=low, vmax=high, aspect="auto")
    ax.set_xticks(range(len(columns)), columns, rotation=60, ha="right", rotation_mode="anchor")
    ax.set_yticks(range(len(rows)), rows)
    ax.tick_params(length=0)
    return image
