"""Which receptive fields form, by activation, order of lengths and gain (sec. 1)."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from neuralrace.figures import receptive, style
from neuralrace.records.results import CellResults, Results
from neuralrace.registry import Figure

UNITS = 3
ROWS = {"ReLU": ("relu", "relu_low_gain"), "erf": ("erf",), "sigmoid": ("sigmoid",)}
"""Experiments by activation."""


@Figure(
    reads={
        "relu relu_low_gain erf sigmoid": {
            "trajectory": "weight_1",
            "metrics": "localised_share neither_share oscillating_share",
        },
    }
)
def draw(results: Results) -> Canvas:
    """Units of one run in each condition, above the shares of all units by class."""
    rows = {
        name: {_condition(cell): cell for each in experiments for cell in results.cells(each)}
        for name, experiments in ROWS.items()
    }
    # ReLU networks learn under conditions that the others do not
    columns = list(rows["erf"])
    figure = Canvas(figsize=(style.COLUMN, 3.9))
    grid = figure.add_gridspec(len(rows), len(columns))
    top: dict[str, Axes] = {}
    for row, (name, cells) in enumerate(rows.items()):
        shown = [condition for condition in columns if condition in cells]
        for condition in shown:
            ax = figure.add_subplot(grid[row, columns.index(condition)])
            top.setdefault(condition, ax)
            _draw_units(ax, cells[condition])
            if condition == shown[0]:
                ax.set_ylabel(name)
    figure.supxlabel(receptive.PLACE, fontsize=style.SHEET["axes.labelsize"])
    style.letters([top[condition] for condition in columns], columns)
    style.legend(figure, receptive.class_entries(), columns=3)
    return figure


def _condition(cell: CellResults) -> str:
    """Correlation lengths and marginal."""
    return rf"$\xi$ = {receptive.lengths(cell)}" + f"\n{receptive.marginal(cell)}"


def _draw_units(ax: Axes, cell: CellResults) -> None:
    """Units of the first run, above the shares of all units by class."""
    fields = receptive.learned(cell).isel(seed=0).values
    receptive.draw(ax, receptive.examples(fields, UNITS))
    bottom, top = ax.get_ylim()
    ax.set_ylim(bottom - 0.1 * (top - bottom), top)
    receptive.draw_shares(ax, cell, 0.04, height=0.08, transform=ax.transAxes)
