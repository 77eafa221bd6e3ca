"""Every dataset, law, activation, loss, optimiser, gating scheme and choice of pairs trains."""

import json

import pytest

from neuralrace.config.cell import INITIALISERS
from neuralrace.datasets.xor import Xor
from neuralrace.errors import UserError
from neuralrace.networks.gated import SAMPLE_SCHEMES
from neuralrace.networks.modules.activations import ACTIVATIONS
from neuralrace.networks.routing import DOMAIN_SCHEMES, PAIRS
from neuralrace.testing.cells import LOADED, cell_of, example_of, name_of, recording
from neuralrace.testing.training import check_training
from neuralrace.training.loss import LOSSES
from neuralrace.training.settings import OPTIMISERS

SMALL_STEPS = {"learning_rate": 1e-3, "steps": 20}


def training(loss="squared_error"):
    return SMALL_STEPS | {"loss": {"name": loss, "normalisation": "mean"}}


def layered_cells():
    """As few cells as cover all entries: one for each row of the longest registry."""
    registries = (sorted(LOADED), sorted(map(name_of, INITIALISERS)), sorted(ACTIVATIONS))
    for row in range(max(map(len, registries))):
        yield *(names[row % len(names)] for names in registries), "squared_error"
    for loss in sorted(set(LOSSES) - {"squared_error"}):
        yield "digits", "normal", "relu", loss


@pytest.mark.parametrize("cell", list(layered_cells()), ids="-".join)
def test_entries_train_write_and_read_back(cell, tmp_path):
    dataset, law, activation, loss = cell
    example = example_of(LOADED[dataset])
    sizes = LOADED[dataset].model_validate_json(json.dumps(example)).load()
    hidden = min(sizes.x.shape[1], sizes.y.shape[1]) + 1
    spec = {
        "dataset": example,
        "network": {"name": "layered", "hidden": [hidden], "activation": activation},
        "init": example_of({name_of(cls): cls for cls in INITIALISERS}[law]),
        "training": training(loss),
    }
    check_training(cell_of(spec), tmp_path)


@pytest.mark.parametrize("cls", OPTIMISERS, ids=name_of)
def test_optimisers_train_write_and_read_back(cls, tmp_path):
    spec = {
        "dataset": {"name": "xor"},
        "network": {"name": "layered", "hidden": [3]},
        "training": training() | {"optimiser": example_of(cls)},
    }
    check_training(cell_of(spec), tmp_path)


def fits_xor(cls):
    """Whether gates are for any samples; others are shown a dataset with contexts."""
    scheme = cls.model_validate_json(json.dumps(example_of(cls)))
    try:
        return scheme.learned or scheme.gates(Xor(name="xor").load()) is not None
    except UserError:
        return False


def gated_cells():
    """One cell for each gating scheme, one for each kind of pairs, a graph, and images."""
    for cls in SAMPLE_SCHEMES:
        dataset = "xor" if fits_xor(cls) else "contextual"
        network = {"name": "gated", "hidden": [3], "gates": example_of(cls)}
        yield f"gated-{name_of(cls)}", dataset, network, ()
    graph = {
        "name": "graph",
        "nodes": {"x": 2, "h": 3, "y": 1},
        "edges": [["x", "h"], ["h", "y"], ["x", "y"]],
        "gates": {"h": [1, 0, 0.5, 1], "x->y": [1, 1, 0, 0]},
    }
    yield "graph", "xor", graph, ("layer_norm", "singular_values", "weight_cosine")
    for row in range(max(len(DOMAIN_SCHEMES), len(PAIRS))):
        gates, pairs = (names[row % len(names)] for names in (DOMAIN_SCHEMES, PAIRS))
        network = {
            "name": "routing",
            "hidden": [3],
            "gates": example_of(gates),
            "pairs": example_of(pairs),
        }
        # undefined without untrained pairs
        seen = ("pair_error", "pathway_power")
        yield f"routing-{name_of(gates)}-{name_of(pairs)}", "routing", network, seen


GATED = list(gated_cells())


@pytest.mark.parametrize("case", GATED, ids=[case[0] for case in GATED])
def test_gated_networks_train_write_and_read_back(case, tmp_path):
    _, dataset, network, observables = case
    spec = {"dataset": example_of(LOADED[dataset]), "network": network, "training": training()}
    check_training(cell_of(recording(spec, observables)), tmp_path)
