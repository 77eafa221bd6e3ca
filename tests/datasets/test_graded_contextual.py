"""Graded contexts: limits, modes in closed form, and targets by a plain loop."""

from itertools import product

import numpy as np
import pytest
import yaml
from refusals import check_refusal

from neuralrace.config.load import read_plan
from neuralrace.datasets.contextual import Contextual, properties
from neuralrace.datasets.graded_contextual import GradedContextual

SCALES = (0.0, 0.1, 0.5, 1.0, 1.7)
EXAMPLE = """
experiments:
  mine:
    grades:
      dataset: {name: graded_contextual, contexts: 3, objects: 4, scale: 1}
      network: {name: gated, hidden: [4], gates: {name: contexts, open_in: [2]}}
      init: {name: normal}
      init_scales: [0.01]
      seeds: 2
      training: {learning_rate: 0.02, steps: 40}
      record: {every: 10}
      solutions: [gated_flow]
      sweep: {dataset.scale: [0, 0.5, 1]}
"""


def make(scale, contexts=3, **parameters):
    return GradedContextual(name="graded_contextual", contexts=contexts, scale=scale, **parameters)


def paper(contexts=3, **parameters):
    return Contextual(name="contextual", contexts=contexts, **parameters)


@pytest.mark.parametrize("scale", SCALES)
def test_targets_equal_a_loop_over_blocks(scale):
    structures = ("ring", "hierarchy", "cross_cutting")
    data = make(scale, objects=4, structures=structures).load()
    np.testing.assert_array_equal(data.x, paper(objects=4).load().x)
    common, own = properties("hierarchy", 4), [properties(each, 4) for each in structures]
    for context, obj in product(range(3), range(4)):
        blocks = [common[:, obj]]
        for block, table in enumerate(own):
            weight = (1 + 2 * scale) / 3 if block == context else (1 - scale) / 3
            blocks.append(weight * table[:, obj])
        np.testing.assert_allclose(data.y[4 * context + obj], np.concatenate(blocks), atol=1e-15)


@pytest.mark.parametrize("part", ["whole", "common", "residual"])
def test_scale_one_is_the_contextual_task(part):
    graded, data = make(1.0, part=part).load(), paper(part=part).load()
    np.testing.assert_array_equal(graded.y, data.y)
    assert graded.item_names == data.item_names
    assert graded.input_groups == data.input_groups
    np.testing.assert_array_equal(graded.contexts, data.contexts)


def test_scale_zero_is_one_task_that_objects_alone_predict():
    data = make(0.0, contexts=4).load()
    first, *others = data.y.reshape(4, 8, -1)
    for other in others:
        np.testing.assert_array_equal(other, first)
    objects = data.x[:, :8]
    np.testing.assert_allclose(objects @ np.linalg.lstsq(objects, data.y)[0], data.y, atol=1e-13)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(("contexts", "objects"), [(2, 4), (3, 8), (5, 8)])
def test_modes_of_hierarchies_have_closed_forms(scale, contexts, objects):
    data = make(scale, contexts, objects=objects).load()
    n, c = objects, contexts
    h_squared = {4: (3, 1, 1), 8: (7, 3, 3, 1, 1, 1, 1)}[n]
    s_squared = [(2 * n - 1) * (n + c) * (c + 1), 0]
    s_squared += [scale**2 * (2 * n - 1) * n] * (c - 1)
    s_squared += [h * c * (c + 1) for h in h_squared]
    expected = np.sqrt(sorted(s_squared, reverse=True)) / (n * c)
    np.testing.assert_allclose(np.linalg.svd(data.sigma_yx)[1], expected, atol=1e-14)
    # both are diagonal in common vectors, which an SVD mixes where values coincide
    squared, inputs = data.sigma_yx.T @ data.sigma_yx, data.sigma_xx
    np.testing.assert_allclose(squared @ inputs, inputs @ squared, atol=1e-14)


@pytest.mark.parametrize("scale", [0.1, 0.5, 1.0, 1.7])
@pytest.mark.parametrize("contexts", [3, 4])
def test_effective_datasets_of_the_residual_are_proportional_to_the_scale(scale, contexts):
    """A pathway from objects that is open in q contexts: s = scale h sqrt(q (C - q)/C), d = q."""
    data = make(scale, contexts, part="residual").load()
    np.testing.assert_allclose(data.sigma_yx, 0, atol=1e-14)
    shown = data.x[:, :8]
    for q in range(1, contexts):
        gated = shown * (data.contexts < q)[:, None]
        np.testing.assert_array_equal(gated.T @ shown, q * np.eye(8))
        h_squared = np.array([7, 3, 3, 1, 1, 1, 1, 0])
        expected = scale * np.sqrt(h_squared * q * (contexts - q) / contexts)
        np.testing.assert_allclose(np.linalg.svd(data.y.T @ gated)[1], expected, atol=1e-13)


@pytest.mark.parametrize("scale", SCALES)
def test_parts_are_the_best_linear_map_and_its_residual(scale):
    whole = make(scale, structures=("ring", "hierarchy", "cross_cutting")).load()
    common = make(scale, structures=("ring", "hierarchy", "cross_cutting"), part="common").load()
    best = whole.x @ np.linalg.lstsq(whole.x, whole.y)[0]
    np.testing.assert_allclose(common.y, best, atol=1e-13)


def test_contexts_of_an_object_are_apart_in_proportion_to_the_scale():
    data, full = (each.load().y.reshape(3, 8, -1) for each in (make(0.3), paper()))
    for one, other in ((0, 1), (0, 2), (1, 2)):
        apart = np.linalg.norm(data[one] - data[other], axis=1)
        np.testing.assert_allclose(apart, 0.3 * np.linalg.norm(full[one] - full[other], axis=1))


def test_scales_can_be_swept_under_gates_of_contexts():
    config = yaml.safe_load(EXAMPLE)
    cells = read_plan(config, {"mine.yaml": config}).cells
    assert list(cells) == [f"mine/grades/scale-{scale}" for scale in ("0", "0.5", "1")]
    assert {cell.dataset.sizes for cell in cells.values()} == {paper(objects=4).sizes}


def test_theory_of_the_contextual_task_does_not_take_graded_contexts():
    config = yaml.safe_load(EXAMPLE)
    config["experiments"]["mine"]["grades"]["solutions"] = ["staged_modes"]
    with pytest.raises(ValueError, match=r"graded_contextual.*use contextual"):
        read_plan(config, {"mine.yaml": config})


@pytest.mark.parametrize(
    ("parameters", "key", "words"),
    [
        ({"scale": -0.5}, "scale", "at least 0"),
        ({"scale": 0.0, "part": "residual"}, "scale", "0.0: contexts ... no residual; use a pos"),
        ({"scale": 0.5, "objects": 6}, "objects", "structure hierarchy needs"),
    ],
)
def test_impossible_task_is_refused(parameters, key, words):
    check_refusal(make, parameters, key, words)
