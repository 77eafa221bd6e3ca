"""Draw a figure: from result files to its pictures."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from neuralrace.figures.save import save
from neuralrace.provenance import planned
from neuralrace.registry import FIGURES
from neuralrace.seal import recorded
from neuralrace.workflow.job import Job


def run(
    job: Job,
    figure: str,
    caption: str,
    code: str,
    cells: Mapping[str, Mapping[str, str]],
    root: str,
    inputs: Sequence[str],
    paths: Sequence[str],
) -> None:
    """Draws a figure and writes its files; see `neuralrace.figures.save.save`.

    Args:
        job: what it reports to.
        figure: `paper/figure`.
        caption: its caption.
        code: digest of the code that it was planned with.
        cells: the cells that it shows, and digest of the specification of each of their files.
        root: the results folder.
        inputs: paths of the result files that it reads.
        paths: where PNG, PDF, SVG and the slim PNG go.

    Raises:
        UserError: a damaged file or one of another specification, a file that cannot be written, or
            code that was edited.
    """
    guard = planned("draw", [FIGURES[figure].module], code)
    checksums = Path(paths[0]).with_suffix(".sha256")
    with (
        job.stage("draw", figure),
        recorded(checksums, Path(root), inputs, paths, code, figure, caption, guard=guard),
    ):
        save(figure, root, cells, caption, *paths)
