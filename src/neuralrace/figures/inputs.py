"""Figure inputs: checks that the configured cells will have all variables that a figure reads."""

from collections.abc import Mapping

from neuralrace.config.cell import Cell
from neuralrace.config.location import Files, file_of
from neuralrace.config.variables import REGISTRIES, why_absent
from neuralrace.errors import UserError, did_you_mean
from neuralrace.extensions.registry import FIGURES
from neuralrace.figures import matching_cells, variables


def experiments_of(figure: str) -> list[str]:
    """The experiments `paper/experiment` that a figure names without a glob.

    Args:
        figure: its name, `paper/figure`.
    """
    paper = figure.partition("/")[0]
    names = " ".join(FIGURES[figure].declaration.reads).split()
    required = [name for name in names if not set(name) & set("*?[")]
    return [name if "/" in name else f"{paper}/{name}" for name in required]


def cells_of_figure(figure: str, cells: Mapping[str, Cell], files: Files) -> list[str]:
    """The cells that a figure shows, in the order of `cells`.

    Args:
        figure: its name, `paper/figure`.
        cells: all configured cells, by `paper/experiment/label`.
        files: content of the configuration files, as in `neuralrace.config.load.read_plan`.

    Raises:
        UserError: an experiment that the figure names without a glob has no cell, or a cell will
            lack a variable that the figure reads.
    """
    configured = {cell.rpartition("/")[0] for cell in cells}
    for experiment in experiments_of(figure):
        if experiment not in configured:
            raise UserError(
                "is not configured, and the figure shows it",
                file=f"figure {figure} ({FIGURES[figure].module})",
                key=f"experiments.{experiment.replace('/', '.')}",
                remedy=f"{did_you_mean(experiment, configured)}add it, in a file of yours by "
                "--config settings=FILE, or leave the figure out",
            )
    shown = matching_cells(figure, cells)
    for cell in shown:
        names = variables(figure, cell)
        for kind, (section, _) in REGISTRIES.items():
            for variable in sorted(names.get(kind, ())):
                if remedy := why_absent(cells[cell], kind, variable):
                    key = ("experiments", *cell.split("/")[:2], *section.split("."))
                    raise UserError(
                        f"the figure {figure} reads {variable!r} in the {kind} of {cell}",
                        file=file_of(key, files),
                        key=".".join(key),
                        remedy=remedy,
                    )
    return shown
