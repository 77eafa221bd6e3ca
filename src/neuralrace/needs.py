"""What extensions need of a run, by the names that their declarations use.

Each need is told from the specification alone, before anything is loaded or trained: a function
that returns what is wrong and what to do, key and value first, or None where the need is met.
"""

from collections.abc import Callable
from typing import Any

Need = Callable[[Any], str | None]
NEEDS: dict[str, Need] = {}


def need(test: Need) -> Need:
    """Makes a need known by the name of the function."""
    NEEDS[test.__name__] = test
    return test


@need
def layered(run: Any) -> str | None:
    """An ordinary network; gates of its own making count as ReLU."""
    return _kind(run, "layered")


@need
def gated(run: Any) -> str | None:
    """Pathways side by side with given gates."""
    return _kind(run, "gated")


@need
def graph(run: Any) -> str | None:
    """An architecture graph."""
    return _kind(run, "graph")


@need
def routing(run: Any) -> str | None:
    """Pathway blocks between domains."""
    return _kind(run, "routing")


@need
def hidden(run: Any) -> str | None:
    """A hidden layer at least."""
    return None if run.resolved.hidden else "network.hidden: []: give a hidden layer"


@need
def one_hidden(run: Any) -> str | None:
    """Exactly one hidden layer."""
    if len(run.resolved.hidden) == 1:
        return None
    return f"network.hidden: {list(run.resolved.hidden)}: give exactly one hidden layer"


@need
def several_hidden(run: Any) -> str | None:
    """Two hidden layers at least."""
    hidden = list(run.resolved.hidden)
    return None if len(hidden) > 1 else f"network.hidden: {hidden}: give two layers or more"


@need
def unit_pathways(run: Any) -> str | None:
    """Pathways side by side, each of one hidden unit."""
    if getattr(run.network, "widths", None):
        return f"network.widths: {list(run.network.widths)}: leave them out"
    if tuple(run.network.hidden) != (1,):
        return f"network.hidden: {list(run.network.hidden)}: give pathways of one unit, [1]"
    return None


@need
def linear(run: Any) -> str | None:
    """No activation but the identity, and no biases."""
    return _activation(run, "linear")


@need
def relu(run: Any) -> str | None:
    """ReLU units without biases."""
    return _activation(run, "relu")


@need
def relu_units(run: Any) -> str | None:
    """ReLU units, with biases or without."""
    return _equal("network.activation", getattr(run.resolved, "activation", "linear"), "relu")


@need
def trained_readout(run: Any) -> str | None:
    """The last layer is trained."""
    return _readout(run, "trained")


@need
def mean_readout(run: Any) -> str | None:
    """The network answers with the mean over its hidden units."""
    return _readout(run, "mean")


@need
def squared_error(run: Any) -> str | None:
    """Squared error is minimised."""
    return _equal("training.loss.name", run.training.loss.name, "squared_error")


@need
def full_batch(run: Any) -> str | None:
    """Every step sees all samples."""
    return _equal("training.batch.name", run.training.batch.name, "full")


@need
def no_momentum(run: Any) -> str | None:
    """Plain gradient descent."""
    momentum = run.training.momentum
    return f"training.momentum: {momentum}: use 0" if momentum else None


@need
def normal_start(run: Any) -> str | None:
    """Initial weights are normal, so that width and variance say all."""
    return _equal("init.name", run.init.name, "normal")


@need
def recorded_biases(run: Any) -> str | None:
    """Norms of biases are recorded, where there are any."""
    if not getattr(run.resolved, "bias", False) or "bias_norm" in run.record.observables:
        return None
    return "network.bias: true: add bias_norm to record.observables"


@need
def candidates(run: Any) -> str | None:
    """Gated networks to compare with."""
    return None if run.candidates else "candidates: none: give gated networks to compare with"


@need
def xor(run: Any) -> str | None:
    """XoR without a margin."""
    if run.dataset.name != "xor":
        return f"dataset.name: {run.dataset.name!r}: use xor"
    if run.dataset.margin is not None:
        return f"dataset.margin: {run.dataset.margin}: leave it out"
    return None


@need
def xor_with_margin(run: Any) -> str | None:
    """XoR with a margin."""
    if run.dataset.name != "xor":
        return f"dataset.name: {run.dataset.name!r}: use xor and give its margin"
    return "dataset.margin: is missing: give it" if run.dataset.margin is None else None


@need
def contexts(run: Any) -> str | None:
    """Samples in contexts; those of a dataset by domain are its pairs of domains."""
    dataset = run.dataset
    if getattr(dataset, "contexts", None) is not None or hasattr(dataset, "domains"):
        return None
    return f"dataset.name: {dataset.name!r}: use one with contexts, such as contextual"


@need
def contextual_hierarchies(run: Any) -> str | None:
    """The contextual task, a hierarchy in every context."""
    if run.dataset.name != "contextual":
        return f"dataset.name: {run.dataset.name!r}: use contextual"
    if set(run.dataset.structures) == {"hierarchy"}:
        return None
    return f"dataset.structures: {list(run.dataset.structures)}: use hierarchy alone"


@need
def whole_targets(run: Any) -> str | None:
    """All targets of the contextual task, not a part of them."""
    return _equal("dataset.part", run.dataset.part, "whole")


@need
def images(run: Any) -> str | None:
    """Images by domain."""
    if hasattr(run.dataset, "image_domains"):
        return None
    return f"dataset.name: {run.dataset.name!r}: use one of images, such as transformed_images"


@need
def fresh_samples(run: Any) -> str | None:
    """A dataset that draws its samples by a seed, from a law with known moments."""
    dataset = run.dataset
    if hasattr(dataset, "seed") and dataset.mixture() is not None:
        return None
    return (
        f"dataset.name: {dataset.name!r}: has no fresh samples of the same law; use one that has, "
        "such as nonlinear_gaussian"
    )


def _kind(run: Any, name: str) -> str | None:
    if run.network.name == name != run.resolved.name:
        return f"network.gates.name: {run.network.gates.name!r}: use gates that are given"
    return None if run.resolved.name == name else f"network.name: {run.network.name!r}: use {name}"


def _activation(run: Any, name: str) -> str | None:
    network = run.resolved
    if getattr(network, "bias", False):
        return "network.bias: true: leave biases out"
    return _equal("network.activation", getattr(network, "activation", "linear"), name)


def _readout(run: Any, wanted: str) -> str | None:
    return _equal("network.readout", getattr(run.resolved, "readout", "trained"), wanted)


def _equal(key: str, value: str, wanted: str) -> str | None:
    return None if value == wanted else f"{key}: {value!r}: use {wanted}"


def unmet(run: Any, needs: str) -> str | None:
    """The first need that a run does not meet, in words; None where all are met.

    Args:
        run: a `neuralrace.spec.Run`.
        needs: names of needs side by side; of `a|b` either will do.
    """
    for each in needs.split():
        missing = [NEEDS[name](run) for name in each.split("|")]
        if all(missing):
            return " or ".join(map(str, missing))
    return None
