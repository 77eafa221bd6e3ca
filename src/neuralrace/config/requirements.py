"""Requirements of extensions, by the names that their declarations use.

A requirement is a function of an ensemble. It returns None if it is met, and otherwise a
`UserError` with the key, its value and a remedy. Most requirements read the specification alone.
Data requirements load the dataset or generate its samples: planning checks them once, before
anything runs. The specification in a result file is not checked against data, which may be gone.
"""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np

from neuralrace.errors import UserError, configured_as

if TYPE_CHECKING:  # `cell` imports this module
    from neuralrace.config.cell import Ensemble, SolvedEnsemble

Requirement = Callable[[Any], UserError | None]
REQUIREMENTS: dict[str, Requirement] = {}
DATA_REQUIREMENTS: set[str] = set()
"""Names of the requirements that load the dataset."""
OF_NETWORK = frozenset([
    "layered", "gated", "graph", "routing", "given_gates", "no_hidden", "hidden", "one_hidden",
    "two_hidden", "several_hidden", "linear", "relu", "relu_units", "unit_pathways",
    "trained_readout", "mean_readout", "usual_output", "context_family", "common_pathway",
    "candidates", "trained_candidates",
])  # fmt: skip
"""Names of the requirements on the network alone."""
OF_TRAINING = frozenset([
    "squared_error", "full_batch", "gradient_flow", "gradient_descent", "joint_descent",
    "common_first",
])  # fmt: skip
"""Names of the requirements on training alone. Those on the start end in `_start`; all others are
on the data, or on data and network together."""
FEW_SAMPLES = 1000
"""Most samples that planning opens gates on; with more, training checks at its start."""
MOST_PATTERNED = 12
"""Most samples whose gate patterns can be tried one by one."""
MOST_TABLED = 16
"""Most gates, of all pathways on all distinct inputs, whose tables can be tried one by one."""
MOST_ROWS = 2000
"""Most rows of a tangent kernel, of which each run needs all eigenvectors: seconds."""
WHITE = 1e-6
"""Largest departure of white inputs from sigma_xx = d I, relative to d I."""
_answers: dict[tuple[str, ...], UserError | None] = {}
"""Answers of data requirements, as the cells of a sweep often share dataset and network."""


def requirement(test: Requirement) -> Requirement:
    """Registers a requirement under the name of its function."""
    REQUIREMENTS[test.__name__] = test
    return test


def data_requirement(test: Requirement) -> Requirement:
    """Registers a data requirement under the name of its function, with a cache.

    It may depend on the dataset, the networks and the initialiser, and on nothing else.
    """

    @wraps(test)
    def cached(ensemble: Any) -> UserError | None:
        parts = (ensemble.dataset, ensemble.init, *ensemble.networks)
        key = (test.__name__, *(part.sha256() for part in parts))
        if key not in _answers:
            try:
                _answers[key] = test(ensemble)
            except UserError as error:  # gates that do not fit the samples, or no samples
                _answers[key] = error
        return _answers[key]

    DATA_REQUIREMENTS.add(test.__name__)
    return requirement(cached)


def unmet(ensemble: Any, requirements: str, data: bool = False) -> UserError | None:
    """The first requirement that an ensemble does not meet; None if it meets all of them.

    Args:
        ensemble: a `neuralrace.config.cell.Ensemble`.
        requirements: names, separated by spaces; `a|b` is met if one of them is.
        data: whether to check data requirements too. They come last.
    """

    def of_data(names: str) -> bool:
        return not DATA_REQUIREMENTS.isdisjoint(names.split("|"))

    for names in sorted(requirements.split(), key=of_data):
        if of_data(names) and not data:
            continue
        errors = [error for name in names.split("|") if (error := REQUIREMENTS[name](ensemble))]
        if len(errors) == len(names.split("|")):
            return _either(*errors)
    return None


