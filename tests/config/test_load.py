"""Configuration loading: plans, sweeps, settings, and messages about mistakes."""

import copy
import datetime
import math
import re
import tracemalloc

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from neuralrace.cli.show import about_cell
from neuralrace.config import load
from neuralrace.config.cell import Ensemble, SolvedEnsemble
from neuralrace.config.load import read_plan
from neuralrace.errors import UserError

BASE, OVERRIDE = "config/paper.yaml", "config/override.yaml"
WHERE = "experiments.paper.experiment"
EXPERIMENT = yaml.safe_load("""
dataset: {name: modes, singular_values: [3, -2.0], inputs: 5, outputs: 4}
network: {name: layered, hidden: [6]}
init: {name: normal}
init_scales: [0.1, 0.3]
seeds: 3
training: {learning_rate: 0.02, steps: 40}
record: {every: 2}
""")
GATED = {"name": "gated", "hidden": [4], "gates": {"name": "per_example"}}
RELU = {"name": "layered", "hidden": [6], "activation": "relu"}
NODES = {"x": 5, "h": 3, "y": 4}
CHAIN = {"name": "graph", "nodes": NODES, "edges": [["x", "h"], ["h", "y"]]}
ROUTING = {
    "dataset": {"name": "routing", "count": 4},
    "network": {
        "name": "routing",
        "hidden": [4],
        "gates": {"name": "always_on"},
        "pairs": {"name": "band", "partners": 2},
    },
}
GONE = object()


def experiment(changes):
    """The experiment with values at dotted keys replaced, or removed."""
    changed = copy.deepcopy(EXPERIMENT)
    for key, value in changes.items():
        *path, last = key.split(".")
        node = changed
        for part in path:
            node = node[part]
        node[last] = copy.deepcopy(value)
        if value is GONE:
            del node[last]
    return changed


def plan_of(changes, **settings):
    config = {"experiments": {"paper": {"experiment": experiment(changes)}}} | settings
    return read_plan(config, {BASE: config})


def cell_of(changes):
    """The only cell of a plan."""
    (cell,) = plan_of(changes).cells.values()
    return cell


def refusal(changes, **settings):
    """The error about an experiment with changes."""
    with pytest.raises(UserError) as caught:
        plan_of(changes, **settings)
    return caught.value


# Messages --------------------------------------------------------------------------------------

