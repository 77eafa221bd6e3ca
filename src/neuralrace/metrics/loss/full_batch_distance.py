"""Distance of training on mini-batches from training on the full batch."""

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.values import Values
from neuralrace.results.cells import CellResults


@Metric(
    requires="mini_batch",
    trains=True,
    variables={
        "full_batch_distance": (
            "",
            "largest distance of the loss from that of full-batch training over initial loss",
        ),
    },
)
def full_batch_distance(cell: CellResults) -> Values:
    """Largest distance between the losses of mini-batch and full-batch training at equal time.

    The reference starts from the same weights and takes as many steps with the same learning rate,
    each with all samples. Both losses are those of the whole dataset. The distance is 0 if batches
    have no effect, and NaN if either run diverges.
    """
    # imported here, so that other metrics do not load JAX
    from neuralrace.theory.reln.imitation import altered
    from neuralrace.training.trainer import train

    spec = cell.spec
    # without the batch: the default is the full batch
    training = spec.training.model_dump(exclude={"batch"})
    reference = train(altered(spec, training=training, record={"every": spec.record.every}))
    loss = cell.trajectory["loss"]
    distance = abs(loss - loss.copy(data=reference.variables["loss"]))
    largest = distance.max("time", skipna=False)
    return {"full_batch_distance": largest / loss.isel(time=0, drop=True)}
