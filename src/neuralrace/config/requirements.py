"""Requirements of extensions, by the names that their declarations use.

A requirement is a function of an ensemble that returns what is wrong and what to do, key and value
first, or None where it is met. Most read the specification alone. Those of data load the dataset or
make its samples: planning checks them once, before anything runs. A specification that is read
later, such as that in a result file, is not checked against data that may be gone by then.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from neuralrace.errors import UserError, configured_as

Need = Callable[[Any], str | None]
REQUIREMENTS: dict[str, Need] = {}
OF_DATA: set[str] = set()
"""Names of the requirements that load the dataset."""
FEW_SAMPLES = 1000
"""Samples that planning opens gates on; of more, training tells at its start whether they fit."""
MOST_PATTERNED = 12
"""Samples that have few enough gate patterns to try one by one."""
_answers: dict[tuple[str, ...], str | None] = {}
"""Answers of requirements of data, as the cells of a sweep often share dataset and network."""


def requirement(test: Need) -> Need:
    """Makes a requirement known by the name of the function."""
    REQUIREMENTS[test.__name__] = test
    return test


def data_requirement(test: Need) -> Need:
    """Makes a requirement of data known by the name of the function.

    It may depend on the dataset, the networks and the law of initial weights, and on nothing else.
    """

    @wraps(test)
    def remembered(ensemble: Any) -> str | None:
        parts = (ensemble.dataset, ensemble.init, *ensemble.networks)
        key = (test.__name__, *(part.sha256() for part in parts))
        if key not in _answers:
            try:
                _answers[key] = test(ensemble)
            except UserError as error:  # gates that do not fit the samples, or no samples
                _answers[key] = str(error)
        return _answers[key]

    OF_DATA.add(test.__name__)
    return requirement(remembered)


@requirement
def layered(ensemble: Any) -> str | None:
    """An ordinary network; gates of its own making count as ReLU."""
    return _kind(ensemble, "layered")


@requirement
def gated(ensemble: Any) -> str | None:
    """Pathways side by side with given gates."""
    return _kind(ensemble, "gated")


@requirement
def graph(ensemble: Any) -> str | None:
    """An architecture graph."""
    return _kind(ensemble, "graph")


@requirement
def routing(ensemble: Any) -> str | None:
    """Pathway blocks between domains."""
    return _kind(ensemble, "routing")


@requirement
def given_gates(ensemble: Any) -> str | None:
    """Pathways with given gates: side by side, in a graph, or between domains."""
    if ensemble.resolved.name != "layered":
        return None
    if ensemble.network.name == "layered":
        return "network.name: 'layered': give gates, as gated, graph or routing networks have them"
    return f"network.gates.name: {ensemble.network.gates.name!r}: give the gates"


@requirement
def no_hidden(ensemble: Any) -> str | None:
    """A single layer of weights."""
    return _hidden(ensemble, 0, "leave hidden layers out, []")


@requirement
def hidden(ensemble: Any) -> str | None:
    """A hidden layer at least."""
    return None if ensemble.resolved.hidden else "network.hidden: []: give a hidden layer"


@requirement
def one_hidden(ensemble: Any) -> str | None:
    """Exactly one hidden layer."""
    return _hidden(ensemble, 1, "give exactly one hidden layer")


@requirement
def two_hidden(ensemble: Any) -> str | None:
    """Exactly two hidden layers."""
    return _hidden(ensemble, 2, "give exactly two hidden layers")


@requirement
def unit_pathways(ensemble: Any) -> str | None:
    """Pathways side by side, each of one hidden unit."""
    if getattr(ensemble.network, "widths", None):
        return f"network.widths: {list(ensemble.network.widths)}: leave them out"
    if tuple(ensemble.network.hidden) != (1,):
        return f"network.hidden: {list(ensemble.network.hidden)}: give pathways of one unit, [1]"
    return None


@requirement
def several_hidden(ensemble: Any) -> str | None:
    """Two hidden layers at least."""
    hidden = list(ensemble.resolved.hidden)
    return None if len(hidden) > 1 else f"network.hidden: {hidden}: give two layers or more"


@requirement
def linear(ensemble: Any) -> str | None:
    """No activation but the identity, and no biases."""
    return _activation(ensemble, "linear")


@requirement
def relu(ensemble: Any) -> str | None:
    """ReLU units without biases."""
    return _activation(ensemble, "relu")


@requirement
def relu_units(ensemble: Any) -> str | None:
    """ReLU units, with biases or without."""
    return _equal("network.activation", getattr(ensemble.resolved, "activation", "linear"), "relu")


@requirement
def trained_readout(ensemble: Any) -> str | None:
    """The last layer is trained."""
    return _readout(ensemble, "trained")


@requirement
def mean_readout(ensemble: Any) -> str | None:
    """The network answers with the mean over its hidden units."""
    return _readout(ensemble, "mean")


@requirement
def one_mask(ensemble: Any) -> str | None:
    """All seeds train the same pairs of domains."""
    pairs = getattr(ensemble.network, "pairs", None)
    if pairs is None or not pairs.varies:
        return None
    return f"network.pairs.name: {pairs.name!r}: trains other pairs in each seed; use band or all"


@requirement
def normal_start(ensemble: Any) -> str | None:
    """Initial weights are normal, so that width and variance say all."""
    return _equal("init.name", ensemble.init.name, "normal")


@requirement
def xor(ensemble: Any) -> str | None:
    """XoR without a margin."""
    if ensemble.dataset.name != "xor":
        return f"dataset.name: {ensemble.dataset.name!r}: use xor"
    if ensemble.dataset.margin is not None:
        return f"dataset.margin: {ensemble.dataset.margin}: leave it out"
    return None


@requirement
def xor_with_margin(ensemble: Any) -> str | None:
    """XoR with a margin."""
    if ensemble.dataset.name != "xor":
        return f"dataset.name: {ensemble.dataset.name!r}: use xor and give its margin"
    return "dataset.margin: is missing: give it" if ensemble.dataset.margin is None else None


@requirement
def contextual_hierarchies(ensemble: Any) -> str | None:
    """The contextual task, a hierarchy in every context."""
    if ensemble.dataset.name != "contextual":
        return f"dataset.name: {ensemble.dataset.name!r}: use contextual"
    if set(ensemble.dataset.structures) == {"hierarchy"}:
        return None
    return f"dataset.structures: {list(ensemble.dataset.structures)}: use hierarchy alone"


@requirement
def whole_targets(ensemble: Any) -> str | None:
    """All targets of the contextual task, not a part of them."""
    return _equal("dataset.part", ensemble.dataset.part, "whole")


@requirement
def context_family(ensemble: Any) -> str | None:
    """Gates of kind contexts, where context pathways are open in one number of contexts."""
    if ensemble.resolved.name != "gated" or ensemble.network.gates.name != "contexts":
        return "network: give it the name gated and gates of name contexts"
    gates = ensemble.network.gates
    if gates.shown != "first_group":
        return f"network.gates.shown: {gates.shown!r}: use first_group"
    if len(gates.open_in) > 1:
        return f"network.gates.open_in: {list(gates.open_in)}: give one number of contexts at most"
    if gates.open_in and gates.open_in[0] >= ensemble.dataset.contexts:
        contexts = ensemble.dataset.contexts
        return (
            f"network.gates.open_in: {list(gates.open_in)}: give less than the {contexts} contexts"
        )
    return None


@requirement
def common_pathway(ensemble: Any) -> str | None:
    """A common pathway beside those of contexts."""
    return None if ensemble.network.gates.common else "network.gates.common: false: use true"


@requirement
def trained_candidates(ensemble: Any) -> str | None:
    """Candidates in the place of a ReLU network, of one hidden layer, all layers trained."""
    if not ensemble.candidates:
        return "candidates: {}: name some"
    for name, network in ensemble.candidates.items():
        if network.readout != "trained":
            return f"candidates.{name}.readout: {network.readout!r}: use trained"
        if len(network.hidden) != 1:
            return (
                f"candidates.{name}.hidden: {list(network.hidden)}: give exactly one hidden layer"
            )
    return None


@requirement
def squared_error(ensemble: Any) -> str | None:
    """Squared error is minimised."""
    return _equal("training.loss.name", ensemble.training.loss.name, "squared_error")


@requirement
def full_batch(ensemble: Any) -> str | None:
    """Every step sees all samples."""
    return _equal("training.batch.name", ensemble.training.batch.name, "full")


@requirement
def gradient_flow(ensemble: Any) -> str | None:
    """Training follows gradient flow where its steps are small."""
    optimiser = ensemble.training.optimiser
    if optimiser.follows_flow:
        return None
    return f"training.optimiser.name: {optimiser.name!r}: use one that follows gradient flow"


@requirement
def gradient_descent(ensemble: Any) -> str | None:
    """Steps of training are the learning rate times the gradient."""
    optimiser = ensemble.training.optimiser
    if optimiser.is_plain:
        return None
    return f"training.optimiser.name: {optimiser.name!r}: use plain gradient descent"


@requirement
def domains_of_images(ensemble: Any) -> str | None:
    """Domains that show images, with others held out to test on."""
    if hasattr(ensemble.dataset, "image_domains"):
        return None
    return f"dataset.name: {ensemble.dataset.name!r}: use transformed_images"


@requirement
def domains_spelled_out(ensemble: Any) -> str | None:
    """All that a routing network sees is at hand at once; images go by in parts."""
    if ensemble.resolved.name == "routing" and hasattr(ensemble.dataset, "image_domains"):
        return f"dataset.name: {ensemble.dataset.name!r}: use routing"
    return None


@requirement
def recorded_biases(ensemble: Any) -> str | None:
    """Norms of biases are recorded, where there are any."""
    if not getattr(ensemble.resolved, "bias", False) or "bias_norm" in ensemble.record.observables:
        return None
    return "network.bias: true: add bias_norm to record.observables"


@requirement
def candidates(ensemble: Any) -> str | None:
    """Gated networks to compare with."""
    return None if ensemble.candidates else "candidates: none: give gated networks to compare with"


@requirement
def contexts(ensemble: Any) -> str | None:
    """Samples in contexts; those of a dataset by domain are its pairs of domains."""
    dataset = ensemble.dataset
    if getattr(dataset, "contexts", None) is not None or hasattr(dataset, "domains"):
        return None
    return f"dataset.name: {dataset.name!r}: use one with contexts, such as contextual"


@requirement
def fresh_samples(ensemble: Any) -> str | None:
    """A dataset that draws its samples by a seed, from a law with known moments."""
    dataset = ensemble.dataset
    if hasattr(dataset, "seed") and dataset.mixture() is not None:
        return None
    return (
        f"dataset.name: {dataset.name!r}: has no fresh samples of the same law; use one that has, "
        "such as nonlinear_gaussian"
    )


@requirement
def known_input_law(ensemble: Any) -> str | None:
    """Inputs that are functions of a Gaussian process, with known moments."""
    if ensemble.dataset.has_input_law:
        return None
    return (
        f"dataset.name: {ensemble.dataset.name!r}: its inputs have no known law; use "
        "nonlinear_gaussian"
    )


@requirement
def sees_all_inputs(ensemble: Any) -> str | None:
    """Every pathway sees all inputs."""
    if ensemble.network.gates.sees_all:
        return None
    return "network.gates: some pathways do not see all inputs; use gates that do"


@requirement
def gates_of_any_sample(ensemble: Any) -> str | None:
    """Gates that follow from a sample, so that fresh samples have them too."""
    gates = ensemble.network.gates
    if not gates.of_single_samples:
        return None
    return (
        f"network.gates.name: {gates.name!r}: gates of single samples say nothing of others; use "
        "half_space, bumps or tiling"
    )


@requirement
def aligned_start(ensemble: Any) -> str | None:
    """Initial weights that are diagonal in the modes of the task."""
    return None if ensemble.init.aligned else f"init.name: {ensemble.init.name!r}: use aligned"


@requirement
def orthogonal_start(ensemble: Any) -> str | None:
    """Initial weights that are multiples of orthogonal matrices."""
    if ensemble.init.orthogonal:
        return None
    return f"init.name: {ensemble.init.name!r}: use orthogonal"


@requirement
def general_start(ensemble: Any) -> str | None:
    """Initial weights in general position: their law is not stated in the modes of the task."""
    if not ensemble.init.in_modes:
        return None
    return f"init.name: {ensemble.init.name!r}: is stated in the modes of the task; use normal"


# Requirements of data ---------------------------------------------------------------------------


@data_requirement
def pathway_blocks_alike(ensemble: Any) -> str | None:
    """Pathway blocks of one size and width, and all pairs trained where blocks are groups."""
    network, count = ensemble.network, ensemble.dataset.count
    families = network.families(count)
    if len(families) != 1:
        return f"network.gates.name: {network.gates.name!r}: use blocks of one size, such as groups"
    if len(set(network.hidden)) > 1:
        return f"network.hidden: {list(network.hidden)}: use one width"
    if families[0].size < count and not network.mask(count, 0).all():
        return f"network.pairs.name: {network.pairs.name!r}: groups of domains need all"
    return None


@data_requirement
def start_exists(ensemble: Any) -> str | None:
    """The law of initial weights exists for this network and these data."""
    law, network = ensemble.init, ensemble.resolved
    if law.fits_any_network:
        return None
    if network.has_fixed_gates and not law.for_graphs:
        return f"init.name: {law.name!r}: use one for graphs, such as normal"
    # modes of many pathways or samples take long: training tells what lacks in these
    if not network.by_domain and ensemble.dataset.sizes.samples <= FEW_SAMPLES:
        network.initial(law, network.examples(ensemble.dataset), (1.0,), ensemble.seed_numbers[:1])
    return None


@data_requirement
def whitened(ensemble: Any) -> str | None:
    """Inputs are whitened, sigma_xx = I."""
    return _white(ensemble, lambda data: np.allclose(data.sigma_xx, np.eye(len(data.sigma_xx))))


@data_requirement
def equal_variance(ensemble: Any) -> str | None:
    """Inputs vary alike in all directions, sigma_xx = d I in the modes of the task."""
    return _white(
        ensemble,
        lambda data: np.allclose(data.modes.d, data.modes.d[0]) and data.modes.joint,
        "do not vary alike in all directions",
    )


def _white(
    ensemble: Any, test: Callable[[Any], bool], otherwise: str = "are not whitened, sigma_xx = I"
) -> str | None:
    dataset = ensemble.dataset
    if dataset.may_be_white and test(dataset.load()):
        return None
    return f"dataset.name: {dataset.name!r}: its inputs {otherwise}; use modes, or other theory"


@data_requirement
def positive_modes(ensemble: Any) -> str | None:
    """No mode of the task has a negative strength."""
    strengths = ensemble.dataset.load().modes.s
    if (strengths >= 0).all():
        return None
    return f"dataset.singular_values: {strengths.min():g}: is negative; use positive values"


@data_requirement
def one_output(ensemble: Any) -> str | None:
    """The dataset has a single output."""
    outputs = ensemble.dataset.sizes.outputs
    if outputs == 1:
        return None
    return f"dataset.name: {ensemble.dataset.name!r}: has {outputs} outputs; use a dataset with one"


@data_requirement
def several_outputs(ensemble: Any) -> str | None:
    """The dataset has two outputs at least: the largest of them is the class."""
    if ensemble.dataset.sizes.outputs > 1:
        return None
    return f"dataset.name: {ensemble.dataset.name!r}: has one output; use a dataset with more"


@data_requirement
def two_input_groups(ensemble: Any) -> str | None:
    """Inputs come in two groups, such as objects and contexts."""
    if len(ensemble.dataset.load().input_groups) == 2:
        return None
    name = ensemble.dataset.name
    return f"dataset.name: {name!r}: its inputs come in no two groups; use contextual"


@data_requirement
def few_samples(ensemble: Any) -> str | None:
    """At most 12 samples: all gate patterns on them are tried."""
    samples = ensemble.dataset.sizes.samples
    if samples <= MOST_PATTERNED:
        return None
    return (
        f"dataset.name: {ensemble.dataset.name!r}: has {samples} samples, and at most "
        f"{MOST_PATTERNED} have few enough gate patterns; use fewer objects or contexts"
    )


@data_requirement
def gates_fit(ensemble: Any) -> str | None:
    """Gates and trained pairs fit the samples or domains; of many samples, training tells."""
    network, dataset = ensemble.resolved, ensemble.dataset
    if network.by_domain:  # without its wiring, which grows as the square of the domains
        network.families(dataset.count)
        network.partners(dataset.count)
    elif network.has_fixed_gates and dataset.sizes.samples <= FEW_SAMPLES:
        network.examples(dataset)
    return None


@data_requirement
def candidates_fit(ensemble: Any) -> str | None:
    """Gates of all candidates fit the samples."""
    for name, network in ensemble.candidates.items():
        with configured_as(f"candidates.{name}"):
            network.examples(ensemble.dataset)
    return None


@data_requirement
def candidates_of_units(ensemble: Any) -> str | None:
    """Candidates, if any, average as many pathways of one unit as there are hidden units.

    Their gates follow from a sample, and let every pathway see all inputs.
    """
    (units,) = ensemble.resolved.hidden
    for name, network in ensemble.candidates.items():
        as_network = ensemble.model_copy(update={"network": network, "candidates": {}})
        with configured_as(f"candidates.{name}"):
            if name in ("initial", "trained"):
                raise UserError("network: the metric has gates by this name; use another")
            needs = "gated mean_readout unit_pathways gates_of_any_sample sees_all_inputs"
            if missing := unmet(as_network, needs, data=True):
                raise UserError(missing)
            pathways = network.gates.count(ensemble.dataset)
            if pathways != units:
                raise UserError(
                    f"network.gates: make {pathways} pathways, which start from the weights of "
                    f"{units} hidden units; make as many"
                )
    return None


@data_requirement
def parallel_pathways(ensemble: Any) -> str | None:
    """Pathways side by side, each with one hidden layer, an encoder and a decoder of its own."""
    if _wiring(ensemble).architecture.in_parallel:
        return None
    return (
        f"network.name: {ensemble.network.name!r}: some pathways share edges, or have no single "
        "hidden layer; use pathways side by side with one hidden layer each"
    )


@data_requirement
def common_modes(ensemble: Any) -> str | None:
    """What all pathways learn from is diagonal in common bases."""
    network = ensemble.network
    if network.by_domain and ensemble.dataset.domains().joint:
        return None  # the modes of all pathways together take long
    modes = _wiring(ensemble).effective.modes
    if modes.joint:
        return None
    return (
        f"network.name: {ensemble.network.name!r}: what its pathways learn from is not diagonal in "
        f"common bases: {modes.violation:.1e} of a correlation lies off the diagonal; use other "
        "gates or data"
    )


@data_requirement
def pairs_alike(ensemble: Any) -> str | None:
    """All pairs of domains have the same modes, and hidden layers have a unit for each of them."""
    dataset, hidden = ensemble.dataset, ensemble.network.hidden
    modes = dataset.domains().modes
    if modes is None:
        return f"dataset.name: {dataset.name!r}: pairs of domains differ in modes; use routing"
    if min(hidden) < (count := len(modes[1])):
        return f"network.hidden: {list(hidden)}: give a unit for each of {count} modes at least"
    return None


def _wiring(ensemble: Any) -> Any:
    """Graph and gates of the network on its samples.

    Raises:
        UserError: its gates do not fit the samples.
    """
    seen = ensemble.network.examples(ensemble.dataset)
    return ensemble.network.wiring(seen) if ensemble.network.by_domain else seen


# Words ------------------------------------------------------------------------------------------


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


def unmet(ensemble: Any, needs: str, data: bool = False) -> str | None:
    """The first requirement that an ensemble does not meet, in words; None where all are met.

    Args:
        ensemble: a `neuralrace.config.cell.Ensemble`.
        needs: names of requirements side by side; of `a|b` either will do.
        data: whether to check those of data too, which load the dataset. They come last.
    """
    of_data = {each for each in needs.split() if OF_DATA & set(each.split("|"))}
    for each in sorted(needs.split(), key=of_data.__contains__):
        if each in of_data and not data:
            continue
        missing = [REQUIREMENTS[name](ensemble) for name in each.split("|")]
        if all(missing):
            first, *others = map(str, missing)
            alike = first.rpartition(" ")[0] + " "  # key and value are told once
            return " or ".join([first, *(other.removeprefix(alike) for other in others)])
    return None