REFUSED = {
    "unknown key": ({"colour": 1}, "colour", "1", "unknown key; `neuralrace keys`"),
    "unknown nested key": (
        {"training.learning_rte": 0.1}, "training.learning_rte", "0.1", "unknown key"),
    "text for a number": (
        {"training.learning_rate": "fast"}, "training.learning_rate", "'fast'", "a number"),
    "the same inside a list": (
        {"init_scales": [0.1, "1e-3"]}, "init_scales.1", "'1e-3'", "expected a number$"),
    "no for a name": (
        {"network.activation": False}, "network.activation", "False", "'linear', 'relu'"),
    "text for a boolean": ({"network.bias": "no"}, "network.bias", "'no'", "true or false"),
    "another word for an output bias": (
        {"network.output_bias": "free"}, "network.output_bias", "'free'",
        "expected 'trained' or a finite number"),
    "a boolean for an output bias": (
        {"network.output_bias": True}, "network.output_bias", "True", "or a finite number"),
    "the rate of an output bias that is not trained": (
        {"network.output_bias": 0.5, "network.output_bias_rate": 0.1}, "network.output_bias_rate",
        "0.1", "is the rate of an output bias that is trained; add output_bias: trained"),
    "a rate of zero for an output bias": (
        {"network.output_bias": "trained", "network.output_bias_rate": 0.0},
        "network.output_bias_rate", "0.0", "greater than 0"),
    "an infinite output bias": (
        {"network.output_bias": float("inf")}, "network.output_bias", "inf", "finite number"),
    "boolean for a number": ({"seeds": True}, "seeds", "True", "a whole number$"),
    "whole number with a point": ({"seeds": 10.0}, "seeds", "10.0", "number; write 10$"),
    "fraction for a count": ({"seeds": 2.5}, "seeds", "2.5", "a whole number"),
    "list for a mapping": ({"training": [1]}, "training", "[1]", "a mapping of keys"),
    "text for a mapping": ({"dataset": "modes"}, "dataset", "'modes'", "a mapping of keys"),
    "unknown dataset": ({"dataset.name": "cifar"}, "dataset", "", "cifar.*'digits', .*'modes'"),
    "unknown law": ({"init.name": "he"}, "init", "", "he'.*'aligned', .*'zero_balanced'"),
    "unknown batch": (
        {"training.batch": {"name": "all"}}, "training.batch", "",
        "'all'.*'full', 'mini', 'fresh'"),
    "batch without a name": ({"training.batch": {"size": 3}}, "training.batch", "", "'name'"),
    "unknown activation": (
        {"network.activation": "gelu"}, "network.activation", "'gelu'",
        "'linear', 'relu', 'erf', 'sigmoid' or 'tanh'"),
    "unknown observable": (
        {"record.observables": ["layer_norm", "norm"]}, "record.observables.1", "'norm'",
        "no such observable; did you mean bias_norm"),
    "unknown solution": ({"solutions": ["exat"]}, "solutions.0", "'exat'", "did you mean exact?"),
    "unknown metric": (
        {"metrics": ["magic"]}, "metrics.0", "'magic'", "`neuralrace list metrics` lists all"),
    "misspelt metric": ({"metrics": ["balence"]}, "metrics.0", "'balence'", "did you mean balance"),
    "metric of what is not recorded": (
        {"metrics": ["rate_gaps"], "record.observables": ["layer_norm"]}, "metrics", "'rate_gaps'",
        "needs the observable rate_gap; add it to record.observables"),
    "metric of what is not solved": (
        {"metrics": ["analytic_fit"], "solutions": []}, "metrics", "'analytic_fit'",
        "needs a solution that gives loss; add one to solutions"),
    "metric of another network": (
        {"metrics": ["gate_flips"]}, "metrics", "'gate_flips'",
        "network.activation: 'linear': use relu"),
    "zero width": ({"network.hidden": [4, 0]}, "network.hidden.1", "0", "greater than 0"),
    "negative width": ({"network.hidden": [-1]}, "network.hidden.0", "-1", "greater than 0"),
    "no seeds": ({"seeds": 0}, "seeds", "0", "greater than 0"),
    "negative steps": ({"training.steps": -40}, "training.steps", "-40", "greater than 0"),
    "zero learning rate": (
        {"training.learning_rate": 0}, "training.learning_rate", "0", "greater than 0"),
    "momentum of one": (
        {"training.optimiser": {"name": "momentum", "momentum": 1}}, "training.optimiser.momentum",
        "1", "less than 1"),
    "no momentum": (
        {"training.optimiser": {"name": "momentum"}}, "training.optimiser.momentum", "",
        "is required and missing"),
    "unknown optimiser": (
        {"training.optimiser": {"name": "lion"}}, "training.optimiser", "",
        "'lion'.*'adam', 'momentum', 'sgd'"),
    "no init scale": ({"init_scales": []}, "init_scales", "[]", "at least 1"),
    "negative init scale": ({"init_scales": [-0.1]}, "init_scales.0", "-0.1", "greater than 0"),
    "NaN": ({"training.learning_rate": math.nan}, "training.learning_rate", "nan", "finite"),
    "infinity": ({"init_scales": [math.inf]}, "init_scales.0", "inf", "finite number"),
    "NaN in a sweep": (
        {"sweep": {"training.learning_rate": [0.1, math.nan]}}, "sweep.training.learning_rate",
        "nan", "finite"),
    "date": ({"seeds": datetime.date(2020, 1, 1)}, "seeds", "'2020-01-01'", "a whole number"),
    "repeated init scales": ({"init_scales": [0.1, 0.1]}, "init_scales", "[0.1, 0.1]", "repeats"),
    "steps that records do not divide": (
        {"training.steps": 41}, "training.steps", "41", r"multiple of record.every \(2\)"),
    "steps that snapshots do not divide": (
        {"record.snapshots": 3}, "training.steps", "40", r"record.snapshots \(3\)"),
    "cross-entropy with a half": (
        {"training.loss": {"name": "cross_entropy", "normalisation": "half_mean"}},
        "training.loss.normalisation", "'half_mean'", "use mean or sum"),
    "mse with a normalisation": (
        {"training.loss": {"name": "mse", "normalisation": "sum"}},
        "training.loss.normalisation", "'sum'", "leave it out, or use squared_error"),
    "unknown normalisation": (
        {"training.loss": {"normalisation": "mea"}}, "training.loss.normalisation", "'mea'",
        "or a positive number; did you mean mean?"),
    "too many modes": (
        {"dataset.singular_values": [1.0] * 5}, "dataset.singular_values",
        "[1.0, 1.0, 1.0, 1.0, 1.0]", "do not fit into 5 inputs and 4 outputs; use at most 4"),
    "observable that needs two layers": (
        {"network.hidden": [], "record.observables": ["gram"]}, "record.observables", "'gram'",
        r"network.hidden: \[\]: give exactly one hidden layer"),
    "unknown kind of network": (
        {"network": {"name": "convolutional"}}, "network", "",
        "'convolutional'.*'gated', 'graph', 'layered', 'routing'"),
    "unknown gates of samples": (
        {"network": GATED, "network.gates": {"name": "half-space"}}, "network.gates", "",
        "'half-space'.*'always_on', 'bumps', 'contexts', 'half_space', 'learned', 'listed'"),
    "gates without their number": (
        {"network": GATED, "network.gates": {"name": "half_space"}}, "network.gates.pathways", "",
        "is required and missing"),
    "context pathways without their contexts": (
        {"network": GATED, "network.gates": {"name": "contexts"}}, "network.gates.open_in", "",
        "is required and missing"),
    "pathways open in no context": (
        {"network": GATED, "network.gates": {"name": "contexts", "open_in": [2, 0]}},
        "network.gates.open_in.1", "0", "greater than 0"),
    "pathways that are shown something else": (
        {"network": GATED,
         "network.gates": {"name": "contexts", "open_in": [2], "shown": "objects"}},
        "network.gates.shown", "'objects'", "'first_group' or 'everything'"),
    "no gates listed": (
        {"network": GATED, "network.gates": {"name": "listed", "rows": []}}, "network.gates.rows",
        "[]", "at least 1 item"),
    "a pathway without gates": (
        {"network": GATED, "network.gates": {"name": "listed", "rows": [[1, 0], []]}},
        "network.gates.rows.1", "[]", "at least 1 item"),
    "a gate wider than open": (
        {"network": GATED, "network.gates": {"name": "listed", "rows": [[1, 0], [1, 1.5]]}},
        "network.gates.rows.1.1", "1.5", "must be at most 1"),
    "a pathway of no width": (
        {"network": GATED | {"widths": [1, 0]}}, "network.widths.1", "0", "greater than 0"),
    "candidate with gates of its own making": (
        {"network": RELU,
         "candidates": {"one": GATED, "two": GATED | {"gates": {"name": "learned"}}}},
        "candidates.two.gates.name", "'learned'", "use gates that are given"),
    "candidate that is no gated network": (
        {"network": RELU, "candidates": {"one": RELU}},
        "candidates.one.name", "'layered'", "use gated or use graph"),
    "candidate with a misspelt key": (
        {"network": RELU, "candidates": {"one": GATED | {"width": [1]}}}, "candidates.one.width",
        "[1]", "unknown key"),
    "no pathway": (
        {"network": GATED, "network.gates": {"name": "half_space", "pathways": 0}},
        "network.gates.pathways", "0", "greater than 0"),
    "pathway without a hidden layer": (
        {"network": GATED, "network.hidden": []}, "network.hidden", "[]", "at least 1 item"),
    "activation of a gated network": (
        {"network": GATED, "network.activation": "relu"}, "network.activation", "'relu'",
        "unknown key"),
    "gates of domains for samples": (
        {**ROUTING, "network.gates": {"name": "per_example"}}, "network.gates", "",
        "'per_example'.*'always_on', 'groups', 'parallel'"),
    "group of no domain": (
        {**ROUTING, "network.gates": {"name": "groups", "size": 0}}, "network.gates.size", "0",
        "greater than 0"),
    "dedicated pathways without units": (
        {**ROUTING, "network.gates": {"name": "parallel", "dedicated": 0}},
        "network.gates.dedicated", "0", "greater than 0"),
    "unknown pairs": (
        {**ROUTING, "network.pairs": {"name": "random"}}, "network.pairs", "",
        "'random'.*'all', 'band', 'random_regular'"),
    "pairs without partners": (
        {**ROUTING, "network.pairs": {"name": "band", "partners": 0}}, "network.pairs.partners",
        "0", "greater than 0"),
    "routing without domains": (
        {"network": ROUTING["network"]}, "network.name", "'routing'",
        "dataset 'modes' has no domains; use a dataset with domains"),
    "routing with cross-entropy": (
        {**ROUTING, "training.loss": {"name": "cross_entropy", "normalisation": "mean"}},
        "training.loss.name", "'cross_entropy'", "use squared_error"),
    "pair_error of learned gates": (
        {"network": GATED, "network.gates": {"name": "learned"},
         "record.observables": ["pair_error"]},
        "record.observables", "'pair_error'", "network.name: 'gated': use routing"),
    "gram of deep learned gates": (
        {"network": GATED, "network.hidden": [3, 3], "network.gates": {"name": "learned"},
         "record.observables": ["gram"]},
        "record.observables", "'gram'", r"network.hidden: \[3, 3\]: give exactly one hidden layer"),
    "imbalance of a graph without hidden nodes": (
        {"network": CHAIN, "network.nodes": {"x": 5, "y": 4}, "network.edges": [["x", "y"]],
         "record.observables": ["imbalance"]},
        "record.observables", "'imbalance'", r"network.hidden: \[\]: give a hidden layer"),
    "edge to an unknown node": (
        {"network": CHAIN, "network.edges": [["x", "h"], ["h", "z"]]}, "network.edges", "['z']",
        "unknown nodes; list them in nodes"),
    "edge twice": (
        {"network": CHAIN, "network.edges": [["x", "h"], ["h", "y"], ["x", "h"]]}, "network.edges",
        "[['x', 'h']]", "listed twice; list each edge once"),
    "cycle": (
        {"network": CHAIN, "network.edges": [["x", "h"], ["h", "y"], ["h", "h"]]}, "network.edges",
        None, "form the cycle h; leave one of them out"),
    "lone node": (
        {"network": CHAIN, "network.edges": [["x", "y"]]}, "network.nodes", "['h']",
        "on no pathway; connect or remove them"),
    "node without units": (
        {"network": CHAIN, "network.nodes": NODES | {"h": 0}}, "network.nodes.h", "0",
        "greater than 0"),
    "edge of one node": (
        {"network": CHAIN, "network.edges": [["x", "h"], ["h"]]}, "network.edges.1.1", "",
        "is required and missing"),
    "gate that is no number": (
        {"network": CHAIN | {"gates": {"h": ["open"]}}}, "network.gates.h.0", "'open'",
        "expected a number"),
    "missing key": ({"dataset.inputs": GONE}, "dataset.inputs", "", "is required and missing"),
    "missing section": ({"training": GONE}, "training", "", "is required and missing"),
    "sweep that is no mapping": ({"sweep": [1]}, "sweep", "[1]", "a mapping of keys"),
    "sweep over no list": ({"sweep": {"seeds": 3}}, "sweep.seeds", "3", "a list with at least one"),
    "sweep over nothing": ({"sweep": {"seeds": []}}, "sweep.seeds", "[]", "at least one value"),
    "sweep with two values of one name": (
        {"sweep": {"seeds": [1, 1]}}, "sweep", "'seeds-1'", "distinct names"),
    "sweep over a key and one inside it": (
        {"sweep": {"init": [{"name": "zero_balanced"}], "init.imbalance": [0.0, 0.5]}}, "sweep",
        "'init.imbalance'", "expected no key inside init"),
    "sweep over a key twice": (
        {"sweep": {"seeds": [1], "init_scales, seeds": [[[0.1], 2]]}}, "sweep", "'seeds'",
        "no key inside seeds"),
    "sweep over keys together with too few values": (
        {"sweep": {"init_scales, seeds": [[[0.1]]]}}, "sweep.init_scales, seeds", "[[0.1]]",
        "lists of 2 values"),
    "sweep over keys together with a single value": (
        {"sweep": {"init_scales, seeds": [3]}}, "sweep.init_scales, seeds", "3",
        "lists of 2 values"),
    "sweep below a number": (
        {"sweep": {"seeds.x": [1]}}, "sweep.seeds.x", "3", "seeds as a mapping"),
    "sweep over an unknown key": ({"sweep": {"seed": [1]}}, "sweep.seed", "1", "unknown key"),
    "sweep with a bad value": (
        {"sweep": {"network.activation": ["relu", "gelu"]}}, "sweep.network.activation", "'gelu'",
        "'linear', 'relu'"),
    "sweep with an incomplete value": (
        {"sweep": {"dataset": [{"name": "modes", "inputs": 2, "outputs": 2}]}},
        "sweep.dataset.singular_values", "", "is required and missing"),
    "sweep key in capitals": ({"sweep": {"Seeds": [1]}}, "sweep", "'Seeds'", "lower-case"),
    "sweep key with an umlaut": ({"sweep": {"größe": [1]}}, "sweep", "'größe'", "lower-case"),
    "sweep key with two dots": (
        {"sweep": {"training..steps": [1]}}, "sweep", "'training..steps'", "lower-case"),
    "sweep key that is a number": ({"sweep": {1: [1]}}, "sweep", "1", "lower-case"),
    "sweep with values that are called alike": (
        {"sweep": {"network.activation": ["relu", "ReLU"]}}, "sweep", "'activation-relu'",
        "distinct names"),
    "sweep with a name that no folder can have": (
        {"sweep": {"network.hidden": [[4] * 150]}}, "sweep", None,
        "at most 200 characters, not 306"),
    "empty sweep": ({"sweep": None}, "sweep", "", "is empty; write keys and values"),
    "number for a list": ({"init_scales": 0.1}, "init_scales", "0.1", r"brackets: \[0.1\]$"),
    "text for a list": ({"network.hidden": "16"}, "network.hidden", "'16'", r": \['16'\]$"),
    "name for a list": ({"record.observables": "gram"}, "record.observables", "'gram'", "a list; "),
    "list inside a list": ({"network.hidden": [[16]]}, "network.hidden.0", "[16]", "whole number"),
    "nothing for a section": ({"training": None}, "training", "None", "a mapping of keys"),
    "nothing for a number": ({"seeds": None}, "seeds", "None", "a whole number"),
    "dataset without a name": ({"dataset": {}}, "dataset", "", "a mapping with 'name'"),
    "misspelt dataset": (
        {"dataset.name": "hierachy"}, "dataset", "",
        "unknown name 'hierachy'; did you mean hierarchy"),
    "name that is a list": ({"dataset.name": ["modes"]}, "dataset", None, "did you mean modes"),
    "number beyond all": ({"seeds": 10**400}, "seeds", None, "inf GB of memory.*use less"),
    "seed beyond all": (
        {"first_seed": 10**30}, "first_seed", "1000000000000000000000000000000",
        "less than 4611686018427387904"),
    "unknown precision": (
        {"precision": "float16"}, "precision", "'float16'", "'float32' or 'float64'"),
    "rows of unequal length": (
        {"dataset": {"name": "table", "x": [[1, 2], [3]], "y": [[1], [2]]}}, "dataset.x", "[3.0]",
        "row 1 has length 1, and row 0 has 2; use rows of equal length"),
    "rows without their targets": (
        {"dataset": {"name": "table", "x": [[1.0]], "y": [[1.0], [2.0]]}}, "dataset.y",
        "", "has 2 entries, and x has 1 row; use one of each for every sample"),
    "records further apart than the steps": (
        {"record.every": 100}, "training.steps", "40", r"multiple of record.every \(100\)"),
}  # fmt: skip
"""Changes of the experiment; then key, value and words of the error.

The value is None where it is too long to repeat here.
"""


