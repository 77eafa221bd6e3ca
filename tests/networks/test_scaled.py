"""Factors on single layers and edges of initial weights."""

import numpy as np
import pytest
import yaml

from builders import LINEAR, build_cell, solved_theory, trained_trajectory
from neuralrace.config.load import read_plan
from neuralrace.config.requirements import unmet
from neuralrace.errors import UserError
from neuralrace.testing.cells import SMALL

GRAPH = {
    "name": "graph",
    "nodes": {"a": 1, "b": 2, "h": 4, "k": 4, "y": 2},
    "edges": [["a", "h"], ["b", "h"], ["h", "k"], ["k", "y"], ["b", "k"]],
}
LEVELS = (0, 0, 1, 2, 0)
"""Longest distance of each edge from the inputs."""
LAYERED = {"name": "layered", "hidden": [4]}
GATED = {"name": "gated", "hidden": [3, 2], "gates": {"name": "contexts", "open_in": [1]}}
CONTEXTUAL = {"name": "contextual", "contexts": 12, "objects": 4}
ROUTING = {
    "name": "routing",
    "hidden": [3, 2],
    "gates": {"name": "parallel", "dedicated": 2},
    "pairs": {"name": "all"},
}
DOMAINS = {"name": "routing", "count": 2}


def weights(init, **changes):
    """Initial weights of a cell, from those that theory starts from."""
    cell = build_cell(init=init, **changes)
    network, examples = cell.network, cell.network.examples(cell.dataset)
    return network.initial(cell.init, examples, cell.init_scales, cell.seed_numbers)


def scaled(name="normal", of=(), **keys):
    return {"name": "scaled", "of": {"name": name, **dict(of)}, **keys}


def assert_factors(init, factors, **changes):
    """Weights are those of the other initialiser times these factors."""
    drawn, plain = weights(init, **changes), weights(init["of"], **changes)
    for w, other, factor in zip(drawn, plain, factors, strict=True):
        np.testing.assert_allclose(w, factor * other, rtol=1e-15)
        assert np.abs(other).max() > 0


@pytest.mark.parametrize(
    "name", ["normal", "orthogonal", "zero_balanced", "aligned", "tied", "decoupled"]
)
def test_layers_of_a_layered_network(name):
    assert_factors(scaled(name, layers=[2.0, 0.1]), (2.0, 0.1), network=LAYERED)


def test_no_factors_change_nothing():
    assert_factors(scaled(), (1, 1), network=LAYERED)
    assert_factors(scaled(), (1, 1, 1, 1, 1), network=GRAPH)


def test_layers_of_a_graph_go_by_the_distance_from_the_inputs():
    factors = (3.0, 0.5, 0.1)
    expected = [factors[level] for level in LEVELS]
    assert_factors(scaled(layers=list(factors)), expected, network=GRAPH)


@pytest.mark.parametrize(
    ("edges", "factors"),
    [
        ({"a->h": 0.1}, (0.1, 1, 1, 1, 1)),
        ({"h": 0.1}, (0.1, 0.1, 0.1, 1, 1)),
        ({"b->*": 0.1}, (1, 0.1, 1, 1, 0.1)),
        ({"*": 0.1}, (0.1,) * 5),
        ({"b": 0.1, "b->k": 10.0, "k": 3.0}, (1, 0.1, 3, 3, 3)),
    ],
)
def test_edges_of_a_graph(edges, factors):
    assert_factors(scaled("glorot", edges=edges), factors, network=GRAPH)
    twice = [2 * factor if level else factor for factor, level in zip(factors, LEVELS, strict=True)]
    assert_factors(scaled(layers=[1.0, 2.0, 2.0], edges=edges), twice, network=GRAPH)


def test_single_pathway_of_a_gated_network():
    """The second of thirteen: its number also begins others."""
    factors = np.ones((13, 3))
    factors[1] = 0.1
    init = scaled(edges={"*of pathway 2": 0.1})
    assert_factors(init, factors.ravel(), network=GATED, dataset=CONTEXTUAL)


def test_family_of_pathway_blocks_of_a_routing_network():
    # a shared block: two encoders, a hidden matrix, two decoders; then four dedicated blocks
    factors = [1] * 5 + [0.1] * 12
    init = scaled(edges={"*of family 2,*": 0.1})
    assert_factors(init, factors, network=ROUTING, dataset=DOMAINS)


