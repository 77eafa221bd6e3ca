"""Whether the cells of a plan will have what a figure is drawn from."""

from collections.abc import Mapping

from neuralrace.config.cell import Cell
from neuralrace.config.location import Files, file_of
from neuralrace.config.variables import REGISTRIES, why_absent
from neuralrace.errors import UserError, did_you_mean
from neuralrace.extensions.registry import FIGURES
from neuralrace.figures import matching_cells, variables


def experiments_of(figure: str) -> list[str]:
    """The experiments that a figure must have, `paper/experiment`.

    Args:
        figure: its name, `paper/figure`.
    """
    paper = figure.partition("/")[0]
    names = " ".join(FIGURES[figure].declaration.reads).split()
    required = [name for name in names if not set(name) & set("*?[")]
    return [name if "/" in name else f"{paper}/{name}" for name in required]


def cells_of_figure(figure: str, cells: Mapping[str, Cell], files: Files) -> list[str]:
    """The cells that a figure shows, in the order given.

    Args:
        figure: its name, `paper/figure`.
        cells: all cells that there are, by `paper/experiment/label`.
        files: content of the configuration files, as in `neuralrace.config.load.read_plan`.

    Raises:
        UserError: there is no cell of an experiment that it names, where a glob may match none; a
            cell will not have a variable that it reads.
    """
    there = {cell.rpartition("/")[0] for cell in cells}
    for experiment in experiments_of(figure):
        if experiment not in there:
            key = f"experiments.{experiment.replace('/', '.')}"
            raise UserError(
                f"figure {figure} ({FIGURES[figure].module}): {key}: is not configured, and the "
                f"figure shows it; {did_you_mean(experiment, there)}add it, in a file of yours by "
                "--config settings=FILE, or leave the figure out"
            )
    found = matching_cells(figure, cells)
    for cell in found:
        read = variables(figure, cell)
        for kind, (place, _) in REGISTRIES.items():
            for variable in sorted(read.get(kind, ())):
                if wrong := why_absent(cells[cell], kind, variable):
                    key = ("experiments", *cell.split("/")[:2], *place.split("."))
                    raise UserError(
                        f"{file_of(key, files)}: {'.'.join(key)}: the figure {figure} reads "
                        f"{variable!r} in the {kind} of {cell}; {wrong}"
                    )
    return found
