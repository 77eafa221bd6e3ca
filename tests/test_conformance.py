"""What every dataset, law, activation, observable, loss, optimiser and gating scheme must do.

A new entry of a registry is covered without a line here, unless it has parameters without defaults:
those go into `PARAMETERS`, by name, or into `GATES`.
"""

import itertools
import json
import re
from typing import get_args

import numpy as np
import pytest
import xarray as xr

from neuralrace.gates.always_on import AlwaysOnDomains
from neuralrace.models.activations import ACTIVATIONS
from neuralrace.needs import NEEDS, unmet
from neuralrace.records.files import read, write
from neuralrace.records.schema import COORDINATES, variable
from neuralrace.records.trajectory import trajectory_dataset
from neuralrace.records.verify import verify
from neuralrace.registry import OBSERVABLES
from neuralrace.spec import (
    DATASETS,
    DOMAIN_SCHEMES,
    LAWS,
    OPTIMISERS,
    PAIRS,
    SAMPLE_SCHEMES,
    Activation,
    Loss,
    Run,
)
from neuralrace.training.ensemble import train
from neuralrace.training.losses import LOSSES

PARAMETERS = {
    "contextual": {"contexts": 2, "objects": 4},
    "digits": {"samples": 20},
    "gaussian_mixture": {"samples_per_component": 10, "inputs": 4},
    "momentum": {"momentum": 0.9},
    "modes": {"singular_values": [2.0, -1.0], "inputs": 4, "outputs": 3},
    "routing": {"count": 4},
    "structural_form": {"form": "tree"},
    "transformed_images": {"count": 2, "images": {"name": "digits", "samples": 20}},
    "table": {"x": [[1.0, 0.0], [0.0, 2.0]], "y": [[3.0], [1.0]]},
}
GATES = {
    "band": {"partners": 2},
    "bumps": {"pathways": 6, "width": 0.0},
    "contexts": {"open_in": [1], "shown": "everything"},
    "groups": {"size": 2},
    "half_space": {"pathways": 4},
    "listed": {"rows": [[1.0, 0.0], [0.0, 1.0]]},
    "parallel": {"dedicated": 2},
    "random_regular": {"partners": 3},
    "tiling": {"pathways": 2, "directions": "random"},
}
"""Parameters of gating schemes and of pairs."""
NEEDS_FILES = {"cifar10", "mnist"}  # covered in tests/datasets by small files of its format


def name_of(cls):
    (name,) = get_args(cls.model_fields["name"].annotation)
    return name


DATASET_BY_NAME = {name_of(cls): cls for cls in DATASETS}
LAW_BY_NAME = {name_of(cls): cls for cls in LAWS}
SHIPPED = sorted(set(DATASET_BY_NAME) - NEEDS_FILES)


def written(name):
    """A dataset as in `config/`."""
    return {"name": name} | PARAMETERS.get(name, {})


def dataset_of(name):
    return DATASET_BY_NAME[name].model_validate_json(json.dumps(written(name)))


# Registries ------------------------------------------------------------------------------------


def test_registries_agree_with_what_can_be_configured():
    assert set(ACTIVATIONS) == set(get_args(Activation))
    assert set(LOSSES) == set(get_args(Loss.model_fields["name"].annotation))
    for choices in (DATASETS, DOMAIN_SCHEMES, LAWS, OPTIMISERS, PAIRS, SAMPLE_SCHEMES):
        assert list(map(name_of, choices)) == sorted(set(map(name_of, choices)))


@pytest.mark.parametrize(
    "cls",
    [*DATASETS, *LAWS, *DOMAIN_SCHEMES, *OPTIMISERS, *PAIRS, *SAMPLE_SCHEMES],
    ids=lambda cls: cls.__name__,
)
def test_entries_and_their_parameters_are_documented(cls):
    assert cls.__doc__
    assert cls.__doc__ != cls.__mro__[1].__doc__  # its own, not one that it inherits
    for name, field in cls.model_fields.items():
        assert field.description or name == "name", f"{cls.__name__}.{name}"


