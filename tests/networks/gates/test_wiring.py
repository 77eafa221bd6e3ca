"""Wirings: gates of samples on architecture graphs, and gates that are refused."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from neuralrace.datasets import Data, Domains
from neuralrace.datasets.xor import Xor
from neuralrace.errors import UserError
from neuralrace.networks.gated import Gated
from neuralrace.networks.gates import wiring
from neuralrace.networks.gates.always_on import AlwaysOnSamples
from neuralrace.networks.gates.architecture import Architecture
from neuralrace.networks.gates.base import Family
from neuralrace.networks.gates.contexts import Contexts
from neuralrace.networks.gates.groups import Groups
from neuralrace.networks.gates.half_space import HalfSpace
from neuralrace.networks.gates.learned import Learned
from neuralrace.networks.gates.listed import Listed
from neuralrace.networks.gates.pairs import AllPairs, Band, RandomRegular
from neuralrace.networks.gates.parallel import Parallel
from neuralrace.networks.gates.wiring import Wiring
from neuralrace.networks.graph import Graph
from neuralrace.networks.routing import Routing

few = settings(max_examples=15)
GRAPH = Architecture(
    nodes={"a": 2, "b": 1, "h": 3, "k": 2, "y": 2, "z": 1},
    edges=(("a", "h"), ("b", "h"), ("b", "k"), ("h", "k"), ("k", "y"), ("k", "z"), ("h", "y")),
)
ROUTES = ["ahky", "ahkz", "ahy", "bhky", "bhkz", "bhy", "bky", "bkz"]
"""Its pathways, listed by hand."""


def data_of(count, contexts=None, x=3, y=3):
    rng = np.random.default_rng(count)
    return Data(
        x=rng.normal(size=(count, x)),
        y=rng.normal(size=(count, y)),
        contexts=None if contexts is None else np.asarray(contexts),
    )


def domains_of(count, items=3, inputs=4, outputs=2):
    rng = np.random.default_rng(count)
    return Domains(
        inputs=rng.normal(size=(count, items, inputs)),
        targets=rng.normal(size=(count, items, outputs)),
    )


# Products --------------------------------------------------------------------------------------


@given(st.data())
@few
def test_pathway_gates_are_products_of_all_gates_on_the_way(data):
    gate = st.lists(st.floats(0, 1), min_size=4, max_size=4).map(np.array)
    names = [*"abhkyz", *("->".join(edge) for edge in GRAPH.edges)]
    gates = data.draw(st.dictionaries(st.sampled_from(names), gate))
    routes = ["".join(pathway.nodes) for pathway in GRAPH.pathways]
    assert sorted(routes) == ROUTES
    pathway_gates = Wiring(GRAPH, gates, data_of(4)).pathway_gates
    for route, gate in zip(routes, pathway_gates, strict=True):
        expected = np.ones(4)
        for name in [*route, *(f"{a}->{b}" for a, b in pairwise(route))]:
            expected *= gates.get(name, 1.0)
        np.testing.assert_allclose(gate, expected, rtol=1e-14)


# Gates written out -----------------------------------------------------------------------------


def test_gates_are_spread_over_the_samples_of_each_context():
    data = data_of(5, contexts=[1, 0, 2, 0, 1])
    wired = wiring.explicit(GRAPH, {"h": (0.25, 0.5, 1.0), "k->z": (1.0, 0.0, 0.0)}, data)
    np.testing.assert_array_equal(wired.gates["h"], [0.5, 0.25, 1, 0.25, 0.5])
    np.testing.assert_array_equal(wired.gates["k->z"], [0, 1, 0, 1, 0])
    assert set(wired.gates) == {"h", "k->z"}
    by_route = dict(zip([p.nodes for p in GRAPH.pathways], wired.pathway_gates, strict=True))
    np.testing.assert_array_equal(by_route[tuple("ahkz")], [0, 0.25, 0, 0.25, 0])
    np.testing.assert_array_equal(by_route[tuple("bky")], np.ones(5))


def test_without_contexts_every_sample_has_its_gate():
    gates = {"h": (0.0, 0.5, 1.0), "b->k": (1.0, 0.0, 0.5)}
    own = wiring.explicit(GRAPH, gates, data_of(3))
    numbered = wiring.explicit(GRAPH, gates, data_of(3, contexts=[0, 1, 2]))
    for name, values in gates.items():
        np.testing.assert_array_equal(own.gates[name], values)
        np.testing.assert_array_equal(numbered.gates[name], values)
    assert wiring.explicit(GRAPH, {}, data_of(3)).gates == {}


@pytest.mark.parametrize(
    ("gates", "contexts", "key", "problem"),
    [
        ({"q": (1.0, 1.0)}, [0, 1, 1], "q", "is no node and no edge"),
        ({"a->y": (1.0,) * 3}, None, "a->y", "is no node and no edge"),
        ({"h->a": (1.0,) * 3}, None, "h->a", "is no node and no edge"),
        ({"h": (1.0,) * 3}, [0, 1, 1], "h", "has 3 values, and the dataset has 2 contexts"),
        ({"h": (1.0,) * 2}, None, "h", "has 2 values, and the dataset has 3 samples"),
        ({"h": (0.0, 1.5)}, [0, 1, 1], "h", "below 0 or above 1"),
        ({"k->y": (0.0, -0.1, 1.0)}, None, "k->y", "below 0 or above 1"),
    ],
    ids=["node", "edge", "edge backwards", "contexts", "samples", "above 1", "below 0"],
)
def test_gates_that_do_not_fit_are_refused(gates, contexts, key, problem):
    network = Graph(name="graph", nodes=GRAPH.nodes, edges=GRAPH.edges, gates=gates)
    with pytest.raises(UserError, match=problem) as error:
        network.wiring(data_of(3, contexts))
    assert error.value.key == f"network.gates.{key}"


def test_gates_of_other_samples_are_refused():
    with pytest.raises(UserError, match="has 2 values, and the dataset has 3 samples") as error:
        Wiring(GRAPH, {"h": np.ones(2)}, data_of(3))
    assert error.value.key == "network.gates.h"


# Parallel pathways -------------------------------------------------------------------------


def side_by_side(seed, pathways, depth):
    """Samples, and pathways of unequal width with graded gates that receive some inputs."""
    rng = np.random.default_rng(seed)
    gates = rng.choice([0, 0.5, 1], size=(pathways, 5))
    gates[rng.integers(pathways, size=5), range(5)] = 0.25  # something is open on every sample
    visible = rng.uniform(size=(pathways, 4)) < 0.7
    hidden = [tuple(rng.integers(1, 5, size=depth).tolist()) for _ in range(pathways)]
    return hidden, gates, visible, data_of(5, x=4, y=2)


drawn_side_by_side = given(
    seed=st.integers(0, 50), pathways=st.integers(1, 4), depth=st.integers(1, 3)
)


@drawn_side_by_side
@few
def test_parallel_pathways_have_their_widths_gates_and_inputs(seed, pathways, depth):
    hidden, gates, visible, data = side_by_side(seed, pathways, depth)
    wired = wiring.parallel(hidden, gates, visible, data)
    np.testing.assert_array_equal(wired.pathway_gates, gates)
    graph = wired.architecture
    widths = [tuple(graph.nodes[name] for name in pathway.nodes) for pathway in graph.pathways]
    assert widths == [(4, *units, 2) for units in hidden]
    assert len(graph.hidden) == sum(map(len, hidden))  # pathways share their ends alone
    first = [graph.edge_name(pathway.edges[0]) for pathway in graph.pathways]
    partial = {name for name, inputs in zip(first, visible, strict=True) if not inputs.all()}
    assert set(wired.visible_inputs) == partial
    for name, inputs in zip(first, visible, strict=True):
        wired_inputs = wired.visible_inputs.get(name, np.ones(4, dtype=bool))
        np.testing.assert_array_equal(wired_inputs, inputs)


@drawn_side_by_side
@few
def test_gated_inputs_are_visible_inputs_times_gates(seed, pathways, depth):
    hidden, gates, visible, data = side_by_side(seed, pathways, depth)
    gated = wiring.parallel(hidden, gates, visible, data).gated_inputs
    assert gated.shape == (5, 4 * len(gates))
    for pathway, gate in enumerate(gates):
        for sample in range(5):
            for unit in range(4):
                expected = gate[sample] * data.x[sample, unit] if visible[pathway, unit] else 0
                assert gated[sample, 4 * pathway + unit] == expected


def test_sample_without_an_open_pathway_is_refused():
    gates, visible = np.array([[1.0, 0, 0, 1], [1, 0, 0, 0]]), np.ones((2, 3), dtype=bool)
    with pytest.raises(UserError, match=r"open on 2 of 4 samples, .* sample 1") as error:
        wiring.parallel([(2,), (2,)], gates, visible, data_of(4))
    assert (error.value.key, error.value.remedy) == ("network.gates", "add pathways")


@pytest.mark.parametrize(
    ("gates", "closed"),
    [
        # one half-space leaves the opposite corners of a square without a pathway
        (HalfSpace(name="half_space", pathways=1), 2),
        (Listed(name="listed", rows=((1, 0), (1, 0))), 2),
        (Listed(name="listed", rows=((1, 0, 0, 0), (0, 0, 0.5, 0.5))), 1),
        (Contexts(name="contexts", open_in=(), common=False, shown="everything"), 4),
    ],
    ids=["half-space", "one context", "one sample", "no pathway at all"],
)
def test_families_that_leave_samples_without_a_pathway_are_refused(gates, closed):
    corners = Xor(name="xor").load()
    data = Data(x=corners.x, y=corners.y, contexts=np.array([0, 0, 1, 1]))
    network = Gated(name="gated", hidden=(2,), gates=gates)
    with pytest.raises(UserError, match=f"no pathway is open on {closed} of 4"):
        network.wiring(data)


def test_widths_multiply_the_hidden_layers_of_a_pathway():
    gates = Listed(name="listed", rows=((1, 0, 0), (0, 1, 1)))
    network = Gated(name="gated", hidden=(2, 5), gates=gates, widths=(3, 1))
    nodes = network.wiring(data_of(3)).architecture.nodes
    assert list(nodes.values()) == [3, 6, 15, 2, 5, 3]
    plain = Gated(name="gated", hidden=(2, 5), gates=gates).wiring(data_of(3))
    assert list(plain.architecture.nodes.values()) == [3, 2, 5, 2, 5, 3]
    network = Gated(name="gated", hidden=(2,), gates=gates, widths=(3, 1, 1))
    with pytest.raises(UserError, match="3 entries, and the gates make 2 pathways") as error:
        network.wiring(data_of(3))
    assert error.value.key == "network.widths"


def test_stages_hold_every_pathway_once():
    gates = Listed(name="listed", rows=((1, 0, 0), (0, 1, 1)))
    Gated(name="gated", hidden=(2,), gates=gates, stages=(1, 1)).wiring(data_of(3))
    network = Gated(name="gated", hidden=(2,), gates=gates, stages=(1, 2))
    with pytest.raises(UserError, match="have 3 pathways, and the gates make 2") as error:
        network.wiring(data_of(3))
    assert error.value.key == "network.stages"


@pytest.mark.parametrize(
    "parts", [{"gates": Learned(name="learned")}, {"readout": "mean"}], ids=["learned", "mean"]
)
def test_units_of_one_network_have_no_stages(parts):
    gates = Listed(name="listed", rows=((1, 0, 0), (0, 1, 1)))
    with pytest.raises(ValidationError, match=r"no stagewise descent.*leave stages out"):
        Gated(name="gated", hidden=(2,), stages=(1, 1), **{"gates": gates} | parts)


def test_networks_are_linear_unless_their_gates_are_learned():
    learned, fixed = (
        Gated(name="gated", hidden=(2,), gates=gates)
        for gates in (Learned(name="learned"), AlwaysOnSamples(name="always_on"))
    )
    assert fixed.linear
    assert not learned.linear


def test_learned_gates_have_no_wiring():
    network = Gated(name="gated", hidden=(2,), gates=Learned(name="learned"))
    with pytest.raises(UserError, match="learned gates follow the weights") as error:
        network.wiring(data_of(3))
    assert error.value.key == "network.gates"


# Routing ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize(
    ("gates", "pairs"),
    [
        (Groups(name="groups", size=2), Band(name="band", partners=3)),
        (Parallel(name="parallel", dedicated=1), RandomRegular(name="random_regular", partners=2)),
    ],
    ids=["groups", "parallel"],
)
def test_only_pathways_of_the_pair_are_open(gates, pairs, depth):
    domains = domains_of(4)
    network = Routing(name="routing", hidden=(2, 3, 1)[:depth], gates=gates, pairs=pairs)
    wired, mask = network.wiring(domains, seed=5), network.mask(4, 5)
    graph, families = wired.architecture, len(network.families(4))
    assert len(graph.pathways) == families * 16
    ends = [(int(p.source.split()[1]) - 1, int(p.target.split()[1]) - 1) for p in graph.pathways]
    data = wired.data
    assert len(data.x) == mask.sum() * 3
    pairs_of_samples = set()
    for sample, gate in enumerate(wired.pathway_gates.T):
        # input and output domain of the sample: those of its columns that are not zero
        (i,) = np.flatnonzero(data.x[sample].reshape(4, -1).any(axis=1))
        (j,) = np.flatnonzero(data.y[sample].reshape(4, -1).any(axis=1))
        assert mask[i, j]
        pairs_of_samples.add((i, j))
        assert [end for end, open_ in zip(ends, gate, strict=True) if open_] == [(i, j)] * families
        assert set(gate) == {0.0, 1.0}
    assert len(pairs_of_samples) == mask.sum()
    for pathway in graph.pathways:
        assert len(pathway.edges) == depth + 1


def test_domains_of_a_group_share_its_hidden_layers():
    families = (Family(2, (3, 5)),)
    wired = wiring.routing(domains_of(4), families, AllPairs(name="all").mask(4, 0))
    middle = {
        (pathway.source[-1], pathway.target[-1]): pathway.nodes[1:-1]
        for pathway in wired.architecture.pathways
    }
    assert len(middle) == 16
    gates = Groups(name="groups", size=2).gates(4)
    block = {(i + 1, j + 1): b for b, i, j in np.argwhere(gates)}
    for one, through in middle.items():
        for other, through_other in middle.items():
            same = block[tuple(map(int, one))] == block[tuple(map(int, other))]
            assert (through == through_other) == same
            assert set(through).isdisjoint(through_other) != same
        assert [wired.architecture.nodes[name] for name in through] == [3, 5]