def _either(first: UserError, *others: UserError) -> UserError:
    """One error for alternatives of which none is met."""
    remedies = [first.remedy]
    for other in others:
        same = (other.key, other.value, other.problem) == (first.key, first.value, first.problem)
        remedies.append(other.remedy if same else str(other))
    return first.replaced(remedy=" or ".join(dict.fromkeys(remedies)))


def _wrong(key: str, value: Any, remedy: str, problem: str = "") -> UserError:
    return UserError(problem, key=key, value=value, remedy=remedy)


def _unless(met: Any, key: str, value: Any, remedy: str, problem: str = "") -> UserError | None:
    return None if met else _wrong(key, value, remedy, problem)


def _equal(key: str, value: str, expected: str) -> UserError | None:
    return _unless(value == expected, key, value, f"use {expected}")


# The network -------------------------------------------------------------------------------------


def _resolved(ensemble: "Ensemble") -> Any:  # what it has depends on its class
    return ensemble.resolved


def _named(ensemble: "Ensemble", name: str) -> UserError | None:
    network, resolved = ensemble.network, _resolved(ensemble)
    if network.name == name != resolved.name:  # such as gated networks of learned gates
        return _wrong("network.gates.name", network.gates.name, "use gates that are given")
    return _unless(resolved.name == name, "network.name", network.name, f"use {name}")


@requirement
def layered(ensemble: "Ensemble") -> UserError | None:
    """An ordinary network; networks with learned gates count as ReLU networks."""
    return _named(ensemble, "layered")


@requirement
def gated(ensemble: "Ensemble") -> UserError | None:
    """Parallel pathways whose gates the configuration gives."""
    return _named(ensemble, "gated")


@requirement
def graph(ensemble: "Ensemble") -> UserError | None:
    """An architecture graph."""
    return _named(ensemble, "graph")


@requirement
def routing(ensemble: "Ensemble") -> UserError | None:
    """Pathway blocks between domains."""
    return _named(ensemble, "routing")


@requirement
def given_gates(ensemble: "Ensemble") -> UserError | None:
    """Pathways whose gates the configuration gives: parallel, in a graph, or between domains."""
    network = ensemble.network
    if network.name == "layered":
        return _wrong(
            "network.name", "layered", "give gates, as gated, graph or routing networks have them"
        )
    if _resolved(ensemble).name == "layered":
        return _wrong("network.gates.name", network.gates.name, "give the gates")
    return None


def _hidden(ensemble: "Ensemble", fits: Callable[[int], bool], remedy: str) -> UserError | None:
    layers = _resolved(ensemble).hidden
    return _unless(fits(len(layers)), "network.hidden", layers, remedy)


@requirement
def no_hidden(ensemble: "Ensemble") -> UserError | None:
    """A single layer of weights."""
    return _hidden(ensemble, lambda n: n == 0, "leave hidden layers out, []")


@requirement
def hidden(ensemble: "Ensemble") -> UserError | None:
    """At least one hidden layer."""
    return _hidden(ensemble, lambda n: n > 0, "give a hidden layer")


@requirement
def one_hidden(ensemble: "Ensemble") -> UserError | None:
    """Exactly one hidden layer."""
    return _hidden(ensemble, lambda n: n == 1, "give exactly one hidden layer")


@requirement
def two_hidden(ensemble: "Ensemble") -> UserError | None:
    """Exactly two hidden layers."""
    return _hidden(ensemble, lambda n: n == 2, "give exactly two hidden layers")


@requirement
def several_hidden(ensemble: "Ensemble") -> UserError | None:
    """At least two hidden layers."""
    return _hidden(ensemble, lambda n: n > 1, "give two layers or more")


@requirement
def unit_pathways(ensemble: "Ensemble") -> UserError | None:
    """Parallel pathways of one hidden unit each."""
    network = ensemble.network
    if widths := getattr(network, "widths", None):
        return _wrong("network.widths", widths, "leave them out")
    return _unless(
        tuple(network.hidden) == (1,),
        "network.hidden",
        network.hidden,
        "give pathways of one unit, [1]",
    )


