"""Figures: one module each, found by listing.

The figure `paper/figure` is the function `draw` of `neuralrace.figures.<paper>.<figure>`, which
declares by `drawn_from` what it reads. This registry takes that from the source and loads neither
xarray nor matplotlib, so that the workflow can plan with it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeVar

from neuralrace.source import declared

Reads = Mapping[str, Mapping[str, str]]
D = TypeVar("D", bound=Callable)


@dataclass(frozen=True)
class Figure:
    """What a figure is drawn from."""

    paper: str
    reads: Reads
    """Variables of each kind of file (trajectory, theory, metrics), by experiments; names stand
    side by side, and none where only the specification in the file is read. An experiment is of
    the figure's paper or `paper/experiment`, or a glob, which may match none."""

    def variables(self, cell: str) -> dict[str, set[str]]:
        """What it reads of a cell `paper/experiment/label`, by kind of file."""
        found: dict[str, set[str]] = {}
        for experiments, kinds in self.reads.items():
            if any(self._shows(name, cell) for name in experiments.split()):
                for kind, names in kinds.items():
                    found.setdefault(kind, set()).update(names.split())
        return found

    def matching(self, cell_ids: Sequence[str]) -> list[str]:
        """The cells that the figure shows, in the order given."""
        return [cell for cell in cell_ids if self.variables(cell)]

    def inputs(self, cell_ids: Sequence[str]) -> list[tuple[str, str]]:
        """Cell and kind of the files it reads."""
        return [(cell, kind) for cell in cell_ids for kind in self.variables(cell)]

    def _shows(self, experiment: str, cell: str) -> bool:
        glob = experiment if "/" in experiment else f"{self.paper}/{experiment}"
        return fnmatchcase(cell, f"{glob}/*")


def drawn_from(reads: Reads) -> Callable[[D], D]:
    """Declares what a figure reads: a literal, as in `Figure.reads`, for it is read as source."""
    del reads
    return lambda draw: draw


FIGURES: dict[str, Figure] = {
    f"{path.parent.name}/{path.stem}": Figure(path.parent.name, declared(path, "drawn_from"))
    for path in sorted(Path(__file__).parent.glob("*/[!_]*.py"))
}
