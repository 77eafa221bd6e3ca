"""Variants: fresh seeds, and one setting changed by a factor."""

import json

import pytest

from builders import build_cell
from neuralrace.config.variants import (
    FRESH,
    OFFSET,
    SETTINGS,
    Variant,
    is_variant,
    variant_of,
)

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


def varied(setting, factor=2.0, **changes):
    return variant_of(cell(**changes), Variant(setting, factor))


@pytest.mark.parametrize(
    ("variant", "keys"),
    [
        (FRESH, set()),
        (Variant("samples", 2.0), {"dataset.samples_per_component"}),
        (Variant("samples", 0.5), {"dataset.samples_per_component"}),
        (Variant("widths", 2.0), {"network.hidden"}),
        (Variant("steps", 2.0), {"training.steps", "record.snapshots"}),
        (Variant("step_size", 2.0), {"training.learning_rate", "training.steps", "record.every"}),
        (Variant("step_size", 0.5), {"training.learning_rate", "training.steps", "record.every"}),
        (Variant("init_scale", 10.0), {"init_scales"}),
    ],
)
def test_a_variant_has_fresh_seeds_and_changes_one_thing(variant, keys):
    one, other = (json.loads(c.canonical()) for c in (cell(), variant_of(cell(), variant)))
    assert differing(one, other) == keys | {"first_seed", "dataset.seed"}
    assert other["first_seed"] == OFFSET
    assert other["dataset"]["seed"] == OFFSET + 3


def test_sizes_steps_and_step_size_are_multiplied():
    assert varied("samples").dataset.samples_per_component == 40
    assert varied("samples", 0.5).dataset.samples_per_component == 10
    assert varied("widths").network.hidden == (8, 6)
    assert varied("widths", 0.5).network.hidden == (2, 1)
    steps = varied("steps")
    assert (steps.training.steps, steps.record.every, steps.record.snapshots) == (80, 10, 4)
    size = varied("step_size")
    assert (size.training.learning_rate, size.training.steps, size.record.every) == (0.02, 20, 5)
    size = varied("step_size", 0.5)
    assert (size.training.learning_rate, size.training.steps, size.record.every) == (0.005, 80, 20)


@pytest.mark.parametrize(
    ("scales", "factor", "longer"),
    [
        ([0.1], 10.0, 1),
        ([0.1], 0.1, 2),
        ([0.1], 0.01, 3),
        ([1.0], 0.1, 1),
        ([1e-4], 1e-4, 2),
        ([0.01, 1e-4], 0.1, 2),
        ([100.0], 10.0, 1),
    ],
)
def test_smaller_starts_are_trained_for_longer_as_their_logarithm_asks(scales, factor, longer):
    other = varied("init_scale", factor, init_scales=scales)
    assert other.init_scales == pytest.approx([factor * scale for scale in scales], rel=1e-9)
    assert (other.training.steps, other.record.snapshots) == (40 * longer, 2 * longer)


def test_products_have_no_rounding_errors():
    assert varied("init_scale", 0.1, init_scales=[0.1, 0.3]).init_scales == (0.01, 0.03)


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("fresh", True),
        (Variant("widths", 0.5).name, True),
        (Variant("init_scale", 1e-5).name, True),
        ("widths", False),
        ("depth_x2", False),
        ("main", False),
    ],
)
def test_names_of_variants_are_known(name, known):
    assert is_variant(name) is known


def test_every_setting_is_changed_to_other_values():
    for setting in SETTINGS.values():
        assert setting.factors
        assert 1 not in setting.factors


def test_averaged_pathways_of_one_unit_have_no_width():
    gates = {"name": "half_space", "pathways": 3}
    network = {"name": "gated", "hidden": [1], "gates": gates, "readout": "mean"}
    assert variant_of(cell(network=network), Variant("widths", 2.0)) is None
    assert variant_of(cell(network=network), Variant("steps", 2.0)) is not None
    assert (
        variant_of(cell(network=network | {"readout": "trained"}), Variant("widths", 2.0))
        is not None
    )
    relu = {"name": "layered", "hidden": [3], "activation": "relu", "readout": "mean"}
    assert variant_of(cell(network=relu), Variant("widths", 2.0)) is not None
    assert variant_of(cell(network=relu, candidates={"a": network}), Variant("widths", 2.0)) is None


def test_with_an_odd_interval_training_takes_twice_as_long():
    size = variant_of(
        cell(training={"learning_rate": 0.01, "steps": 40}, record={"every": 5}),
        Variant("step_size", 2.0),
    )
    assert (size.training.learning_rate, size.training.steps, size.record.every) == (0.02, 40, 5)


def test_tasks_of_a_sequence_begin_at_the_same_time():
    mixture = SPEC["dataset"] | {"inputs": 2, "outputs": 2}
    dataset = {"name": "sequence", "tasks": [mixture, mixture], "switches": [20]}
    assert variant_of(cell(dataset=dataset), Variant("step_size", 2.0)).dataset.switches == (10,)
    size = variant_of(cell(dataset=dataset | {"switches": [21]}), Variant("step_size", 2.0))
    assert (size.training.steps, size.dataset.switches) == (40, (21,))
    fresh = variant_of(cell(dataset=dataset), FRESH)
    assert [task.seed for task in fresh.dataset.tasks] == [OFFSET + 3] * 2


def test_batches_of_fresh_samples_double_too():
    online = {"learning_rate": 0.01, "steps": 40, "batch": {"name": "fresh", "size": 7}}
    other = variant_of(
        cell(dataset={"name": "nonlinear_gaussian"}, training=online), Variant("samples", 2.0)
    )
    assert (other.dataset.samples, other.training.batch.size) == (4000, 14)


def test_candidates_double_their_width_as_their_network_does():
    gated = {"name": "gated", "hidden": [5], "gates": {"name": "half_space", "pathways": 2}}
    network = {"name": "layered", "hidden": [10], "activation": "relu"}
    other = variant_of(cell(network=network, candidates={"a": gated}), Variant("widths", 2.0))
    assert (other.network.hidden, other.candidates["a"].hidden) == ((20,), (10,))


def test_a_variant_of_an_absent_quantity_is_none():
    assert variant_of(cell(dataset={"name": "hierarchy"}), Variant("samples", 2.0)) is None
    assert (
        variant_of(cell(network={"name": "layered", "hidden": []}), Variant("widths", 2.0)) is None
    )


def test_a_dataset_without_more_samples_is_not_doubled():
    assert variant_of(cell(dataset={"name": "digits"}), Variant("samples", 2.0)) is None
    assert (
        variant_of(cell(dataset={"name": "digits", "samples": 500}), Variant("samples", 2.0))
        is not None
    )


def test_fresh_seeds_begin_at_the_offset():
    assert list(variant_of(cell(), FRESH).seed_numbers) == [OFFSET, OFFSET + 1, OFFSET + 2]