def _activation(ensemble: "Ensemble", name: str) -> UserError | None:
    network = _resolved(ensemble)
    if getattr(network, "bias", False):
        return _wrong("network.bias", True, "leave biases out")
    if bias := getattr(network, "output_bias", None):
        return _wrong("network.output_bias", bias, "leave it out")
    if getattr(network, "output", "linear") != "linear":
        return _wrong("network.output", network.output, "leave it out")
    return _equal("network.activation", getattr(network, "activation", "linear"), name)


@requirement
def linear(ensemble: "Ensemble") -> UserError | None:
    """No activation but the identity, and no biases."""
    return _activation(ensemble, "linear")


@requirement
def relu(ensemble: "Ensemble") -> UserError | None:
    """ReLU units without biases."""
    return _activation(ensemble, "relu")


@requirement
def relu_units(ensemble: "Ensemble") -> UserError | None:
    """ReLU units, with biases or without."""
    return _equal(
        "network.activation", getattr(_resolved(ensemble), "activation", "linear"), "relu"
    )


def _readout(ensemble: "Ensemble", name: str) -> UserError | None:
    return _equal("network.readout", getattr(_resolved(ensemble), "readout", "trained"), name)


@requirement
def trained_readout(ensemble: "Ensemble") -> UserError | None:
    """The last layer is trained."""
    return _readout(ensemble, "trained")


@requirement
def mean_readout(ensemble: "Ensemble") -> UserError | None:
    """The output of the network is the mean over its hidden units."""
    return _readout(ensemble, "mean")


@requirement
def usual_output(ensemble: "Ensemble") -> UserError | None:
    """The output is affine, with weights and a bias as other layers have them."""
    network = _resolved(ensemble)
    if getattr(network, "readout", "trained") == "tied":
        return _wrong("network.readout", "tied", "use trained")
    if getattr(network, "output", "linear") != "linear":
        return _wrong("network.output", network.output, "leave it out")
    bias = getattr(network, "output_bias", None)
    return _unless(bias is None, "network.output_bias", bias, "leave it out")


@requirement
def recorded_biases(ensemble: "Ensemble") -> UserError | None:
    """Norms of biases are recorded, if there are any."""
    bias = getattr(_resolved(ensemble), "bias", False)
    return _unless(
        not bias or "bias_norm" in ensemble.record.observables,
        "network.bias",
        True,
        "add bias_norm to record.observables",
    )


@requirement
def one_mask(ensemble: "Ensemble") -> UserError | None:
    """All seeds train the same pairs of domains."""
    pairs = getattr(ensemble.network, "pairs", None)
    if pairs is None or not pairs.varies:
        return None
    return _wrong(
        "network.pairs.name", pairs.name, "use band or all", "trains other pairs in each seed"
    )


@requirement
def joint_descent(ensemble: "Ensemble") -> UserError | None:
    """All pathways descend on the joint residual, not in stages."""
    stages = getattr(ensemble.network, "stages", None)
    return _unless(stages is None, "network.stages", stages, "leave them out")


@requirement
def common_first(ensemble: "Ensemble") -> UserError | None:
    """Joint descent, or two stages of which the common pathway is the first."""
    network: Any = ensemble.network
    stages = getattr(network, "stages", None)
    first = stages is None or (len(stages) == 2 and stages[0] == 1 and network.gates.common)
    remedy = "leave them out, or let the common pathway be the first of two"
    return _unless(first, "network.stages", stages, remedy)


@requirement
def context_family(ensemble: "Ensemble") -> UserError | None:
    """Gates of name contexts, with context pathways open in one number of contexts."""
    gates = getattr(ensemble.network, "gates", None)
    if _resolved(ensemble).name != "gated" or gates is None or gates.name != "contexts":
        return UserError(key="network", remedy="give it the name gated and gates of name contexts")
    if gates.shown != "first_group":
        return _equal("network.gates.shown", gates.shown, "first_group")
    if len(gates.open_in) > 1:
        remedy = "give one number of contexts at most"
    elif gates.open_in and gates.open_in[0] >= ensemble.dataset.contexts:
        remedy = f"give less than the {ensemble.dataset.contexts} contexts"
    else:
        return None
    return _wrong("network.gates.open_in", gates.open_in, remedy)