@pytest.mark.parametrize("case", REFUSED)
def test_a_mistake_is_refused_with_file_key_value_and_remedy(case):
    changes, key, value, words = REFUSED[case]
    error = refusal(changes)
    assert error.file == BASE
    assert error.key == f"{WHERE}.{key}"
    assert value in (None, error.value)
    assert re.search(words, str(error), re.MULTILINE), error
    assert not re.search("Input should|valid (integer|number|string|boolean)", str(error))


@pytest.mark.parametrize(
    "network",
    [EXPERIMENT["network"], RELU | {"activation": "sigmoid"}, RELU | {"bias": True}, GATED, CHAIN],
    ids=["linear", "sigmoid", "biases", "gated", "graph"],
)  # fmt: skip
def test_candidates_are_for_relu_networks_without_biases(network):
    error = refusal({"network": network, "candidates": {"one": GATED}})
    assert (error.key, error.remedy) == (f"{WHERE}.candidates", "leave them out")


@pytest.mark.parametrize(
    ("batch", "changes"),
    [("mini", {"network": GATED}), ("fresh", {"network": CHAIN}), ("mini", ROUTING)],
)
def test_networks_with_gates_train_on_all_samples(batch, changes):
    name = changes["network"]["name"]
    message = str(refusal({**changes, "training.batch": {"name": batch, "size": 2}}))
    assert f"training.batch.name: '{batch}'" in message
    assert f"a {name} network is trained on all samples; use full" in message


