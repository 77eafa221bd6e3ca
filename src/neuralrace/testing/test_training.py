"""Training with every dataset, initialiser, activation, loss, optimiser, gating scheme, pairs."""

import json

import pytest

from neuralrace.datasets.xor import Xor
from neuralrace.errors import UserError
from neuralrace.networks.gated import SAMPLE_SCHEMES
from neuralrace.networks.modules.activations import ACTIVATIONS
from neuralrace.networks.routing import DOMAIN_SCHEMES, PAIRS
from neuralrace.testing.cells import DRAWN, LOADABLE, cell_of, example_of, name_of, recording
from neuralrace.testing.training import check_training
from neuralrace.training.loss import LOSSES
from neuralrace.training.settings import OPTIMISERS

XOR = {"name": "xor"}


def training(loss="squared_error", **changes):
    loss = {"name": loss, "normalisation": "mean"}
    return {"learning_rate": 1e-3, "steps": 20, "loss": loss} | changes


def layered_runs():
    """As few runs as possible: one for each entry of the longest registry, one for each loss."""
    registries = (sorted(LOADABLE), sorted(DRAWN), sorted(ACTIVATIONS))
    rows = [
        (*(names[row % len(names)] for names in registries), "squared_error")
        for row in range(max(map(len, registries)))
    ]
    rows += [("digits", "normal", "relu", loss) for loss in LOSSES if loss != "squared_error"]
    for row in rows:
        dataset, initialiser, activation, loss = row
        example = example_of(LOADABLE[dataset])
        data = LOADABLE[dataset].model_validate_json(json.dumps(example)).load()
        hidden = min(data.x.shape[1], data.y.shape[1]) + 1
        spec = {
            "dataset": example,
            "network": {"name": "layered", "hidden": [hidden], "activation": activation},
            "init": example_of(DRAWN[initialiser]),
            "training": training(loss),
        }
        yield "-".join(row), spec


def optimiser_runs():
    for cls in OPTIMISERS:
        network = {"name": "layered", "hidden": [3]}
        spec = {"dataset": XOR, "network": network, "training": training(optimiser=example_of(cls))}
        yield name_of(cls), spec


def accepts_xor(cls):
    """Whether a gating scheme accepts any samples; other schemes require contexts."""
    scheme = cls.model_validate_json(json.dumps(example_of(cls)))
    try:
        return scheme.learned or scheme.gates(Xor(name="xor").load()) is not None
    except UserError:
        return False


def gated_runs():
    """One run for each gating scheme, a graph, and one run for each choice of pairs."""
    for cls in SAMPLE_SCHEMES:
        dataset = XOR if accepts_xor(cls) else example_of(LOADABLE["contextual"])
        network = {"name": "gated", "hidden": [3], "gates": example_of(cls)}
        yield f"gated-{name_of(cls)}", {"dataset": dataset, "network": network}
    graph = {
        "name": "graph",
        "nodes": {"x": 2, "h": 3, "y": 1},
        "edges": [["x", "h"], ["h", "y"], ["x", "y"]],
        "gates": {"h": [1, 0, 0.5, 1], "x->y": [1, 1, 0, 0]},
    }
    spec = {"dataset": XOR, "network": graph}
    yield "graph", recording(spec, ("layer_norm", "singular_values", "weight_cosine"))
    for row in range(max(len(DOMAIN_SCHEMES), len(PAIRS))):
        gates, pairs = (names[row % len(names)] for names in (DOMAIN_SCHEMES, PAIRS))
        choices = {"gates": example_of(gates), "pairs": example_of(pairs)}
        network = {"name": "routing", "hidden": [3], **choices}
        spec = {"dataset": example_of(LOADABLE["routing"]), "network": network}
        # other observables are undefined without untrained pairs
        spec = recording(spec, ("pair_error", "pathway_power"))
        yield f"routing-{name_of(gates)}-{name_of(pairs)}", spec


RUNS = [*layered_runs(), *optimiser_runs(), *gated_runs()]


@pytest.mark.parametrize("spec", [spec for _, spec in RUNS], ids=[name for name, _ in RUNS])
def test_network_trains_and_its_results_are_read_back(spec, tmp_path):
    check_training(cell_of({"training": training()} | spec), tmp_path)