@requirement
def common_pathway(ensemble: "Ensemble") -> UserError | None:
    """A common pathway in addition to those of contexts."""
    return _unless(ensemble.network.gates.common, "network.gates.common", False, "use true")


@requirement
def sees_all_inputs(ensemble: "Ensemble") -> UserError | None:
    """Every pathway sees all inputs."""
    if ensemble.network.gates.sees_all:
        return None
    problem = "some pathways do not see all inputs"
    return UserError(problem, key="network.gates", remedy="use gates that do")


@data_requirement
def few_gate_tables(ensemble: "Ensemble") -> UserError | None:
    """So few pathways and distinct inputs that all tables of gates can be tried."""
    inputs = len(np.unique(ensemble.dataset.load().x, axis=0))
    gates = ensemble.network.gates.count(ensemble.dataset) * inputs
    problem = f"has {inputs} distinct inputs; all gates on them have 2^{gates} tables, too many"
    return _dataset(ensemble, gates <= MOST_TABLED, "use fewer inputs, of two values each", problem)


@requirement
def units_divide_inputs(ensemble: "Ensemble") -> UserError | None:
    """Several hidden units that lie evenly on the ring of inputs."""
    units, inputs = ensemble.network.hidden[0], ensemble.dataset.sizes.inputs
    return _unless(
        units > 1 and inputs % units == 0,
        "network.hidden",
        ensemble.network.hidden,
        f"use several units, of a number that divides the {inputs} inputs",
    )


@requirement
def gates_of_any_sample(ensemble: "Ensemble") -> UserError | None:
    """Gates that follow from a sample, so that fresh samples have them too."""
    gates = ensemble.network.gates
    return _unless(
        not gates.of_single_samples,
        "network.gates.name",
        gates.name,
        "use half_space, bumps or tiling",
        "gates of single samples say nothing of others",
    )


@requirement
def candidates(ensemble: "SolvedEnsemble") -> UserError | None:
    """Gated networks to compare with."""
    return _unless(ensemble.candidates, "candidates", {}, "give gated networks to compare with")


@requirement
def trained_candidates(ensemble: "SolvedEnsemble") -> UserError | None:
    """Candidates for a ReLU network, with one hidden layer and a trained readout."""
    for name, network in ensemble.candidates.items():
        if network.name != "gated":
            return _equal(f"candidates.{name}.name", network.name, "gated")
        if network.readout != "trained":
            return _equal(f"candidates.{name}.readout", network.readout, "trained")
        if len(network.hidden) != 1:
            return _wrong(
                f"candidates.{name}.hidden", network.hidden, "give exactly one hidden layer"
            )
    return candidates(ensemble)


# The start ---------------------------------------------------------------------------------------


@requirement
def normal_start(ensemble: "Ensemble") -> UserError | None:
    """Initial weights are normal, so that width and variance say all."""
    return _equal("init.name", ensemble.init.name, "normal")


@requirement
def aligned_start(ensemble: "Ensemble") -> UserError | None:
    """Initial weights that are diagonal in the modes of the task."""
    init = ensemble.init
    return _unless(init.aligned, "init.name", init.name, "use aligned")


@requirement
def orthogonal_start(ensemble: "Ensemble") -> UserError | None:
    """Initial weights that are multiples of orthogonal matrices."""
    init = ensemble.init
    return _unless(init.orthogonal, "init.name", init.name, "use orthogonal")


@requirement
def general_start(ensemble: "Ensemble") -> UserError | None:
    """Initial weights in general position: not defined in the modes of the task."""
    return _unless(
        not ensemble.init.in_modes,
        "init.name",
        ensemble.init.name,
        "use normal",
        "is defined in the modes of the task",
    )


# Training ----------------------------------------------------------------------------------------


@requirement
def squared_error(ensemble: "Ensemble") -> UserError | None:
    """Squared error is minimised."""
    return _equal("training.loss.name", ensemble.training.loss.name, "squared_error")