@pytest.mark.parametrize(
    ("observable", "network", "remedy"),
    [
        ("pair_error", EXPERIMENT["network"], "use routing"),
        ("similarity", CHAIN, "use layered or use gated or use routing"),
        ("pathway_values", EXPERIMENT["network"], "use gated or use graph"),
        ("weights", GATED, "use layered"),
        ("gram", GATED, "use layered"),
        ("mode_strength", CHAIN, "use layered or use routing"),
        ("weights", ROUTING["network"], "use layered"),
        ("outputs", ROUTING["network"], "use layered or use gated or use graph"),
    ],
)
def test_observables_of_other_networks_are_refused_with_their_networks(observable, network, remedy):
    dataset = {"name": "routing", "count": 2}
    error = refusal({"dataset": dataset, "network": network, "record.observables": [observable]})
    assert (error.key, error.value) == (f"{WHERE}.record.observables", repr(observable))
    assert error.problem.endswith(f"network.name: '{network['name']}': {remedy}")


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"paralel": True}, "paralel: True: unknown key"),
        ({"experiments": None}, "experiments: is empty; write keys"),
        ({"experiments": {"paper": None}}, "experiments.paper: is empty; write keys"),
        ({"experiments": {"Paper": {}}}, "experiments: 'Paper': expected keys of lower-case"),
        ({"experiments": {"paper": {"a/b": {}}}}, "experiments.paper: 'a/b': expected keys"),
        ({"experiments": {"paper": {"a.b": {}}}}, "experiments.paper: 'a.b': expected keys"),
        ({"experiments": {"my paper": {}}}, "experiments: 'my paper': expected keys"),
        ({"experiments": {"größe": {}}}, "experiments: 'größe': expected keys"),
        ({"experiments": {1: {}}}, "experiments: 1: expected keys"),
        ({"experiments": {"": {}}}, "experiments: '': expected keys"),
        ({"experiments": [1]}, r"experiments: \[1\]: expected a mapping"),
        ({"experiments": {"paper": {"a": "b"}}}, "experiments.paper.a: 'b': expected a mapping"),
        ({"only": "paper"}, "only: 'paper': expected a list"),
        ({"results": 3}, "results: 3: expected a text"),
        ({"results": ""}, "results: '': name a folder, without "),
        ({"checkpoint_seconds": -1}, "checkpoint_seconds: -1: .*at least 0"),
        ({"checkpoint_seconds": math.nan}, "checkpoint_seconds: nan: .*finite"),
        ({"gpus": "maybe"}, "gpus: 'maybe': .*whole number"),
        ({"gpus": -1}, "gpus: -1: .*at least 0"),
        ({"memory_mb": "8 GB"}, "memory_mb: '8 GB': .*whole number"),
        ({"memory_mb": -5}, "memory_mb: -5: .*greater than 0"),
    ],
    ids=str,
)
def test_a_mistake_in_settings_is_refused_with_file_key_and_value(settings, named):
    assert re.search(f"^{BASE}: {named}", str(refusal({}, **settings)))


