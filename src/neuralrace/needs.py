"""What extensions need of an ensemble, by the names that their declarations use.

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
def layered(ensemble: Any) -> str | None:
    """An ordinary network; gates of its own making count as ReLU."""
    return _kind(ensemble, "layered")


@need
def gated(ensemble: Any) -> str | None:
    """Pathways side by side with given gates."""
    return _kind(ensemble, "gated")


@need
def graph(ensemble: Any) -> str | None:
    """An architecture graph."""
    return _kind(ensemble, "graph")


@need
def routing(ensemble: Any) -> str | None:
    """Pathway blocks between domains."""
    return _kind(ensemble, "routing")


@need
def given_gates(ensemble: Any) -> str | None:
    """Pathways with given gates: side by side, in a graph, or between domains."""
    if ensemble.resolved.name != "layered":
        return None
    if ensemble.network.name == "layered":
        return "network.name: 'layered': give gates, as gated, graph or routing networks have them"
    return f"network.gates.name: {ensemble.network.gates.name!r}: give the gates"


@need
def no_hidden(ensemble: Any) -> str | None:
    """A single layer of weights."""
    return _hidden(ensemble, 0, "leave hidden layers out, []")


@need
def hidden(ensemble: Any) -> str | None:
    """A hidden layer at least."""
    return None if ensemble.resolved.hidden else "network.hidden: []: give a hidden layer"


@need
def one_hidden(ensemble: Any) -> str | None:
    """Exactly one hidden layer."""
    return _hidden(ensemble, 1, "give exactly one hidden layer")


@need
def two_hidden(ensemble: Any) -> str | None:
    """Exactly two hidden layers."""
    return _hidden(ensemble, 2, "give exactly two hidden layers")


@need
def unit_pathways(ensemble: Any) -> str | None:
    """Pathways side by side, each of one hidden unit."""
    if getattr(ensemble.network, "widths", None):
        return f"network.widths: {list(ensemble.network.widths)}: leave them out"
    if tuple(ensemble.network.hidden) != (1,):
        return f"network.hidden: {list(ensemble.network.hidden)}: give pathways of one unit, [1]"
    return None


@need
def several_hidden(ensemble: Any) -> str | None:
    """Two hidden layers at least."""
    hidden = list(ensemble.resolved.hidden)
    return None if len(hidden) > 1 else f"network.hidden: {hidden}: give two layers or more"


@need
def linear(ensemble: Any) -> str | None:
    """No activation but the identity, and no biases."""
    return _activation(ensemble, "linear")


@need
def relu(ensemble: Any) -> str | None:
    """ReLU units without biases."""
    return _activation(ensemble, "relu")


@need
def relu_units(ensemble: Any) -> str | None:
    """ReLU units, with biases or without."""
    return _equal("network.activation", getattr(ensemble.resolved, "activation", "linear"), "relu")


@need
def trained_readout(ensemble: Any) -> str | None:
    """The last layer is trained."""
    return _readout(ensemble, "trained")


@need
def mean_readout(ensemble: Any) -> str | None:
    """The network answers with the mean over its hidden units."""
    return _readout(ensemble, "mean")


@need
def one_mask(ensemble: Any) -> str | None:
    """All seeds train the same pairs of domains."""
    pairs = getattr(ensemble.network, "pairs", None)
    if pairs is None or not pairs.varies:
        return None
    return f"network.pairs.name: {pairs.name!r}: trains other pairs in each seed; use band or all"


@need
def normal_start(ensemble: Any) -> str | None:
    """Initial weights are normal, so that width and variance say all."""
    return _equal("init.name", ensemble.init.name, "normal")


@need
def xor(ensemble: Any) -> str | None:
    """XoR without a margin."""
    if ensemble.dataset.name != "xor":
        return f"dataset.name: {ensemble.dataset.name!r}: use xor"
    if ensemble.dataset.margin is not None:
        return f"dataset.margin: {ensemble.dataset.margin}: leave it out"
    return None


@need
def xor_with_margin(ensemble: Any) -> str | None:
    """XoR with a margin."""
    if ensemble.dataset.name != "xor":
        return f"dataset.name: {ensemble.dataset.name!r}: use xor and give its margin"
    return "dataset.margin: is missing: give it" if ensemble.dataset.margin is None else None


@need
def contextual_hierarchies(ensemble: Any) -> str | None:
    """The contextual task, a hierarchy in every context."""
    if ensemble.dataset.name != "contextual":
        return f"dataset.name: {ensemble.dataset.name!r}: use contextual"
    if set(ensemble.dataset.structures) == {"hierarchy"}:
        return None
    return f"dataset.structures: {list(ensemble.dataset.structures)}: use hierarchy alone"


@need
def whole_targets(ensemble: Any) -> str | None:
    """All targets of the contextual task, not a part of them."""
    return _equal("dataset.part", ensemble.dataset.part, "whole")


@need
def context_family(ensemble: Any) -> str | None:
    """Gates of kind contexts, where context pathways are open in one number of contexts."""
    if ensemble.resolved.name != "gated" or ensemble.network.gates.name != "contexts":
        return "network: give it the name gated and gates of name contexts"
    gates = ensemble.network.gates
    if gates.shown != "first_group":
        return f"network.gates.shown: {gates.shown!r}: use first_group"
    if len(gates.open_in) > 1:
        return f"network.gates.open_in: {list(gates.open_in)}: give one number of contexts at most"
    return None


@need
def common_pathway(ensemble: Any) -> str | None:
    """A common pathway beside those of contexts."""
    return None if ensemble.network.gates.common else "network.gates.common: false: use true"


@need
def trained_candidates(ensemble: Any) -> str | None:
    """Candidates in the place of a ReLU network, all layers trained."""
    if not ensemble.candidates:
        return "candidates: {}: name some"
    for name, network in ensemble.candidates.items():
        if network.readout != "trained":
            return f"candidates.{name}.readout: {network.readout!r}: use trained"
    return None


@need
def squared_error(ensemble: Any) -> str | None:
    """Squared error is minimised."""
    return _equal("training.loss.name", ensemble.training.loss.name, "squared_error")


@need
def full_batch(ensemble: Any) -> str | None:
    """Every step sees all samples."""
    return _equal("training.batch.name", ensemble.training.batch.name, "full")


@need
def gradient_flow(ensemble: Any) -> str | None:
    """Training follows gradient flow where its steps are small."""
    optimiser = ensemble.training.optimiser
    if optimiser.follows_flow:
        return None
    return f"training.optimiser.name: {optimiser.name!r}: use one that follows gradient flow"


@need
def gradient_descent(ensemble: Any) -> str | None:
    """Steps of training are the learning rate times the gradient."""
    optimiser = ensemble.training.optimiser
    if optimiser.is_plain:
        return None
    return f"training.optimiser.name: {optimiser.name!r}: use plain gradient descent"


@need
def domains_of_images(ensemble: Any) -> str | None:
    """Domains that show images, with others held out to test on."""
    if hasattr(ensemble.dataset, "image_domains"):
        return None
    return f"dataset.name: {ensemble.dataset.name!r}: use transformed_images"


@need
def domains_spelled_out(ensemble: Any) -> str | None:
    """All that a routing network sees is at hand at once; images go by in parts."""
    if ensemble.resolved.name == "routing" and hasattr(ensemble.dataset, "image_domains"):
        return f"dataset.name: {ensemble.dataset.name!r}: use routing"
    return None


@need
def recorded_biases(ensemble: Any) -> str | None:
    """Norms of biases are recorded, where there are any."""
    if not getattr(ensemble.resolved, "bias", False) or "bias_norm" in ensemble.record.observables:
        return None
    return "network.bias: true: add bias_norm to record.observables"


@need
def candidates(ensemble: Any) -> str | None:
    """Gated networks to compare with."""
    return None if ensemble.candidates else "candidates: none: give gated networks to compare with"


@need
def contexts(ensemble: Any) -> str | None:
    """Samples in contexts; those of a dataset by domain are its pairs of domains."""
    dataset = ensemble.dataset
    if getattr(dataset, "contexts", None) is not None or hasattr(dataset, "domains"):
        return None
    return f"dataset.name: {dataset.name!r}: use one with contexts, such as contextual"


@need
def fresh_samples(ensemble: Any) -> str | None:
    """A dataset that draws its samples by a seed, from a law with known moments."""
    dataset = ensemble.dataset
    if hasattr(dataset, "seed") and dataset.mixture() is not None:
        return None
    return (
        f"dataset.name: {dataset.name!r}: has no fresh samples of the same law; use one that has, "
        "such as nonlinear_gaussian"
    )


def _kind(ensemble: Any, name: str) -> str | None:
    if ensemble.network.name == name != ensemble.resolved.name:
        return f"network.gates.name: {ensemble.network.gates.name!r}: use gates that are given"
    return (
        None
        if ensemble.resolved.name == name
        else f"network.name: {ensemble.network.name!r}: use {name}"
    )


def _activation(ensemble: Any, name: str) -> str | None:
    network = ensemble.resolved
    if getattr(network, "bias", False):
        return "network.bias: true: leave biases out"
    return _equal("network.activation", getattr(network, "activation", "linear"), name)


def _hidden(ensemble: Any, layers: int, remedy: str) -> str | None:
    given = list(ensemble.resolved.hidden)
    return None if len(given) == layers else f"network.hidden: {given}: {remedy}"


def _readout(ensemble: Any, wanted: str) -> str | None:
    return _equal("network.readout", getattr(ensemble.resolved, "readout", "trained"), wanted)


def _equal(key: str, value: str, wanted: str) -> str | None:
    return None if value == wanted else f"{key}: {value!r}: use {wanted}"


def unmet(ensemble: Any, needs: str) -> str | None:
    """The first need that an ensemble does not meet, in words; None where all are met.

    Args:
        ensemble: a `neuralrace.spec.Ensemble`.
        needs: names of needs side by side; of `a|b` either will do.
    """
    for each in needs.split():
        missing = [NEEDS[name](ensemble) for name in each.split("|")]
        if all(missing):
            first, *others = map(str, missing)
            alike = first.rpartition(" ")[0] + " "  # key and value are told once
            return " or ".join([first, *(other.removeprefix(alike) for other in others)])
    return None
