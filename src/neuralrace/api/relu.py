"""Rectified linear networks that imitate ReLU networks, from Python arguments."""

from typing import Any

from neuralrace.api.arguments import check_positive_whole, checked_arguments
from neuralrace.api.specification import python_errors, specify
from neuralrace.config.cell import Ensemble
from neuralrace.theory.reln import find
from neuralrace.training.environment import warn_of_environment


@checked_arguments(specify)
def find_reln(
    x: Any,
    y: Any = None,
    *,
    pathways: int,
    controls: bool = True,
    activation: str = "relu",
    snapshots: int = 20,
    **options: Any,
) -> find.Reln:
    """Finds the rectified linear network that imitates ReLU networks; see `reln.find.find_reln`.

    There must be one init scale.

    Args:
        x: as in `specify`.
        y: as in `specify`.
        pathways: number of pathways to find, a positive whole number.
        controls: whether to repeat this with the gates at the start only and at the end only.
        activation: as in `specify`.
        snapshots: as in `specify`.
        **options: all other arguments of `specify`.

    Returns:
        The gates (`gating.gates`, (pathway, sample)), the training of the ReLU networks and of
        their imitation, and the differences between these (`output_error`, `loss_gap`).

    Raises:
        UserError: as `specify`, or `reln.find.find_reln`.

    Example:
        >>> import numpy as np
        >>> import neuralrace as nr
        >>> x, y = np.eye(4), np.diag([4.0, 3, 2, 1])
        >>> options = {"hidden": [40], "init_scales": [0.01], "seeds": 2, "controls": False}
        >>> reln = nr.find_reln(x, y, pathways=4, **options)
        >>> reln.gating.gates.shape  # (pathway, sample)
        (4, 4)
        >>> reln.output_error.shape  # (init_scale, seed, snapshot)
        (1, 2, 21)
    """
    warn_of_environment()
    check_positive_whole("pathways", pathways)
    if activation != "relu" or not {"network", "gates"} & options.keys():  # which replace it
        options["activation"] = activation
    cell = specify(x, y, snapshots=snapshots, **options)
    with python_errors(options.get("network")):
        return find.find_reln(cell.only(Ensemble), pathways, cell.record.snapshots, controls)