@pytest.mark.parametrize(
    "changes",
    [
        {"init_scales": [math.nan]},
        {"dataset": {"name": "table", "x": [[math.inf]], "y": [[1.0]]}},
        {"network.hidden": "16"},
    ],
)
def test_one_mistake_is_one_line(changes):
    assert len(str(refusal(changes)).splitlines()) == 1


def test_a_message_lists_all_mistakes():
    message = str(refusal({"seeds": 0, "training.steps": 0, "colour": 1}))
    assert [line.split(": ")[1] for line in message.splitlines()] == [
        f"{WHERE}.seeds",
        f"{WHERE}.training.steps",
        f"{WHERE}.colour",
    ]


def test_a_message_names_the_file_whose_value_counted():
    base = {"experiments": {"paper": {"experiment": experiment({"seeds": 0})}}}
    override = {"experiments": {"paper": {"experiment": {"training": {"steps": -1}}}}}
    merged = copy.deepcopy(base)
    merged["experiments"]["paper"]["experiment"]["training"]["steps"] = -1
    with pytest.raises(UserError) as caught:
        read_plan(merged, {BASE: base, OVERRIDE: override})
    seeds, steps = str(caught.value).splitlines()
    assert seeds.startswith(f"{BASE}: {WHERE}.seeds: 0")
    assert steps.startswith(f"{OVERRIDE}: {WHERE}.training.steps: -1")