@pytest.mark.parametrize("name", OBSERVABLES)
def test_observables_are_documented_and_can_be_written(name):
    entry = OBSERVABLES[name]
    assert entry.text
    assert {each for either in entry.declaration.needs.split() for each in either.split("|")} <= {
        *NEEDS
    }
    for given, meaning in entry.declaration.variables.items():
        clock, *dims = meaning.dims
        assert clock == ("snapshot" if entry.declaration.snapshots else "time")
        assert {dim for dim in dims if not dim.startswith("unit_{")} <= set(COORDINATES)
        assert meaning.long_name
        assert variable("trajectory", given.format(layer=3)) is not None


@pytest.mark.parametrize("name", SHIPPED)
def test_dataset(name):
    dataset = dataset_of(name)
    data, again = dataset.load(), dataset.load()
    samples, inputs = data.x.shape
    outputs = data.y.shape[1]
    assert data.y.shape == (samples, outputs)
    assert data.x.dtype == data.y.dtype == np.float64
    assert np.isfinite(data.x).all()
    assert np.isfinite(data.y).all()
    np.testing.assert_array_equal(data.x, again.x)
    np.testing.assert_array_equal(data.y, again.y)
    assert len(data.item_names) in (0, samples)
    assert len(data.output_names) in (0, outputs)
    assert data.sigma_yx.shape == (outputs, inputs)
    modes = data.modes
    assert modes.s.shape == modes.d.shape == (min(inputs, outputs),)
    np.testing.assert_allclose((modes.u * modes.s) @ modes.v.T, data.sigma_yx, atol=1e-10)
    assert (np.diff(np.abs(modes.s)) <= 1e-12).all()
    np.testing.assert_allclose(
        modes.d, np.einsum("ik,ij,jk->k", modes.v, data.sigma_xx, modes.v), atol=1e-10
    )


# Training --------------------------------------------------------------------------------------


def run_of(dataset, network, law="normal", loss="squared_error", observables=(), **training):
    """A small cell of 20 steps."""
    spec = {
        "dataset": dataset,
        "network": network,
        "init": {"name": law},
        "init_scales": [0.1],
        "seeds": 2,
        "training": {
            "learning_rate": 1e-3,
            "steps": 20,
            "loss": {"name": loss, "normalisation": "mean"},
        }
        | training,
        "record": {"every": 10, "snapshots": 2, "observables": observables},
    }
    return Run.model_validate_json(json.dumps(spec))


def seen_in(dataset, network):
    """All that can be observed of a network, by name."""
    run = run_of(written(dataset), network)
    return [n for n, entry in OBSERVABLES.items() if not unmet(run, entry.declaration.needs)]


def check_run(run, tmp_path):
    """Trains, writes, verifies and reads back."""
    trajectory = train(run)
    assert (trajectory.diverged_at == -1).all()
    declared = {"loss"}.union(*(OBSERVABLES[n].declaration.gives for n in run.record.observables))
    for name, values in trajectory.variables.items():
        assert {name, re.sub(r"\d+$", "{layer}", name)} & declared
        assert variable("trajectory", name) is not None
        assert values.shape[:2] == (1, 2)
        bad = ~np.isfinite(values)
        if name == "singular_values":  # layers of smaller rank are padded
            bad &= ~np.isnan(values[:, :, :1])
        if name.startswith("untrained_") and run.network.pairs.name == "all":
            assert np.isnan(values).all()  # there is no such pair
            bad[:] = False
        assert not bad.any(), name
    loss = trajectory.variables["loss"]
    assert (loss[..., -1] < loss[..., 0]).all()
    dataset = trajectory_dataset("paper/experiment/main", run, trajectory)
    path, said = tmp_path / "trajectory.nc", []
    write(dataset, path)
    verify({str(path): run.sha256()}, said.append)
    assert len(said) == 1
    back = read(path, "trajectory")
    xr.testing.assert_identical(back.drop_attrs(), dataset.drop_attrs())


# Layered networks ------------------------------------------------------------------------------