@requirement
def full_batch(ensemble: "Ensemble") -> UserError | None:
    """Every step sees all samples."""
    return _equal("training.batch.name", ensemble.training.batch.name, "full")


@requirement
def mini_batch(ensemble: "Ensemble") -> UserError | None:
    """Every step sees a part of the samples."""
    return _equal("training.batch.name", ensemble.training.batch.name, "mini")


@requirement
def gradient_flow(ensemble: "Ensemble") -> UserError | None:
    """Training follows gradient flow if its steps are small."""
    optimiser = ensemble.training.optimiser
    return _unless(
        optimiser.follows_flow,
        "training.optimiser.name",
        optimiser.name,
        "use one that follows gradient flow",
    )


@requirement
def gradient_descent(ensemble: "Ensemble") -> UserError | None:
    """Steps of training are the learning rate times the gradient."""
    optimiser = ensemble.training.optimiser
    return _unless(
        optimiser.is_plain, "training.optimiser.name", optimiser.name, "use plain gradient descent"
    )


# The dataset, by its specification ---------------------------------------------------------------


def _dataset(ensemble: "Ensemble", met: Any, remedy: str, problem: str = "") -> UserError | None:
    return _unless(met, "dataset.name", ensemble.dataset.name, remedy, problem)


@requirement
def xor(ensemble: "Ensemble") -> UserError | None:
    """XoR without a margin."""
    if ensemble.dataset.name != "xor":
        return _dataset(ensemble, False, "use xor")
    margin = ensemble.dataset.margin
    return _unless(margin is None, "dataset.margin", margin, "leave it out")


@requirement
def xor_with_margin(ensemble: "Ensemble") -> UserError | None:
    """XoR with a margin."""
    if ensemble.dataset.name != "xor":
        return _dataset(ensemble, False, "use xor and give its margin")
    margin = ensemble.dataset.margin
    return None if margin else UserError("is missing", key="dataset.margin", remedy="give it")


@requirement
def contextual_hierarchies(ensemble: "Ensemble") -> UserError | None:
    """The contextual task, a hierarchy in every context."""
    if ensemble.dataset.name != "contextual":
        return _dataset(ensemble, False, "use contextual")
    structures = ensemble.dataset.structures
    return _unless(
        set(structures) == {"hierarchy"}, "dataset.structures", structures, "use hierarchy alone"
    )


@requirement
def whole_targets(ensemble: "Ensemble") -> UserError | None:
    """All targets of the contextual task, not a part of them."""
    return _equal("dataset.part", ensemble.dataset.part, "whole")


@requirement
def one_task(ensemble: "Ensemble") -> UserError | None:
    """A single task, not a sequence of tasks."""
    return _dataset(ensemble, len(ensemble.dataset.phases) == 1, "use a single task")


@requirement
def task_sequence(ensemble: "Ensemble") -> UserError | None:
    """A sequence of tasks."""
    return _dataset(ensemble, len(ensemble.dataset.phases) > 1, "use sequence")


@requirement
def contexts(ensemble: "Ensemble") -> UserError | None:
    """Samples in contexts; the contexts of a dataset by domain are its pairs of domains."""
    dataset = ensemble.dataset
    met = getattr(dataset, "contexts", None) is not None or hasattr(dataset, "domains")
    return _dataset(ensemble, met, "use one with contexts, such as contextual")


@requirement
def domains_of_images(ensemble: "Ensemble") -> UserError | None:
    """Domains of images, with images held out for testing."""
    met = hasattr(ensemble.dataset, "image_domains")
    return _dataset(ensemble, met, "use transformed_images")


@requirement
def domains_in_memory(ensemble: "Ensemble") -> UserError | None:
    """A routing network sees all its inputs at once; images arrive in parts."""
    images = _resolved(ensemble).name == "routing" and hasattr(ensemble.dataset, "image_domains")
    return _dataset(ensemble, not images, "use routing")


