"""Which theory applies to a network, from Python arguments."""

from typing import Any

import pandas as pd

from neuralrace.api.arguments import checked_arguments
from neuralrace.api.specification import python_errors, specify
from neuralrace.board.held_out import configured
from neuralrace.board.pages import held_tasks
from neuralrace.board.stored import stored_board
from neuralrace.board.theories import Theory
from neuralrace.board.theories import theories as all_theories
from neuralrace.errors import UserError


@checked_arguments(specify)
def theories(x: Any = None, y: Any = None, **options: Any) -> pd.DataFrame:
    """All theories, what each assumes, whether it applies to your network, and where it holds.

    Args:
        x: as in `specify`: an array (sample, input), or the name or mapping of a dataset; None to
            list the theories only.
        y: as in `specify`.
        **options: all other arguments of `specify`.

    Returns:
        A table by `solution`: what it `says`, what it assumes of `network`, `data`, `start` and
        `training` beside one task and squared error, the initial weights that it is `derived_for`
        if it can be computed for others, its `source`, `unmet`, the first requirement
        that yours does not meet (empty where it applies), and `holds`, the init scales at which it
        misses the loss by less than a tenth on each task of the benchmark. Those that apply come
        first.

    Raises:
        UserError: as `specify`.

    Example:
        >>> import neuralrace as nr
        >>> table = nr.theories("hierarchy", hidden=[16])
        >>> list(table.index[table["unmet"] == ""])
        ['aligned_modes', 'exact', 'flow', 'symmetric_start', 'tied', 'untied_modes']
    """
    if x is None and (y is not None or options):
        raise UserError("is missing", key="x", remedy="give data, or no argument to list theories")
    cell = None if x is None else specify(x, y, **options)
    with python_errors(options.get("network")):
        found = all_theories(cell)
    table = pd.DataFrame(found, columns=list(Theory._fields)).set_index("solution")
    board = stored_board(configured("board.json"))
    table["holds"] = [held_tasks(board, name) for name in table.index]
    return table.sort_values("unmet", key=lambda column: column != "", kind="stable")