def cells():
    """As few cells as cover all entries: one for each row of the longest registry."""
    seen = seen_in("xor", {"name": "layered", "hidden": [3]})
    registries = (SHIPPED, sorted(LAW_BY_NAME), sorted(ACTIVATIONS))
    rows = max(len(SHIPPED), len(LAW_BY_NAME), len(ACTIVATIONS))
    for row in range(rows):
        dataset, law, activation = (names[row % len(names)] for names in registries)
        yield dataset, law, activation, "squared_error", tuple(seen[row::rows])
    for loss in sorted(set(LOSSES) - {"squared_error"}):
        yield "digits", "normal", "relu", loss, ()


CELLS = list(cells())


def test_cells_cover_every_entry():
    datasets, laws, activations, losses, observables = map(set, zip(*CELLS, strict=True))
    assert datasets == set(SHIPPED)
    assert laws == set(LAW_BY_NAME)
    assert activations == set(ACTIVATIONS)
    assert losses == set(LOSSES)
    gated = itertools.chain(*(case[-1] for case in GATED))
    assert {*itertools.chain(*observables), *gated} == set(OBSERVABLES)


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: "-".join([*cell[:4], *cell[4]]))
def test_entries_train_write_and_read_back(cell, tmp_path):
    dataset, law, activation, loss, observables = cell
    data = dataset_of(dataset).load()
    hidden = min(data.x.shape[1], data.y.shape[1]) + 1
    network = {"name": "layered", "hidden": [hidden], "activation": activation}
    check_run(run_of(written(dataset), network, law, loss, observables), tmp_path)


@pytest.mark.parametrize("cls", OPTIMISERS, ids=name_of)
def test_optimisers_train_write_and_read_back(cls, tmp_path):
    network = {"name": "layered", "hidden": [3]}
    optimiser = {"name": name_of(cls)} | PARAMETERS.get(name_of(cls), {})
    check_run(run_of(written("xor"), network, optimiser=optimiser), tmp_path)


# Gated networks --------------------------------------------------------------------------------


def gate_of(cls):
    return {"name": name_of(cls)} | GATES.get(name_of(cls), {})


def gated_cells():
    """One cell for each gating scheme, one for each kind of pairs, and a graph."""
    first = itertools.cycle([0, 1])
    for cls in SAMPLE_SCHEMES:
        dataset = "contextual" if name_of(cls) in ("bumps", "contexts", "listed") else "xor"
        network = {"name": "gated", "hidden": [3], "gates": gate_of(cls)}
        seen = [name for name in seen_in(dataset, network) if name != "accuracy"]  # of one output
        yield dataset, network, seen[next(first) :: 2]
    nodes = {"x": 2, "h": 3, "y": 1}
    edges = [["x", "h"], ["h", "y"], ["x", "y"]]
    gates = {"h": [1, 0, 0.5, 1], "x->y": [1, 1, 0, 0]}
    graph = {"name": "graph", "nodes": nodes, "edges": edges, "gates": gates}
    yield "xor", graph, seen_in("xor", graph)
    rows = max(len(DOMAIN_SCHEMES), len(PAIRS))
    for row in range(rows):
        gates, pairs = (gate_of(names[row % len(names)]) for names in (DOMAIN_SCHEMES, PAIRS))
        network = {"name": "routing", "hidden": [3], "gates": gates, "pairs": pairs}
        seen = seen_in("routing", network)[row::rows]
        # what is undefined without untrained pairs is seen with each kind of pairs
        yield "routing", network, sorted({*seen, "pair_error", "pathway_power"})
    gates, pairs = gate_of(AlwaysOnDomains), {"name": "band", "partners": 1}
    images = {"name": "routing", "hidden": [3, 4], "gates": gates, "pairs": pairs}
    yield "transformed_images", images, seen_in("transformed_images", images)


GATED = list(gated_cells())


def label(case):
    _, network, observables = case
    gates = network["gates"].get("name", "gates")
    return "-".join([network["name"], gates, *observables])


@pytest.mark.parametrize("case", GATED, ids=label)
def test_gated_networks_train_write_and_read_back(case, tmp_path):
    dataset, network, observables = case
    check_run(run_of(written(dataset), network, observables=observables), tmp_path)