@requirement
def fresh_samples(ensemble: "Ensemble") -> UserError | None:
    """A dataset that draws its samples by a seed, from a distribution with known moments."""
    dataset = ensemble.dataset
    return _dataset(
        ensemble,
        hasattr(dataset, "seed") and dataset.mixture() is not None,
        "use one that has, such as nonlinear_gaussian",
        "has no fresh samples of the same distribution",
    )


@requirement
def known_input_distribution(ensemble: "Ensemble") -> UserError | None:
    """Inputs that are functions of a Gaussian process, with known moments."""
    return _dataset(
        ensemble,
        ensemble.dataset.has_input_distribution,
        "use nonlinear_gaussian",
        "the distribution of its inputs is unknown",
    )


# Data requirements -------------------------------------------------------------------------------


@data_requirement
def tasks_fit(ensemble: "Ensemble") -> UserError | None:
    """All tasks of a sequence have the same sizes."""
    if task_sequence(ensemble):
        return None  # the sizes of a single dataset may take long, and fit themselves
    sizes = [dataset.sizes for _, dataset in ensemble.dataset.phases]
    return _unless(
        len(set(sizes)) == 1,
        "dataset.tasks",
        sizes,
        "use datasets of equal sizes",
        "tasks differ in samples, inputs or outputs",
    )


@data_requirement
def start_exists(ensemble: "Ensemble") -> UserError | None:
    """The initialiser works for this network and these data."""
    init, network = ensemble.init, _resolved(ensemble)
    if init.fits_any_network:
        return None
    if network.has_fixed_gates and not init.for_graphs:
        return _wrong("init.name", init.name, "use one for graphs, such as normal")
    # modes of many pathways or samples take long: training checks these at its start
    dataset, runs = ensemble.dataset, ((1.0,), ensemble.seed_numbers[:1])
    samples, inputs, outputs = dataset.sizes
    if network.by_domain:
        if not init.in_modes:
            widths = inputs, outputs
            network.initial_between(dataset.count, widths, dataset.domains, init, *runs)
    elif samples <= FEW_SAMPLES:
        network.initial(init, network.examples(dataset), *runs)
    return None


@data_requirement
def lambda_balanced_start(ensemble: "Ensemble") -> UserError | None:
    """Initial weights with W_2^T W_2 - W_1 W_1^T = lambda I, of one hidden layer."""
    init, network = ensemble.init, _resolved(ensemble)
    examples = network.examples(ensemble.dataset)
    weights = network.initial(init, examples, (1.0,), ensemble.seed_numbers[:1])
    first, second = (weight[0, 0] for weight in weights)
    difference = second.T @ second - first @ first.T
    rest = difference - np.diag(difference).mean() * np.eye(len(first))
    size = np.sum(first**2) + np.sum(second**2)
    return _unless(
        np.linalg.norm(rest) <= 1e-8 * size,
        "init.name",
        init.name,
        "use lambda_balanced, or zero_balanced without imbalance",
    )


def _inputs(ensemble: "Ensemble", test: Callable[[Any], bool], problem: str) -> UserError | None:
    dataset = ensemble.dataset
    tasks = [task for _, task in dataset.phases]
    met = all(task.may_be_white and test(task.load()) for task in tasks)
    remedy = "use inputs that do, such as those of the dataset modes, or another solution"
    return _dataset(ensemble, met, remedy, f"its inputs {problem}")


def _white(ensemble: "Ensemble", variance: float | None = None) -> UserError | None:
    """None if sigma_xx = d I, with the given d if there is one."""
    for _, task in ensemble.dataset.phases:
        problem, remedy = "its inputs are not white", "use another solution"
        if task.may_be_white:
            data = task.load()
            d = data.variance if variance is None else variance
            if (miss := data.colour(d)) <= WHITE:
                continue
            problem += f": <x x^T> differs from {d:.3g} I by {100 * miss:.2g}%"
            rank, inputs = np.linalg.matrix_rank(data.sigma_xx), len(data.sigma_xx)
            if rank < inputs:
                problem += f", as {len(data.x)} samples span {rank} of {inputs} dimensions"
            else:
                by = "x @ np.linalg.inv(np.linalg.cholesky(x.T @ x / len(x))).T"
                remedy = f"whiten them, such as by {by}, or {remedy}"
        return _dataset(ensemble, False, remedy, problem)
    return None


