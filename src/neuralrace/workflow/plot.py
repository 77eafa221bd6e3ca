"""Plot a cell: its standard figure, from its trajectory and theory."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from neuralrace.figures.compose import alternative_text
from neuralrace.figures.plot import plot
from neuralrace.figures.save import fixed_layout, save_picture
from neuralrace.results.cells import open_results
from neuralrace.results.checksums import checksums_of_outputs
from neuralrace.results.provenance import code_guard
from neuralrace.workflow.job import Job


def run(
    job: Job,
    name: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    code: str,
    cells: Mapping[str, Mapping[str, str]],
    root: str,
) -> None:
    """Draws the figure of `neuralrace.plot` for a cell, and writes it as PNG.

    Args:
        job: receives progress messages.
        name: of the cell, `paper/experiment/label`.
        inputs: paths of trajectory and theory, if it has any.
        outputs: path of the picture.
        code: digest of the code that it was planned with.
        cells: the cell, and digest of the specification of each of its files.
        root: the results folder.

    Raises:
        UserError: a damaged file or one of another specification, a file that cannot be written, or
            code that was edited.
    """
    guard = code_guard("plot", (), code)
    (path,) = map(Path, outputs)
    checksums = path.with_suffix(".sha256")
    with (
        job.stage("plot", name),
        checksums_of_outputs(checksums, Path(root), inputs, outputs, code, name, guard=guard),
    ):
        figure = plot(open_results(root, cells, expected=cells)[name])
        with fixed_layout(figure):
            save_picture(figure, {"Title": name, "Description": alternative_text(figure)}, path)
