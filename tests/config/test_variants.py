"""Variants: fresh seeds, and one quantity doubled."""

import json

import pytest

from builders import build_cell
from neuralrace.config.variants import OFFSET, variant_of

SPEC = {
    "dataset": {"name": "gaussian_mixture", "samples_per_component": 20, "seed": 3},
    "network": {"name": "layered", "hidden": [4, 3]},
    "init": {"name": "glorot"},
    "init_scales": [1.0],
    "seeds": 3,
    "training": {"learning_rate": 0.01, "steps": 40},
    "record": {"every": 10, "snapshots": 2},
}


def cell(**changes):
    return build_cell(SPEC, **changes)


def differing(one, other, path=()):
    """Dotted keys at which two specifications differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        return {key for k in one for key in differing(one[k], other[k], (*path, k))}
    return {".".join(path)} if one != other else set()


@pytest.mark.parametrize(
    ("variant", "keys"),
    [
        ("fresh", set()),
        ("samples", {"dataset.samples_per_component"}),
        ("widths", {"network.hidden"}),
        ("steps", {"training.steps", "record.snapshots"}),
        ("step_size", {"training.learning_rate", "training.steps", "record.every"}),
    ],
)
def test_a_variant_has_fresh_seeds_and_changes_one_thing(variant, keys):
    one, other = (json.loads(c.canonical()) for c in (cell(), variant_of(cell(), variant)))
    assert differing(one, other) == keys | {"first_seed", "dataset.seed"}
    assert other["first_seed"] == OFFSET
    assert other["dataset"]["seed"] == OFFSET + 3


def test_sizes_steps_and_step_size_double():
    assert variant_of(cell(), "samples").dataset.samples_per_component == 40
    assert variant_of(cell(), "widths").network.hidden == (8, 6)
    steps = variant_of(cell(), "steps")
    assert (steps.training.steps, steps.record.every, steps.record.snapshots) == (80, 10, 4)
    size = variant_of(cell(), "step_size")
    assert (size.training.learning_rate, size.training.steps, size.record.every) == (0.02, 20, 5)


def test_averaged_pathways_of_one_unit_have_no_width():
    gates = {"name": "half_space", "pathways": 3}
    network = {"name": "gated", "hidden": [1], "gates": gates, "readout": "mean"}
    assert variant_of(cell(network=network), "widths") is None
    assert variant_of(cell(network=network), "steps") is not None
    assert variant_of(cell(network=network | {"readout": "trained"}), "widths") is not None
    relu = {"name": "layered", "hidden": [3], "activation": "relu", "readout": "mean"}
    assert variant_of(cell(network=relu), "widths") is not None
    assert variant_of(cell(network=relu, candidates={"a": network}), "widths") is None


def test_with_an_odd_interval_training_takes_twice_as_long():
    size = variant_of(
        cell(training={"learning_rate": 0.01, "steps": 40}, record={"every": 5}), "step_size"
    )
    assert (size.training.learning_rate, size.training.steps, size.record.every) == (0.02, 40, 5)


def test_tasks_of_a_sequence_begin_at_the_same_time():
    mixture = SPEC["dataset"] | {"inputs": 2, "outputs": 2}
    dataset = {"name": "sequence", "tasks": [mixture, mixture], "switches": [20]}
    assert variant_of(cell(dataset=dataset), "step_size").dataset.switches == (10,)
    size = variant_of(cell(dataset=dataset | {"switches": [21]}), "step_size")
    assert (size.training.steps, size.dataset.switches) == (40, (21,))
    fresh = variant_of(cell(dataset=dataset), "fresh")
    assert [task.seed for task in fresh.dataset.tasks] == [OFFSET + 3] * 2


def test_batches_of_fresh_samples_double_too():
    online = {"learning_rate": 0.01, "steps": 40, "batch": {"name": "fresh", "size": 7}}
    other = variant_of(cell(dataset={"name": "nonlinear_gaussian"}, training=online), "samples")
    assert (other.dataset.samples, other.training.batch.size) == (4000, 14)


def test_candidates_double_their_width_as_their_network_does():
    gated = {"name": "gated", "hidden": [5], "gates": {"name": "half_space", "pathways": 2}}
    network = {"name": "layered", "hidden": [10], "activation": "relu"}
    other = variant_of(cell(network=network, candidates={"a": gated}), "widths")
    assert (other.network.hidden, other.candidates["a"].hidden) == ((20,), (10,))


def test_a_variant_of_an_absent_quantity_is_none():
    assert variant_of(cell(dataset={"name": "hierarchy"}), "samples") is None
    assert variant_of(cell(network={"name": "layered", "hidden": []}), "widths") is None


def test_a_dataset_without_more_samples_is_not_doubled():
    assert variant_of(cell(dataset={"name": "digits"}), "samples") is None
    assert variant_of(cell(dataset={"name": "digits", "samples": 500}), "samples") is not None


def test_fresh_seeds_begin_at_the_offset():
    assert list(variant_of(cell(), "fresh").seed_numbers) == [OFFSET, OFFSET + 1, OFFSET + 2]