EXAMPLE = """
experiments:
  mine:
    scales:
      dataset: {name: modes, singular_values: [2.0, 1.0], inputs: 3, outputs: 2}
      network: {name: layered, hidden: [4]}
      init: {name: scaled, of: {name: normal}}
      init_scales: [0.1]
      seeds: 2
      training: {learning_rate: 0.02, steps: 40}
      record: {every: 10}
      sweep: {init.layers: [[1, 1], [1, 0.1]]}
"""


def test_factors_can_be_swept():
    config = yaml.safe_load(EXAMPLE)
    cells = read_plan(config, {"mine.yaml": config}).cells
    assert list(cells) == ["mine/scales/layers-1x1", "mine/scales/layers-1x0.1"]
    equal, small = (cell.task().weights((1.0,), (0,)) for cell in cells.values())
    np.testing.assert_array_equal(small[0], equal[0])
    np.testing.assert_allclose(small[1], 0.1 * equal[1], rtol=1e-15)


# Properties that theory requires ------------------------------------------------------------------


def test_theory_of_aligned_weights_holds_with_factors():
    """The reduction takes the steps of training, which knows no alignment."""
    cell = build_cell(
        dataset={"name": "table", "x": np.eye(3).tolist(), "y": [[3, 0], [0, 2], [1, 1]]},
        network={
            "name": "graph",
            "nodes": {"x": 3, "h": 4, "y": 2},
            "edges": [["x", "h"], ["h", "y"]],
        },
        init=scaled("aligned", layers=[1.0, 3.0], edges={"h->y": 0.5}),
        training={"learning_rate": 0.05, "steps": 400},
        solutions=["reduction_descent"],
    )
    assert cell.unfit() is None
    loss = trained_trajectory(cell)["loss"]
    assert float(loss.isel(time=-1).max()) < 0.5 * float(loss.isel(time=0).min())
    theory = solved_theory(cell)["loss"].squeeze("solution")
    # rounding of the loss is that of its largest terms, about 2
    np.testing.assert_allclose(theory, loss, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize(
    ("name", "requirement", "met"),
    [
        ("aligned", "aligned_start", True),
        ("normal", "aligned_start", False),
        ("orthogonal", "orthogonal_start", False),
        ("normal", "normal_start", False),
        ("normal", "general_start", True),
        ("tied", "general_start", False),
    ],
)
def test_requirements_see_what_factors_change(name, requirement, met):
    plain, cell = (build_cell(init=init) for init in ({"name": name}, scaled(name)))
    assert (unmet(cell, requirement) is None) == met
    assert met <= (unmet(plain, requirement) is None)


def test_closed_form_for_orthogonal_weights_is_refused():
    spec = SMALL["orthogonal"]
    routing = {key: spec[key] for key in ("dataset", "network")}
    assert build_cell(**routing, init=spec["init"], solutions=["routing_race"]).unfit() is None
    with pytest.raises(ValueError, match=r"init.name: 'scaled': use orthogonal"):
        build_cell(**routing, init=scaled("orthogonal"), solutions=["routing_race"])


# Refusals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("init", "changes", "words"),
    [
        (
            scaled(layers=[1.0]),
            {},
            "init.layers: has 1 entries for 2 layers of weights; give one entry for each layer",
        ),
        (scaled(layers=[1.0, 2.0]), {"network": GRAPH}, "has 2 entries for 3 layers"),
        (
            scaled(layers=[1.0, 2.0]),
            {"network": ROUTING, "dataset": DOMAINS},
            "has 2 entries for 3 layers",
        ),
        (scaled(edges={"h": 2.0}), {}, "init.edges: a layered network has layers only; use init.l"),
        (
            scaled(edges={"a-h": 2.0}),
            {"network": GRAPH},
            "init.edges.a-h: is no node and no edge; did you mean a->h? write an edge as a->b",
        ),
        (scaled("zero_balanced"), {"network": GRAPH}, "init.name: 'scaled': use one for graphs"),
        (scaled("decoupled"), {"network": LINEAR["network"] | {"hidden": [1]}}, "at least 2 units"),
    ],
)
def test_factors_that_do_not_fit_are_refused_when_they_are_planned(init, changes, words):
    config = {"experiments": {"mine": {"first": {**LINEAR, "init": init, **changes}}}}
    with pytest.raises(UserError) as error:
        read_plan(config, {"mine.yaml": config})
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("init", "words"),
    [
        (scaled(layers=[1.0, 0.0]), "greater than 0"),
        (scaled(edges={"h": -1.0}), "greater than 0"),
        (
            scaled("scaled", of={"of": {"name": "normal"}}),
            "does not match any of the expected tags",
        ),
    ],
)
def test_impossible_factors_are_refused(init, words):
    with pytest.raises(ValueError, match=words):
        build_cell(init=init)