@data_requirement
def white_inputs(ensemble: "Ensemble") -> UserError | None:
    """Inputs are white, sigma_xx = d I with any d, such as one-hot items."""
    return _white(ensemble)


@data_requirement
def whitened(ensemble: "Ensemble") -> UserError | None:
    """Inputs are whitened, sigma_xx = I."""
    return _white(ensemble, 1.0)


@data_requirement
def equal_variance(ensemble: "Ensemble") -> UserError | None:
    """Inputs have the same variance in all directions, sigma_xx = d I in the modes of the task."""
    return _inputs(
        ensemble,
        lambda data: np.allclose(data.modes.d, data.modes.d[0]) and data.modes.joint,
        "do not vary alike in all directions",
    )


@data_requirement
def positive_modes(ensemble: "Ensemble") -> UserError | None:
    """No mode of the task has a negative strength."""
    weakest = float(ensemble.dataset.load().modes.s.min(initial=0.0))
    return _unless(
        weakest >= 0, "dataset.singular_values", weakest, "use positive values", "is negative"
    )


@requirement
def test_samples(ensemble: "Ensemble") -> UserError | None:
    """The dataset has test samples, which are not trained on."""
    remedy = "give test or x_test and y_test of the dataset table or file"
    return _dataset(ensemble, ensemble.dataset.has_test, remedy, "has no test samples")


@data_requirement
def one_output(ensemble: "Ensemble") -> UserError | None:
    """The dataset has a single output."""
    outputs = ensemble.dataset.sizes.outputs
    return _dataset(ensemble, outputs == 1, "use a dataset with one", f"has {outputs} outputs")


@data_requirement
def several_outputs(ensemble: "Ensemble") -> UserError | None:
    """The dataset has at least two outputs: the largest of them is the class."""
    met = ensemble.dataset.sizes.outputs > 1
    return _dataset(ensemble, met, "use a dataset with more", "has one output")


@data_requirement
def two_input_groups(ensemble: "Ensemble") -> UserError | None:
    """Inputs come in two groups, such as objects and contexts."""
    met = len(ensemble.dataset.load().input_groups) == 2
    return _dataset(ensemble, met, "use contextual", "its inputs come in no two groups")


@data_requirement
def few_samples(ensemble: "Ensemble") -> UserError | None:
    """At most 12 samples: all gate patterns on them are tried."""
    samples = ensemble.dataset.sizes.samples
    return _dataset(
        ensemble,
        samples <= MOST_PATTERNED,
        "use fewer objects or contexts",
        f"has {samples} samples, and at most {MOST_PATTERNED} have few enough gate patterns",
    )


@data_requirement
def small_kernel(ensemble: "Ensemble") -> UserError | None:
    """At most 2,000 samples times outputs, the rows of the tangent kernel."""
    network, (samples, _, outputs) = _resolved(ensemble), ensemble.dataset.sizes
    if network.by_domain:  # these sizes are those of a pair
        samples *= ensemble.dataset.count * network.partners(ensemble.dataset.count)
    rows = samples * outputs
    return _dataset(
        ensemble,
        rows <= MOST_ROWS,
        "use fewer samples",
        f"has {samples} samples of {outputs} outputs, and their tangent kernel has {rows} rows; at "
        f"most {MOST_ROWS} are solved",
    )


@data_requirement
def gates_fit(ensemble: "Ensemble") -> UserError | None:
    """Gates and trained pairs fit the samples or domains; with many samples, training checks."""
    network, dataset = _resolved(ensemble), ensemble.dataset
    if network.by_domain:  # without its wiring, which grows as the square of the domains
        network.families(dataset.count)
        network.partners(dataset.count)
    elif network.has_fixed_gates and dataset.sizes.samples <= FEW_SAMPLES:
        for _, task in dataset.phases:
            examples = network.examples(task)
            if (test := task.load().test) is not None:
                network.test_examples(examples, test)
    return None


