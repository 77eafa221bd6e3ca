"""Initial weights from a file: the weights that it holds, its content in the specification."""

import json

import numpy as np
import pytest
import yaml
from pydantic import ValidationError

from builders import LINEAR, build_cell, build_ensemble, solved_theory, trained_trajectory
from neuralrace.config.load import read_plan
from neuralrace.errors import UserError
from neuralrace.networks.initialisers.file import FromFile
from neuralrace.results.files import write_result
from neuralrace.workflow.stages import fingerprints, stale_files

RNG = np.random.default_rng(3)
WEIGHTS = {"weight_1": RNG.normal(size=(2, 3)), "weight_2": RNG.normal(size=(2, 2))}
BY_SEED = {name: RNG.normal(size=(3, *w.shape)) for name, w in WEIGHTS.items()}
GRAPH = {
    "name": "graph",
    "nodes": {"a": 1, "b": 2, "h": 4, "y": 2},
    "edges": [["a", "h"], ["b", "h"], ["h", "y"], ["b", "y"]],
}
EXAMPLE = """
experiments:
  mine:
    again:
      dataset: {name: modes, singular_values: [2.0, 1.0], inputs: 3, outputs: 2}
      network: {name: layered, hidden: [2]}
      init: {name: file, path: trajectory.nc, recorded_scale: 0.3}
      init_scales: [1]
      seeds: 2
      training: {learning_rate: 0.02, steps: 40}
      record: {every: 10}
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def npz(path="my.npz", **arrays):
    np.savez(path, **arrays)
    return {"name": "file", "path": path}


def start(init, **changes):
    """Initial weights of all runs of a cell, as training has them."""
    return build_ensemble(**{"init": init, "init_scales": [1.0, 0.1]} | changes).task().weights


def recorded(path="trajectory.nc", **changes):
    """A trajectory file with weights of a trained network, and its dataset."""
    record = {"every": 10, "snapshots": 2, "observables": ["weights"]}
    trajectory = trained_trajectory(build_cell(**{"record": record} | changes))
    write_result(trajectory, path)
    return trajectory


def test_all_seeds_start_from_the_same_matrices_times_the_init_scale():
    weights = start(npz(**WEIGHTS))((1.0, 0.1), (0, 5))
    for drawn, w in zip(weights, WEIGHTS.values(), strict=True):
        for run in range(2):
            np.testing.assert_array_equal(drawn[0, run], w)
            np.testing.assert_array_equal(drawn[1, run], 0.1 * w)


@pytest.mark.parametrize("labels", [{}, {"seed": np.array([7, 2, 4])}])
def test_matrices_by_seed_belong_to_the_seeds_of_the_file(labels):
    seeds = [2, 1] if not labels else [4, 2]
    weights = start(npz(**BY_SEED, **labels))((1.0,), seeds)
    for drawn, w in zip(weights, BY_SEED.values(), strict=True):
        np.testing.assert_array_equal(drawn[0], w[[2, 1]])


def test_edges_of_a_graph_have_the_names_of_the_edges():
    edges = {"a->h": (4, 1), "b->h": (4, 2), "h->y": (2, 4), "b->y": (2, 2)}
    arrays = {name: RNG.normal(size=shape) for name, shape in edges.items()}
    drawn = start(npz(**arrays), network=GRAPH)((1.0,), (0,))
    for w, array in zip(drawn, arrays.values(), strict=True):
        np.testing.assert_array_equal(w[0, 0], array)


def test_a_run_goes_on_where_the_recorded_run_ended():
    former = recorded(init_scales=[0.1, 0.3], seeds=3)
    (cell,) = read_plan(yaml.safe_load(EXAMPLE), {}).cells.values()
    drawn = cell.task().weights((1.0,), cell.seed_numbers)
    for number, w in enumerate(drawn, start=1):
        last = former[f"weight_{number}"].isel(snapshot=-1).sel(init_scale=0.3, seed=[0, 1])
        np.testing.assert_array_equal(w[0], last)
    # losses are another route: they know nothing of files
    loss = former["loss"].isel(time=-1).sel(init_scale=0.3, seed=[0, 1])
    for later in (
        trained_trajectory(cell)["loss"],
        solved_theory(build_cell(json.loads(cell.canonical()), solutions=["flow"]))["loss"],
    ):
        np.testing.assert_allclose(later.isel(time=0, init_scale=0).squeeze(), loss, rtol=1e-12)


def test_another_content_of_the_file_is_another_specification_and_makes_results_stale(tmp_path):
    cells = []
    for arrays in (WEIGHTS, WEIGHTS, {**WEIGHTS, "weight_2": 2 * WEIGHTS["weight_2"]}):
        cells.append(build_cell(init=npz(**arrays)))
    one, again, other = cells
    assert one.sha256() == again.sha256() != other.sha256()
    name = "paper/experiment/main"
    folder = tmp_path / "results" / name
    folder.mkdir(parents=True)
    planned = fingerprints(name, other)["trajectory"]
    write_result(trained_trajectory(other), folder / "trajectory.nc", planned)
    assert stale_files(tmp_path / "results", {name: other}) == {name: ["metrics"]}
    assert stale_files(tmp_path / "results", {name: one}) == {name: ["trajectory", "metrics"]}
    # a file that changes after planning is refused
    with pytest.raises(UserError, match=r"my.npz: has the checksum .* former file back"):
        one.task().weights((1.0,), (0,))


def test_specification_with_a_checksum_is_read_without_the_file():
    text = build_cell(init=npz(**WEIGHTS)).init.canonical()
    assert FromFile.model_validate_json(text.replace("my.npz", "gone.npz")).checksum in text


def of_scales(**arrays):
    shape = (2, 3, 1)
    recorded = {name: np.tile(w, (*shape, 1, 1)) for name, w in WEIGHTS.items()}
    return npz(**recorded | {"init_scale": np.array([0.5, 2.0])} | arrays)


@pytest.mark.parametrize(
    ("init", "words"),
    [
        (
            lambda: npz(weight_1=WEIGHTS["weight_1"]),
            "my.npz: weight_2: is missing; the file has weight_1; add ... (2, 2), (out, in)",
        ),
        (
            lambda: npz(**WEIGHTS | {"weight_1": np.ones((3, 2))}),
            "my.npz: weight_1: has the shape (3, 2), and the network needs (2, 3), (out, in); use",
        ),
        (lambda: npz(**WEIGHTS | {"weight_2": np.ones(4)}), "weight_2: has the shape (4,)"),
        (
            lambda: npz(**WEIGHTS | {"weight_2": np.ones((0, 2, 2))}),
            "weight_2: has the shape (0, 2, 2)",
        ),
        (lambda: npz(**WEIGHTS, weight_3=np.eye(2)), "weight_3: the network has no such"),
        (lambda: npz(**WEIGHTS, bias_1=np.ones(2)), "bias_1: the network has no such"),
        (
            lambda: npz(**WEIGHTS | {"weight_2": np.full((2, 2), np.nan)}),
            "weight_2: ... not finite for seed 0; use runs that did not diverge",
        ),
        (lambda: npz(**WEIGHTS | {"weight_2": np.eye(2) * 1j}), "weight_2: holds complex128"),
        (
            lambda: npz(**WEIGHTS | {"weight_2": np.array([[None, 1], [1, 1]])}),
            "weight_2: holds Python objects",
        ),
        (
            lambda: npz(**BY_SEED, seed=np.array([3, 4, 5])),
            "first.seeds: 0: my.npz has weights of seed 3, 4, 5; use one of them",
        ),
        (lambda: npz(**BY_SEED, seed=np.array([3, 4])), "seed: has the shape (2,) ... 3 entries"),
        (of_scales, "init.recorded_scale: None: ... init_scale 0.5, 2.0; use one of them"),
        (lambda: of_scales() | {"recorded_scale": 1.0}, "init.recorded_scale: 1.0: ... 0.5, 2.0"),
        (
            lambda: npz(**WEIGHTS) | {"recorded_scale": 1.0},
            "init.recorded_scale: 1.0: my.npz has weights without init scales; leave it out",
        ),
    ],
)
def test_file_that_does_not_fit_is_refused_when_it_is_planned(init, words):
    config = {"experiments": {"mine": {"first": {**LINEAR, "init": init()}}}}
    with pytest.raises(UserError) as error:
        read_plan(config, {"mine.yaml": config})
    rest = str(error.value)
    for part in words.split(" ... "):
        assert part in rest
        rest = rest.partition(part)[2]


@pytest.mark.parametrize(
    ("path", "problem"), [("gone.npz", "cannot be read"), ("my.csv", "ends in .npz or .nc")]
)
def test_path_without_a_readable_file_is_refused(path, problem):
    with pytest.raises(ValidationError, match=problem):
        build_cell(init={"name": "file", "path": path})


def test_weights_of_the_wrong_shape_are_refused_for_routing_networks_too():
    network = {
        "name": "routing",
        "hidden": [4, 4],
        "gates": {"name": "always_on"},
        "pairs": {"name": "all"},
    }
    arrays = {"input 1->hidden 1 of family 1, block 1, 1": np.ones((4, 3))}
    cell = build_cell(dataset={"name": "routing", "count": 2}, network=network, init=npz(**arrays))
    assert "(4, 3), and the network needs (4, 4)" in str(cell.unfit())
