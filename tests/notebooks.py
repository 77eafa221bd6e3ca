"""How tests run the notebooks of examples/: in their own process, without a kernel."""

import matplotlib.pyplot as plt
import nbformat

from builders import REPOSITORY

EXAMPLES = REPOSITORY / "examples"


def run(name: str) -> dict:
    """What the cells of a notebook leave behind, run one after another."""
    names: dict = {}
    for cell in nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4).cells:
        if cell.cell_type == "code":
            exec(compile(cell.source, f"{name}/{cell.id}", "exec"), names)
    return names


def unlabelled() -> list[str]:
    """Axes of open figures that do not say what they show; those of a legend have no data."""
    axes = [ax for number in plt.get_fignums() for ax in plt.figure(number).axes if ax.has_data()]
    assert axes
    first = {ax.get_subplotspec().get_gridspec(): ax for ax in reversed(axes)}
    return [str(ax) for ax in axes if not ax.get_xlabel()] + [
        str(ax) for ax in first.values() if not ax.get_ylabel()
    ]
