"""Observables of test samples, which are not trained on."""

from collections.abc import Mapping

from jax import Array

from neuralrace.extensions.registry import Observable
from neuralrace.training.observables.view import View


@Observable(requires="test_samples", variables={"test_loss": ("time", "loss on test samples")})
def test_loss(view: View) -> Mapping[str, Array]:
    """Loss on the test samples of the dataset, with the normalisation of the training loss.

    A loss that is a sum over samples is that of as many samples as there are training samples.
    """
    factor = view.training.loss.factor(view.task.samples)
    return {"test_loss": factor * view.task.test_loss(view.network, view.data)}
