"""Figures: one module each, found by listing; see `neuralrace.registry`.

What is here says what a figure reads of a plan, and loads neither xarray nor matplotlib. A panel is
a function of results and axes, to be put into a figure of one's own:

    neuralrace.figures.deep_linear.staircase.panel_a(neuralrace.open_results("results"), ax)
"""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from importlib import import_module
from types import ModuleType

from neuralrace.registry import FIGURES


def variables(figure: str, cell: str) -> dict[str, set[str]]:
    """What a figure `paper/figure` reads of a cell `paper/experiment/label`, by kind of file."""
    paper, found = figure.partition("/")[0], {}
    for experiments, kinds in FIGURES[figure].declaration.reads.items():
        globs = (name if "/" in name else f"{paper}/{name}" for name in experiments.split())
        if any(fnmatchcase(cell, f"{glob}/*") for glob in globs):
            for kind, names in kinds.items():
                found.setdefault(kind, set()).update(names.split())
    return found


def matching(figure: str, cell_ids: Iterable[str]) -> list[str]:
    """The cells that a figure shows, in the order given."""
    return [cell for cell in cell_ids if variables(figure, cell)]


def inputs(figure: str, cell_ids: Iterable[str]) -> list[tuple[str, str]]:
    """Cell and kind of the files that a figure reads."""
    return [(cell, kind) for cell in cell_ids for kind in variables(figure, cell)]


def __getattr__(paper: str) -> ModuleType:
    # its figures are imported when they are asked for
    modules = [entry.module for name, entry in FIGURES.items() if name.startswith(f"{paper}/")]
    own = [name for name in modules if name.startswith(f"{__name__}.")]
    if not own:
        raise AttributeError(f"module {__name__!r} has no attribute {paper!r}")
    for name in own:
        import_module(name)
    return import_module(f"{__name__}.{paper}")