# Fan-out ---------------------------------------------------------------------------------------


def test_without_a_sweep_there_is_one_cell():
    assert list(plan_of({}).cells) == ["paper/experiment/main"]
    cell = cell_of({})
    assert (cell.network.hidden, cell.training.learning_rate, cell.seeds) == ((6,), 0.02, 3)


@pytest.mark.parametrize(
    ("sweep", "labels"),
    [
        ({"seeds": [1, 2]}, ["seeds-1", "seeds-2"]),
        (
            {"network.activation": ["relu", "erf"], "dataset.seed": [0, 1]},
            [f"activation-{name}_seed-{seed}" for name in ("relu", "erf") for seed in (0, 1)],
        ),
        ({"network.hidden": [[], [3], [4, 5]]}, ["hidden-none", "hidden-3", "hidden-4x5"]),
        ({"training.learning_rate": [0.001, 1e-5]}, ["learning_rate-0.001", "learning_rate-1e-05"]),
        (
            {"init": [{"name": "zero_balanced", "imbalance": 0.5}, {"name": "tied"}]},
            ["init-zero_balanced-0.5", "init-tied"],
        ),
        ({"network.bias": [True, False]}, ["bias-true", "bias-false"]),
    ],
    ids=["one", "two", "lists", "floats", "mappings", "booleans"],
)
def test_a_sweep_expands_into_labelled_cells(sweep, labels):
    original = copy.deepcopy(sweep)
    plan = plan_of({"sweep": sweep})
    assert sweep == original
    assert [cell_id.removeprefix("paper/experiment/") for cell_id in plan.cells] == labels
    assert len({cell.sha256() for cell in plan.cells.values()}) == len(labels)
    for label in labels:
        assert re.fullmatch(r"[a-z0-9._-]+", label)


def test_a_sweep_sets_its_keys():
    sweep = {"network.activation": ["relu"], "training.optimiser": [{"name": "adam", "b1": 0.5}]}
    cell = cell_of({"sweep": sweep})
    assert (cell.network.activation, cell.training.optimiser.b1) == ("relu", 0.5)
    assert cell.network.hidden == (6,)


def test_a_sweep_leaves_other_keys_unchanged():
    # a YAML alias makes both candidates one object
    config = {
        "experiments": {
            "paper": {
                "experiment": experiment(
                    {"network": RELU, "sweep": {"candidates.one.hidden": [[2]]}}
                )
                | {"candidates": dict.fromkeys(["one", "two"], GATED)}
            }
        }
    }
    before = copy.deepcopy(config)
    (cell,) = read_plan(config, {}).cells.values()
    assert {name: other.hidden for name, other in cell.candidates.items()} == {
        "one": (2,),
        "two": (4,),
    }
    assert config == before


def test_the_checksum_ignores_key_order_and_written_defaults():
    written_out = {
        "training.optimiser": {"name": "sgd"},
        "network.activation": "linear",
        "seeds": 3,
    }
    changes = ({}, written_out, dict(reversed(EXPERIMENT.items())))
    assert len({cell_of(each).sha256() for each in changes}) == 1


@given(st.permutations([2, 3, 5, 7]))
def test_swapped_values_change_the_checksum(values):
    def sha256(inputs, outputs, hidden, seeds):
        changes = {
            "dataset.inputs": inputs,
            "dataset.outputs": outputs,
            "network.hidden": [hidden],
            "seeds": seeds,
        }
        return cell_of(changes).sha256()

    assert (sha256(*values) == sha256(2, 3, 5, 7)) == (list(values) == [2, 3, 5, 7])


def test_metrics_and_solutions_do_not_change_the_ensemble():
    plain = cell_of({})
    measured = cell_of({"metrics": ["half_times"], "solutions": ["exact"]})
    assert plain.sha256() != measured.sha256()
    assert plain.only(Ensemble).sha256() == measured.only(Ensemble).sha256()
    longer = cell_of({"training.steps": 80})
    assert longer.only(Ensemble).sha256() != plain.only(Ensemble).sha256()


