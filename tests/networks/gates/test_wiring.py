"""Gates of samples on architecture graphs: what is open, what is refused."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuralrace.datasets import Data, Domains
from neuralrace.datasets.xor import Xor
from neuralrace.errors import UserError
from neuralrace.networks.gated import Gated
from neuralrace.networks.gates import wiring
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
"""Its pathways, found by hand."""


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
    found = dict(
        zip(
            ["".join(pathway.nodes) for pathway in GRAPH.pathways],
            Wiring(GRAPH, gates, data_of(4)).pathway_gates,
            strict=True,
        )
    )
    assert sorted(found) == ROUTES
    for route, gate in found.items():
        expected = np.ones(4)
        for name in [*route, *(f"{a}->{b}" for a, b in pairwise(route))]:
            expected *= gates.get(name, 1.0)
        np.testing.assert_allclose(gate, expected, rtol=1e-14)


# Gates written out -----------------------------------------------------------------------------


def test_gates_are_spread_over_the_samples_of_each_context():
    data = data_of(5, contexts=[1, 0, 2, 0, 1])
    found = wiring.explicit(GRAPH, {"h": (0.25, 0.5, 1.0), "k->z": (1.0, 0.0, 0.0)}, data)
    np.testing.assert_array_equal(found.gates["h"], [0.5, 0.25, 1, 0.25, 0.5])
    np.testing.assert_array_equal(found.gates["k->z"], [0, 1, 0, 1, 0])
    assert set(found.gates) == {"h", "k->z"}
    by_route = dict(zip([p.nodes for p in GRAPH.pathways], found.pathway_gates, strict=True))
    np.testing.assert_array_equal(by_route[tuple("ahkz")], [0, 0.25, 0, 0.25, 0])
    np.testing.assert_array_equal(by_route[tuple("bky")], np.ones(5))


def test_without_contexts_every_sample_has_a_gate_of_its_own():
    gates = {"h": (0.0, 0.5, 1.0), "b->k": (1.0, 0.0, 0.5)}
    own = wiring.explicit(GRAPH, gates, data_of(3))
    numbered = wiring.explicit(GRAPH, gates, data_of(3, contexts=[0, 1, 2]))
    for name, values in gates.items():
        np.testing.assert_array_equal(own.gates[name], values)
        np.testing.assert_array_equal(numbered.gates[name], values)
    assert wiring.explicit(GRAPH, {}, data_of(3)).gates == {}


@pytest.mark.parametrize(
    ("gates", "contexts", "message"),
    [
        ({"q": (1.0, 1.0)}, [0, 1, 1], r"q: is no node and no edge; .* written as a->b"),
        ({"a->y": (1.0,) * 3}, None, "a->y: is no node and no edge"),
        ({"h->a": (1.0,) * 3}, None, "h->a: is no node and no edge"),
        ({"h": (1.0,) * 3}, [0, 1, 1], "h: has 3 values; the dataset has 2 contexts"),
        ({"h": (1.0,) * 2}, None, "h: has 2 values; the dataset has 3 samples"),
        ({"h": (0.0, 1.5)}, [0, 1, 1], r"h: gates lie between 0 \(closed\) and 1 \(open\)"),
        ({"k->y": (0.0, -0.1, 1.0)}, None, "k->y: gates lie between"),
    ],
    ids=["node", "edge", "edge backwards", "contexts", "samples", "above 1", "below 0"],
)
def test_gates_that_do_not_fit_are_refused(gates, contexts, message):
    network = Graph(name="graph", nodes=GRAPH.nodes, edges=GRAPH.edges, gates=gates)
    with pytest.raises(UserError, match=rf"^network\.gates: {message}"):
        network.wiring(data_of(3, contexts))


def test_gates_of_other_samples_are_refused():
    with pytest.raises(UserError, match="h: has 2 values; the dataset has 3 samples"):
        Wiring(GRAPH, {"h": np.ones(2)}, data_of(3))


# Pathways side by side -------------------------------------------------------------------------


def side_by_side(seed, pathways, depth):
    """Samples, and pathways of unequal width with graded gates that see some inputs."""
    rng = np.random.default_rng(seed)
    gates = rng.choice([0, 0.5, 1], size=(pathways, 5))
    gates[rng.integers(pathways, size=5), range(5)] = 0.25  # something is open on every sample
    sees = rng.uniform(size=(pathways, 4)) < 0.7
    hidden = [tuple(rng.integers(1, 5, size=depth).tolist()) for _ in range(pathways)]
    return hidden, gates, sees, data_of(5, x=4, y=2)


drawn_side_by_side = given(
    seed=st.integers(0, 50), pathways=st.integers(1, 4), depth=st.integers(1, 3)
)


@drawn_side_by_side
@few
def test_pathways_side_by_side(seed, pathways, depth):
    hidden, gates, sees, data = side_by_side(seed, pathways, depth)
    found = wiring.parallel(hidden, gates, sees, data)
    np.testing.assert_array_equal(found.pathway_gates, gates)
    graph = found.architecture
    widths = [tuple(graph.nodes[name] for name in pathway.nodes) for pathway in graph.pathways]
    assert widths == [(4, *units, 2) for units in hidden]
    assert len(graph.hidden) == sum(map(len, hidden))  # pathways share their ends alone
    first = [graph.edge_name(pathway.edges[0]) for pathway in graph.pathways]
    assert set(found.sees) == {e for e, seen in zip(first, sees, strict=True) if not seen.all()}
    for name, seen in zip(first, sees, strict=True):
        np.testing.assert_array_equal(found.sees.get(name, np.ones(4, dtype=bool)), seen)


@drawn_side_by_side
@few
def test_pathways_are_shown_what_they_see_where_they_are_open(seed, pathways, depth):
    hidden, gates, sees, data = side_by_side(seed, pathways, depth)
    shown = wiring.parallel(hidden, gates, sees, data).gated_inputs
    assert shown.shape == (5, 4 * len(gates))
    for pathway, gate in enumerate(gates):
        for sample in range(5):
            for unit in range(4):
                expected = gate[sample] * data.x[sample, unit] if sees[pathway, unit] else 0
                assert shown[sample, 4 * pathway + unit] == expected


def everything(gates, data):
    return np.ones((len(gates), data.x.shape[1]), dtype=bool)


def test_sample_without_an_open_pathway_is_refused():
    gates, data = np.array([[1.0, 0, 0, 1], [1, 0, 0, 0]]), data_of(4)
    with pytest.raises(UserError) as caught:
        wiring.parallel([(2,), (2,)], gates, everything(gates, data), data)
    message = str(caught.value)
    assert message.startswith("network.gates: no pathway is open on 2 of 4 samples, the first")
    assert message.endswith("sample 1, where the network would answer zero; add pathways")


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
    with pytest.raises(UserError, match=f"^network.gates: no pathway is open on {closed} of 4"):
        network.wiring(data)


def test_widths_multiply_the_hidden_layers_of_a_pathway():
    gates = Listed(name="listed", rows=((1, 0, 0), (0, 1, 1)))
    network = Gated(name="gated", hidden=(2, 5), gates=gates, widths=(3, 1))
    nodes = network.wiring(data_of(3)).architecture.nodes
    assert list(nodes.values()) == [3, 6, 15, 2, 5, 3]
    plain = Gated(name="gated", hidden=(2, 5), gates=gates).wiring(data_of(3))
    assert list(plain.architecture.nodes.values()) == [3, 2, 5, 2, 5, 3]
    network = Gated(name="gated", hidden=(2,), gates=gates, widths=(3, 1, 1))
    with pytest.raises(UserError) as caught:
        network.wiring(data_of(3))
    assert str(caught.value) == "network.widths: has 3 entries; the gates make 2 pathways"


def test_learned_gates_have_no_wiring():
    network = Gated(name="gated", hidden=(2,), gates=Learned(name="learned"))
    with pytest.raises(UserError, match=r"^network\.gates: learned gates follow the weights"):
        network.wiring(data_of(3))


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
    found, mask = network.wiring(domains, seed=5), network.mask(4, 5)
    graph, families = found.architecture, len(network.families(4))
    assert len(graph.pathways) == families * 16
    ends = [(int(p.source.split()[1]) - 1, int(p.target.split()[1]) - 1) for p in graph.pathways]
    data = found.data
    assert len(data.x) == mask.sum() * 3
    seen = set()
    for sample, gate in enumerate(found.pathway_gates.T):
        # what the datum shows and asks for, from where it is not zero
        (i,) = np.flatnonzero(data.x[sample].reshape(4, -1).any(axis=1))
        (j,) = np.flatnonzero(data.y[sample].reshape(4, -1).any(axis=1))
        assert mask[i, j]
        seen.add((i, j))
        assert [end for end, open_ in zip(ends, gate, strict=True) if open_] == [(i, j)] * families
        assert set(gate) == {0.0, 1.0}
    assert len(seen) == mask.sum()
    for pathway in graph.pathways:
        assert len(pathway.edges) == depth + 1


def test_domains_of_a_group_share_its_hidden_layers():
    families = (Family(2, (3, 5)),)
    found = wiring.routing(domains_of(4), families, AllPairs(name="all").mask(4, 0))
    middle = {
        (pathway.source[-1], pathway.target[-1]): pathway.nodes[1:-1]
        for pathway in found.architecture.pathways
    }
    assert len(middle) == 16
    gates = Groups(name="groups", size=2).gates(4)
    block = {(i + 1, j + 1): b for b, i, j in np.argwhere(gates)}
    for one, through in middle.items():
        for other, through_other in middle.items():
            same = block[tuple(map(int, one))] == block[tuple(map(int, other))]
            assert (through == through_other) == same
            assert set(through).isdisjoint(through_other) != same
        assert [found.architecture.nodes[name] for name in through] == [3, 5]