@data_requirement
def candidates_fit(ensemble: "SolvedEnsemble") -> UserError | None:
    """Gates of all candidates fit the samples."""
    for name, network in ensemble.candidates.items():
        with configured_as(f"candidates.{name}"):
            network.examples(ensemble.dataset)
    return None


@data_requirement
def candidates_of_units(ensemble: "SolvedEnsemble") -> UserError | None:
    """Candidates, if any, average as many pathways of one unit as there are hidden units.

    Their gates follow from a sample, and let every pathway see all inputs.
    """
    (units,) = _resolved(ensemble).hidden
    for name, network in ensemble.candidates.items():
        if name in ("initial", "trained"):
            return UserError(
                "the metric has gates of this name", key=f"candidates.{name}", remedy="use another"
            )
        as_network = ensemble.model_copy(update={"network": network, "candidates": {}})
        with configured_as(f"candidates.{name}"):
            names = "gated mean_readout unit_pathways gates_of_any_sample sees_all_inputs"
            if error := unmet(as_network, names, data=True):
                raise error
            pathways = network.gates.count(ensemble.dataset)
            if pathways != units:
                raise UserError(
                    f"make {pathways} pathways, which start from the weights of {units} hidden "
                    "units",
                    key="network.gates",
                    remedy="make as many",
                )
    return None


def _wiring(ensemble: "Ensemble") -> Any:
    """Graph and gates of the network on its samples.

    Raises:
        UserError: the gates do not fit the samples.
    """
    network = ensemble.network
    view = network.examples(ensemble.dataset)
    return network.wiring(view) if network.by_domain else view


@data_requirement
def parallel_pathways(ensemble: "Ensemble") -> UserError | None:
    """Parallel pathways with one hidden layer, each with its own encoder and decoder."""
    return _unless(
        _wiring(ensemble).architecture.in_parallel,
        "network.name",
        ensemble.network.name,
        "use parallel pathways with one hidden layer each",
        "some pathways share edges, or have no single hidden layer",
    )


@data_requirement
def common_modes(ensemble: "Ensemble") -> UserError | None:
    """The correlations that all pathways learn from are diagonal in common bases."""
    if ensemble.network.by_domain and ensemble.dataset.domains().joint:
        return None  # the modes of all pathways together take long
    modes = _wiring(ensemble).effective.modes
    return _unless(
        modes.joint,
        "network.name",
        ensemble.network.name,
        "use other gates or data",
        "the correlations that its pathways learn from are not diagonal in common bases: "
        f"{modes.violation:.1e} of a correlation lies off the diagonal",
    )


@data_requirement
def equal_pathway_blocks(ensemble: "Ensemble") -> UserError | None:
    """Pathway blocks of one size and width; all pairs are trained if blocks are groups."""
    network, count = ensemble.network, ensemble.dataset.count
    families = network.families(count)
    if len(families) != 1:
        return _wrong(
            "network.gates.name", network.gates.name, "use blocks of one size, such as groups"
        )
    if len(set(network.hidden)) > 1:
        return _wrong("network.hidden", network.hidden, "use one width")
    return _unless(
        families[0].size >= count or network.mask(count, 0).all(),
        "network.pairs.name",
        network.pairs.name,
        "use all",
        "groups of domains need all pairs",
    )


@data_requirement
def equal_pairs(ensemble: "Ensemble") -> UserError | None:
    """All pairs of domains have the same modes, and hidden layers have a unit for each mode."""
    layers, modes = ensemble.network.hidden, ensemble.dataset.domains().modes
    if modes is None:
        return _dataset(ensemble, False, "use routing", "pairs of domains differ in modes")
    count = len(modes[1])
    return _unless(
        min(layers) >= count,
        "network.hidden",
        layers,
        f"give a unit for each of {count} modes at least",
    )