@pytest.mark.parametrize(
    "network",
    [RELU, GATED | {"hidden": [6], "gates": {"name": "learned"}}],
    ids=["relu", "learned gates"],
)
def test_candidates_change_the_theory_and_not_the_ensemble(network):
    plain = cell_of({"network": network})
    compared = cell_of({"network": network, "candidates": {"one": GATED}})
    assert {name: candidate.hidden for name, candidate in compared.candidates.items()} == {
        "one": (4,)
    }
    assert plain.only(Ensemble).sha256() == compared.only(Ensemble).sha256()
    assert plain.only(SolvedEnsemble).sha256() != compared.only(SolvedEnsemble).sha256()


# Sizes -----------------------------------------------------------------------------------------

BILLION = 10**9
IMAGES = {
    "dataset": {
        "name": "transformed_images",
        "count": BILLION,
        "images": {"name": "digits", "samples": 20},
    },
    "training.batch": {"name": "mini", "size": 10},
}
SAMPLES = {"name": "gaussian_mixture", "samples_per_component": 10**5}

TOO_LARGE = {
    "seeds": ({"seeds": BILLION}, "seeds", BILLION),
    "hidden units": ({"network.hidden": [BILLION]}, "network.hidden.0", BILLION),
    "swept hidden units": (
        {"sweep": {"network.hidden": [[3], [BILLION]]}}, "sweep.network.hidden.0", BILLION),
    "nodes": ({"network": CHAIN | {"nodes": NODES | {"h": BILLION}}}, "network.nodes.h", BILLION),
    "inputs": ({"dataset.inputs": BILLION}, "dataset.inputs", BILLION),
    "samples": (
        {"dataset": {"name": "nonlinear_gaussian", "samples": BILLION}}, "dataset.samples",
        BILLION),
    "contexts": (
        {"dataset": {"name": "contextual", "contexts": BILLION}}, "dataset.contexts", BILLION),
    "objects": (
        {"dataset": {"name": "contextual", "contexts": 2, "objects": 2**30}}, "dataset.objects",
        2**30),
    "items": (
        {"dataset": {"name": "structural_form", "form": "tree", "items": 2**30}}, "dataset.items",
        2**30),
    "samples of a step": (
        {"training.batch": {"name": "mini", "size": BILLION}}, "training.batch.size", BILLION),
    "pathways": (
        {"network": GATED | {"gates": {"name": "half_space", "pathways": BILLION}}},
        "network.gates.pathways", BILLION),
    "choices of contexts": (
        {
            "dataset": {"name": "contextual", "contexts": 40, "objects": 2},
            "network": GATED | {"gates": {"name": "contexts", "open_in": [20]}},
        },
        "dataset.contexts", 40),
    "domains": (
        ROUTING | {"dataset": {"name": "routing", "count": BILLION}}, "dataset.count", BILLION),
    "domains of images": (ROUTING | IMAGES, "dataset.count", BILLION),
    "records": ({"training.steps": 10**12, "record.every": 1}, "record.every", 1),
}  # fmt: skip
"""Changes; then the key of the largest size, and its value."""


@pytest.fixture
def nothing_large():
    """Fails if more than 300 MB were allocated at any time."""
    tracemalloc.start()
    yield
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 300e6


@pytest.mark.usefixtures("nothing_large")
@pytest.mark.parametrize("name", TOO_LARGE)
def test_a_cell_that_cannot_fit_is_refused_before_memory_is_allocated(name):
    changes, key, value = TOO_LARGE[name]
    error = refusal(changes, memory_mb=100_000)
    assert (error.file, error.key, error.value) == (BASE, f"{WHERE}.{key}", str(value))
    assert re.fullmatch("needs .* GB of memory, and the machine has 100 GB", error.problem)
    assert re.fullmatch(
        "(use less|record less often), or say by memory_mb what machines have", error.remedy
    )


GROUPS = ROUTING["network"] | {"gates": {"name": "groups", "size": 3}}


@pytest.mark.usefixtures("nothing_large")
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"dataset": {"name": "nonlinear_gaussian", "inputs": BILLION}},
            f"dataset.inputs: {BILLION}",
        ),
        (
            {"sweep": {"training.learning_rate": [0.1 * n for n in range(1, 101)],
                       "seeds": list(range(1, 101)), "first_seed": list(range(100))}},
            "sweep: '1000000 cells'",
        ),
        (
            {"sweep": {"training.learning_rate": [1e-9 * n for n in range(1, 10**6)]}},
            "sweep: '999999 cells'",
        ),
        (
            {"network.hidden": [1] * 10**4, "sweep": {"first_seed": list(range(10**5))}},
            "sweep: '100000 cells of [0-9]* characters': expected at most 100000000 characters",
        ),
        ({"training.steps": 10**30}, "training.steps: 10000"),
        (
            {"training.steps": 2**31, "record.every": 2**20, "precision": "float32"},
            "training.steps: 2147483648: float32 counts up to",
        ),
        (
            ROUTING | {"network": GROUPS, "dataset": {"name": "routing", "count": BILLION}},
            f"network.gates.size: 3: {BILLION} domains do not",
        ),
    ],
    ids=["inputs", "axes", "cells", "characters", "steps", "float32", "groups"],
)  # fmt: skip
def test_other_limits_are_checked_before_memory_is_allocated(changes, words):
    assert re.match(rf"{BASE}: {WHERE}(\.|: ){words}", str(refusal(changes)))


