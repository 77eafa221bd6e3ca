"""Final loss relative to that of the best constant output."""

import numpy as np

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.values import Values
from neuralrace.results.cells import CellResults


@Metric(
    variables={
        "relative_loss": ("", "loss at the end over that of the best constant output"),
    },
)
def relative_loss(cell: CellResults) -> Values:
    """Final loss over the loss of the best output that is the same for all inputs.

    The value is 0 if the targets are learned perfectly, and 1 if nothing is learned about the
    inputs. The best constant is the mean target of the samples: an output for squared error, a
    probability for cross-entropy.
    """
    training, y = cell.spec.training, cell.data.y
    if training.loss.squared:
        constant = np.var(y, axis=0).sum() / 2
    else:
        # a single output is the probability of one of two classes
        mean = np.mean(y if y.shape[1] > 1 else np.hstack([y, 1 - y]), axis=0)
        constant = -np.sum(mean[mean > 0] * np.log(mean[mean > 0]))
    end = cell.trajectory["loss"].isel(time=-1, drop=True)
    return {"relative_loss": end / (training.loss.factor(len(y)) * constant)}
