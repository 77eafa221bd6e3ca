"""The semantic hierarchy: its data, its modes, and what a network makes of them over time."""

import numpy as np
from matplotlib.figure import Figure as Canvas

from neuralrace.figures import style
from neuralrace.records.results import Results
from neuralrace.registry import Figure

STAGES = 4
"""Snapshots of the outputs that are drawn, from the first to the end of learning."""


@Figure(
    reads={
        "semantic_deep": {
            "trajectory": "loss outputs",
        },
    }
)
def draw(results: Results) -> Canvas:
    """Items by properties, singular vectors, and network outputs at stages of development.

    Outputs are means over seeds at the smallest init scale.
    """
    cell = results.cell("semantic_deep")
    data = cell.data
    outputs = cell.get("trajectory", "outputs")
    outputs = outputs.isel(init_scale=int(outputs["init_scale"].values.argmin())).mean("seed")
    times = cell.trajectory["snapshot_flow_time"].values
    end = style.settled(cell.get("trajectory", "loss"), cell.flow_time)
    last = min(int(np.searchsorted(times, end)), len(times) - 1)
    stages = np.unique(np.linspace(0, last, STAGES).round().astype(int))

    figure = Canvas(figsize=(style.COLUMN, 4.3))
    above, below = figure.add_gridspec(2, 1, height_ratios=(2.2, 1))
    grid = above.subgridspec(2, 2, width_ratios=(len(data.output_names), len(data.item_names)))
    table, spectrum, properties, items = (figure.add_subplot(cell) for cell in grid)
    shades = style.heat(table, data.y, 0, 1, data.item_names, data.output_names)
    figure.colorbar(shades, ax=table, label="target", ticks=(0, 1))
    modes = cell.strength["mode"].values
    spectrum.barh(modes, cell.strength, color=style.ordered(len(modes)))
    spectrum.invert_yaxis()
    spectrum.set(yticks=modes, xlabel="singular value")
    # a pair of vectors has no sign of its own: let items sum to what is not negative
    signs = np.where(data.modes.v.sum(0) < -1e-9, -1, 1)
    names = [f"mode {mode}" for mode in modes]
    shades = style.heat(properties, (signs * data.modes.u).T, -1, 1, names, data.output_names)
    figure.colorbar(shades, ax=properties, label="entry", ticks=(-1, 0, 1))
    style.heat(items, (signs * data.modes.v).T, -1, 1, list(map(str, modes)), data.item_names)

    frames = below.subgridspec(1, len(stages)).subplots(squeeze=False)[0]
    for ax, stage in zip(frames, stages, strict=True):
        names = data.item_names if ax is frames[0] else ()
        style.heat(ax, outputs[stage].values, 0, 1, names, data.output_names)
    style.letters(
        [table, spectrum, properties, items, frames[0]],
        ["hierarchy", "its modes", "property vectors", "item vectors", r"$t$ = 0"],
    )
    for ax, stage in zip(frames[1:], stages[1:], strict=True):
        ax.set_title(rf"$t$ = {times[stage]:.3g} $\tau$")
    frames[0].set_ylabel("network outputs")
    return figure
