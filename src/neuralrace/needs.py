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
def linear(run: Any) -> str | None:
    """No activation but the identity, and no biases."""
    return _activation(run, "linear")


@need
def relu(run: Any) -> str | None:
    """ReLU units without biases."""
    return _activation(run, "relu")


@need
def trained_readout(run: Any) -> str | None:
    """The last layer is trained."""
    return _equal("network.readout", getattr(run.resolved, "readout", "trained"), "trained")


@need
def squared_error(run: Any) -> str | None:
    """Squared error is minimised."""
    return _equal("training.loss.name", run.training.loss.name, "squared_error")


@need
def full_batch(run: Any) -> str | None:
    """Every step sees all samples."""
    return _equal("training.batch.name", run.training.batch.name, "full")


@need
def domains_of_images(run: Any) -> str | None:
    """Domains that show images, with others held out to test on."""
    if hasattr(run.dataset, "image_domains"):
        return None
    return f"dataset.name: {run.dataset.name!r}: use transformed_images"


@need
def domains_spelled_out(run: Any) -> str | None:
    """All that a routing network sees is at hand at once; images go by in parts."""
    if run.resolved.name == "routing" and hasattr(run.dataset, "image_domains"):
        return f"dataset.name: {run.dataset.name!r}: use routing"
    return None


def _kind(run: Any, name: str) -> str | None:
    return _equal("network.name", run.resolved.name, name)


def _activation(run: Any, name: str) -> str | None:
    network = run.resolved
    if getattr(network, "bias", False):
        return "network.bias: true: leave biases out"
    return _equal("network.activation", getattr(network, "activation", "linear"), name)


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
            first, *others = map(str, missing)
            alike = first.rpartition(" ")[0] + " "  # key and value are told once
            return " or ".join([first, *(other.removeprefix(alike) for other in others)])
    return None
