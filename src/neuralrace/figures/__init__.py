"""Figures of papers, with one module for each figure, and code that draws and saves them.

The package itself says which cells, files and variables a figure reads. It does not import xarray
or matplotlib. A panel is a function of results and axes, which also fits into other figures:

    neuralrace.figures.deep_linear.staircase.panel_a(neuralrace.open_results("results"), ax)
"""

import re
from collections.abc import Iterable
from fnmatch import translate
from functools import cache
from importlib import import_module
from types import ModuleType

from neuralrace.extensions.registry import FIGURES


def variables(figure: str, cell: str) -> dict[str, set[str]]:
    """Variables that a figure `paper/figure` reads of `paper/experiment/label`, by kind of file."""
    paper, names_by_kind = figure.partition("/")[0], {}
    for experiments, kinds in FIGURES[figure].declaration.reads.items():
        if _cells(paper, experiments).match(cell):
            for kind, names in kinds.items():
                names_by_kind.setdefault(kind, set()).update(names.split())
    return names_by_kind


def matching_cells(figure: str, cell_ids: Iterable[str]) -> list[str]:
    """The cells that a figure shows, in the order of `cell_ids`."""
    reads = FIGURES[figure].declaration.reads
    shown = _cells(figure.partition("/")[0], " ".join(name for name in reads if reads[name]))
    return [cell for cell in cell_ids if shown.match(cell)]


@cache
def _cells(paper: str, experiments: str) -> re.Pattern[str]:
    """Pattern of the cells of experiments: names of the paper, or `paper/name`, between spaces."""
    globs = [name if "/" in name else f"{paper}/{name}" for name in experiments.split()]
    return re.compile("|".join(translate(f"{glob}/*") for glob in globs) or "(?!)")


def input_files(figure: str, cell_ids: Iterable[str]) -> list[tuple[str, str]]:
    """Cell and kind of the files that a figure reads."""
    return [(cell, kind) for cell in cell_ids for kind in variables(figure, cell)]


def __getattr__(paper: str) -> ModuleType:
    # Figure modules load matplotlib, so that they are imported at the first access to a paper.
    modules = [entry.module for name, entry in FIGURES.items() if name.startswith(f"{paper}/")]
    own = [name for name in modules if name.startswith(f"{__name__}.")]
    if not own:
        raise AttributeError(f"module {__name__!r} has no attribute {paper!r}")
    for name in own:
        import_module(name)
    return import_module(f"{__name__}.{paper}")