@pytest.mark.parametrize("count", [10**4])
def test_many_swept_keys_are_compared_in_no_time(count):
    """A comparison of every pair of keys would take hours."""
    keys = {f"dataset.k{n}": [1] for n in range(count)}
    assert refusal({"sweep": keys}).value.startswith("'k0-1_k1-1")
    inside = refusal({"sweep": keys | {"dataset": [{"name": "modes"}]}})
    assert inside.problem == "expected no key inside dataset"


def test_a_message_lists_at_most_twenty_mistakes():
    lines = str(refusal({"init_scales": ["x"] * 10**4})).splitlines()
    assert len(lines) == 21
    assert lines[-1] == "and 9980 more mistakes"


def test_the_memory_limit_is_that_of_the_machine_unless_it_is_configured(monkeypatch):
    monkeypatch.setattr(load, "total_memory", lambda: 10**7)
    many = {"seeds": 2000, "network.hidden": [100]}
    assert refusal(many).key == f"{WHERE}.seeds"
    assert plan_of(many, memory_mb=1000).cells


@pytest.mark.parametrize(
    "changes",
    [
        {"training.steps": 10**12, "record.every": 10**6},
        {"dataset": SAMPLES, "network": GATED},
        {"first_seed": 10**15},
    ],
    ids=["steps", "a pathway for each of many samples", "number of a seed"],
)
@pytest.mark.usefixtures("nothing_large")
def test_a_long_training_that_fits_is_accepted(changes):
    assert plan_of(changes).cells


# A part of a configuration ----------------------------------------------------------------------

SWEPT_CELLS = ["paper/experiment/seeds-1", "paper/experiment/seeds-2"]


def only(*names):
    """The plan of these names. Of three papers, `other` has an invalid experiment."""
    papers = {
        "paper": {"experiment": experiment({"seeds": GONE}) | {"sweep": {"seeds": [1, 2]}}},
        "paper_2": {"experiment": experiment({})},
        "other": {"experiment": {}},
    }
    config = {"experiments": papers, "only": list(names)}
    return read_plan(config, {BASE: config})


@pytest.mark.parametrize(
    ("names", "cells"),
    [
        (["paper"], SWEPT_CELLS),
        (["paper/experiment"], SWEPT_CELLS),
        (SWEPT_CELLS[1:], SWEPT_CELLS[1:]),
        (["paper_2", "paper"], [*SWEPT_CELLS, "paper_2/experiment/main"]),
    ],
)
def test_only_selected_cells_are_planned(names, cells):
    assert list(only(*names).cells) == cells


@pytest.mark.parametrize("name", ["paper/experiment/seeds-3", "pap", "paper/", "experiment", ""])
def test_an_unknown_name_cannot_be_selected(name):
    with pytest.raises(UserError, match="no such paper, experiment or cell") as caught:
        only("paper", name)
    assert (caught.value.file, caught.value.key, caught.value.value) == (BASE, "only", repr(name))


@pytest.mark.parametrize(
    "changes", [{}, {"network.hidden": [6, 6]}, {"network": RELU}, {"dataset": {"name": "xor"}}]
)
def test_applicable_stands_for_all_theory_that_show_says_holds(changes):
    cell = plan_of(changes | {"solutions": "applicable"}).cells["paper/experiment/main"]
    assert list(cell.solutions) == about_cell(cell, False)["theories_that_apply"]


def test_applicable_differs_between_cells_of_a_sweep():
    cells = plan_of(
        {"solutions": "applicable", "sweep": {"network.hidden": [[6], [6, 6]]}}
    ).cells.values()
    one, two = (set(cell.solutions) for cell in cells)
    assert "exact" in one - two
    assert two


def test_applicable_may_be_a_value_of_a_sweep():
    cells = plan_of({"sweep": {"solutions": ["applicable", ["exact"]]}}).cells
    assert {label.rpartition("/")[2] for label in cells} == {
        "solutions-applicable",
        "solutions-exact",
    }
    every, one = (cell.solutions for cell in cells.values())
    assert one == ("exact",) != every
    assert "exact" in every


@pytest.mark.parametrize("value", ["all", "Applicable", ["applicable"]])
def test_only_the_word_applicable_stands_for_all_solutions(value):
    with pytest.raises(UserError, match=f"{WHERE}.solutions"):
        plan_of({"solutions": value})


def test_mistakes_beside_applicable_are_named():
    with pytest.raises(UserError, match=f"{WHERE}.network.hidden.0: 0"):
        plan_of({"solutions": "applicable", "network.hidden": [0]})
