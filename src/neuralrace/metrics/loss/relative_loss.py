"""How much of the targets a network has learned, by its loss."""

import numpy as np

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.describe import Values
from neuralrace.results.cells import CellResults


@Metric(
    variables={
        "relative_loss": ("", "loss at the end over that of the best constant output"),
    },
)
def relative_loss(cell: CellResults) -> Values:
    """Loss at the end over that of the best constant output, which knows nothing of the inputs.

    The best constant is the mean target of the samples, as an output for squared error and as a
    probability for cross-entropy.
    """
    training, y = cell.spec.training, cell.data.y
    if training.loss.squared:
        constant = np.var(y, axis=0).sum() / 2
    else:  # one output is the probability of one of two classes
        mean = np.mean(y if y.shape[1] > 1 else np.hstack([y, 1 - y]), axis=0)
        constant = -np.sum(mean[mean > 0] * np.log(mean[mean > 0]))
    end = cell.trajectory["loss"].isel(time=-1, drop=True)
    return {"relative_loss": end / (training.loss.factor(len(y)) * constant)}
