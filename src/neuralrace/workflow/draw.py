"""Draw a figure: from result files to its pictures."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from neuralrace.extensions.registry import FIGURES
from neuralrace.figures.save import save
from neuralrace.results.checksums import checksums_of_outputs
from neuralrace.results.provenance import code_guard
from neuralrace.workflow.job import Job


def run(
    job: Job,
    name: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    caption: str,
    code: str,
    cells: Mapping[str, Mapping[str, str]],
    root: str,
) -> None:
    """Draws a figure and writes its files; see `neuralrace.figures.save.save`.

    Args:
        job: what it reports to.
        name: of the figure, `paper/figure`.
        inputs: paths of the result files that it reads.
        outputs: paths of PNG, PDF, SVG and the slim PNG.
        caption: its caption.
        code: digest of the code that it was planned with.
        cells: the cells that it shows, and digest of the specification of each of their files.
        root: the results folder.

    Raises:
        UserError: a damaged file or one of another specification, a file that cannot be written, or
            code that was edited.
    """
    guard = code_guard("draw", [FIGURES[name].module], code)
    checksums = Path(outputs[0]).with_suffix(".sha256")
    with (
        job.stage("draw", name),
        checksums_of_outputs(
            checksums, Path(root), inputs, outputs, code, name, caption, guard=guard
        ),
    ):
        save(name, root, cells, caption, *outputs)
