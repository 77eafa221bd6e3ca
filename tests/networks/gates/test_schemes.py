"""Gating schemes open the pathways that their docstrings state."""

import re
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from neuralrace.datasets import Data
from neuralrace.datasets.random_streams import generator
from neuralrace.errors import UserError
from neuralrace.networks.gated import SAMPLE_SCHEMES, Gated
from neuralrace.networks.gates.always_on import AlwaysOnDomains, AlwaysOnSamples
from neuralrace.networks.gates.base import Family
from neuralrace.networks.gates.bumps import Bumps
from neuralrace.networks.gates.contexts import Contexts
from neuralrace.networks.gates.groups import Groups
from neuralrace.networks.gates.half_space import HalfSpace, half_spaces
from neuralrace.networks.gates.learned import Learned
from neuralrace.networks.gates.listed import Listed
from neuralrace.networks.gates.pairs import AllPairs
from neuralrace.networks.gates.parallel import Parallel
from neuralrace.networks.gates.per_example import PerExample
from neuralrace.networks.gates.tiling import Tiling
from neuralrace.networks.routing import DOMAIN_SCHEMES, Routing

few = settings(max_examples=20)
unit = st.integers(1, 6)
seeds = st.integers(0, 100)
ENCODER = np.random.default_rng(7).normal(size=(5, 3))
SAMPLED = {
    AlwaysOnSamples: ({}, 1),
    Bumps: ({"pathways": 3, "width": 0.5}, 3),
    Contexts: ({"open_in": (2, 1)}, 1 + 3 + 3),
    HalfSpace: ({"pathways": 4, "seed": 2}, 4),
    Learned: ({}, len(ENCODER)),
    Listed: ({"rows": ((0.0,) * 8 + (1.0,), (1.0, 0.0, 1.0))}, 2),
    PerExample: ({}, 9),
    Tiling: ({"pathways": 4, "directions": "random"}, 4),
}
"""Parameters of each sample scheme, and its pathways on nine samples in three contexts."""


def named(cls, **parameters):
    return cls(name=cls.model_fields["name"].annotation.__args__[0], **parameters)


def samples(seed, count=9, inputs=3):
    """Samples in three contexts, and the last input forms the second group."""
    rng = np.random.default_rng(seed)
    return Data(
        x=rng.normal(size=(count, inputs)),
        y=rng.normal(size=(count, 2)),
        contexts=np.arange(count) % 3,
        input_groups=(inputs - 1, 1),
    )


# Gates that depend on the sample ---------------------------------------------------------------


def test_every_sample_scheme_is_tested():
    assert set(SAMPLED) == set(SAMPLE_SCHEMES)


@pytest.mark.parametrize("cls", SAMPLED, ids=lambda cls: cls.__name__)
def test_sample_gates_are_open_or_closed_and_equal_their_picture(cls):
    parameters, pathways = SAMPLED[cls]
    scheme, data = named(cls, **parameters), samples(0)
    gates = scheme.gates(data, ENCODER)
    assert gates.shape == (pathways, 9)
    assert gates.dtype == np.float64
    assert set(np.unique(gates)) <= {0.0, 1.0}
    assert gates.any()
    np.testing.assert_array_equal(gates, scheme.gates(data, ENCODER))
    picture = scheme.picture(data, ENCODER)
    np.testing.assert_array_equal(picture.values, gates)
    assert (picture.rows, picture.columns) == ("pathway", "sample")


def test_always_on_is_one_open_pathway():
    assert (named(AlwaysOnSamples).gates(samples(1)) == 1).all()


def test_every_sample_opens_the_pathway_of_its_number():
    gates = named(PerExample).gates(samples(1, count=5))
    assert [list(np.flatnonzero(row)) for row in gates] == [[0], [1], [2], [3], [4]]


@given(pathways=unit, seed=seeds, inputs=unit, count=st.integers(1, 12))
@few
def test_half_spaces_are_separable_through_the_origin(pathways, seed, inputs, count):
    data = samples(seed, count, inputs)
    for gate in HalfSpace(name="half_space", pathways=pathways, seed=seed).gates(data):
        # a normal with sign * (normal . x) >= 1 on all samples exists
        constraints = -np.where(gate > 0, 1, -1)[:, None] * data.x
        solution = linprog(np.zeros(inputs), constraints, -np.ones(count), bounds=(None, None))
        assert solution.status == 0


@given(pathways=unit, seed=seeds)
@few
def test_half_spaces_are_frozen(pathways, seed):
    scheme, data = HalfSpace(name="half_space", pathways=pathways, seed=seed), samples(seed)
    gates = scheme.gates(data)
    opposite = Data(x=-3 * data.x[::2], y=data.y[::2])  # other samples, other lengths, other side
    np.testing.assert_array_equal(scheme.gates(opposite), 1 - gates[:, ::2])
    more = HalfSpace(name="half_space", pathways=pathways + 2, seed=seed).gates(data)
    np.testing.assert_array_equal(more[:pathways], gates)


def test_half_spaces_are_isotropic_and_differ_by_seed():
    data = samples(3, count=4)
    gates = [HalfSpace(name="half_space", pathways=1000, seed=s).gates(data) for s in (0, 1)]
    assert not np.array_equal(*gates)
    # two samples at an angle fall on different sides of a share angle/pi of all normals
    unit_x = data.x / np.linalg.norm(data.x, axis=1, keepdims=True)
    share = np.arccos(np.clip(unit_x @ unit_x.T, -1, 1))[np.triu_indices(4, 1)] / np.pi
    for each in gates:
        differ = (each[:, :, None] != each[:, None]).mean(axis=0)[np.triu_indices(4, 1)]
        assert (np.abs(differ - share) < 4.5 * np.sqrt(share * (1 - share) / 1000)).all()


@given(pathways=unit, seed=seeds, inputs=unit)
@few
def test_half_spaces_are_drawn_from_a_stream_of_their_name(pathways, seed, inputs):
    data = samples(seed, inputs=inputs)
    normals = generator(seed, "half-spaces").normal(size=(pathways, inputs))
    for scheme in (
        HalfSpace(name="half_space", pathways=pathways, seed=seed),
        HalfSpace(name="half_space", pathways=pathways, seed=seed, antipodal=False, copies=1),
    ):
        np.testing.assert_array_equal(scheme.normals(inputs), normals)
        np.testing.assert_array_equal(scheme.gates(data), half_spaces(data.x, normals))


def test_draws_of_half_spaces_do_not_change_between_versions():
    data = Data(x=np.eye(8), y=np.ones((8, 1)))  # signs of the normals
    gates = HalfSpace(name="half_space", pathways=3, seed=2).gates(data)
    stored = ["11101101", "01101000", "10001001"]
    assert ["".join(map(str, row)) for row in gates.astype(int)] == stored


@given(pathways=unit, seed=seeds, copies=st.integers(1, 3))
@few
def test_antipodal_half_spaces_are_complements(pathways, seed, copies):
    data = samples(seed)
    plain = HalfSpace(name="half_space", pathways=pathways, seed=seed).gates(data)
    both = named(HalfSpace, pathways=pathways, seed=seed, antipodal=True, copies=copies)
    gates = both.gates(data).reshape(pathways, 2, copies, 9)
    for gate, pair in zip(plain, gates, strict=True):
        np.testing.assert_array_equal(pair[0], [gate] * copies)
        np.testing.assert_array_equal(pair[1], [1 - gate] * copies)


def test_a_hyperplane_is_on_neither_side_of_it():
    normal = np.array([[1.0, -2.0]])
    x = np.array([[2.0, 1.0], [3.0, 1.0], [1.0, 1.0], [0.0, 0.0]])
    np.testing.assert_array_equal(half_spaces(x, normal), [[0, 1, 0, 0]])
    np.testing.assert_array_equal(half_spaces(x, -normal), [[0, 0, 1, 0]])
    origin = Data(x=np.zeros((1, 3)), y=np.zeros((1, 1)))
    assert not named(HalfSpace, pathways=4, antipodal=True).gates(origin).any()


@given(pathways=unit, seed=seeds, copies=st.integers(1, 4))
@few
def test_copies_are_neighbours_with_one_gate(pathways, seed, copies):
    data = samples(seed)
    plain = HalfSpace(name="half_space", pathways=pathways, seed=seed)
    gates = named(HalfSpace, pathways=pathways, seed=seed, copies=copies).gates(data)
    expected = [gate for gate in plain.gates(data) for _ in range(copies)]
    np.testing.assert_array_equal(gates, expected)


@given(seed=seeds, units=unit)
@few
def test_learned_gates_are_the_active_units_of_a_relu_layer(seed, units):
    data = samples(seed)
    encoder = np.random.default_rng(seed + 1).normal(size=(units, 3))
    hidden = np.maximum(data.x @ encoder.T, 0)
    gates = named(Learned).gates(data, encoder)
    np.testing.assert_array_equal(gates.T * (data.x @ encoder.T), hidden)
    np.testing.assert_array_equal(gates.T, hidden > 0)


def test_learned_gates_need_an_encoder():
    with pytest.raises(UserError, match="give the encoder"):
        named(Learned).gates(samples(0))


# Gates that depend on the context --------------------------------------------------------------


def in_contexts(labels, inputs=4, groups=(3, 1)):
    x = np.ones((len(labels), inputs))
    return Data(x=x, y=x, contexts=np.array(labels), input_groups=groups)


def open_contexts(gates, data):
    """Contexts that each pathway is open in; it must be open on all their samples."""
    subsets = [frozenset(data.contexts[row == 1]) for row in gates]
    for row, subset in zip(gates, subsets, strict=True):
        np.testing.assert_array_equal(row, [context in subset for context in data.contexts])
    return subsets


@given(data=st.data(), count=st.integers(1, 5), common=st.booleans())
@few
def test_every_choice_of_contexts_has_a_pathway(data, count, common):
    labels = data.draw(
        st.permutations([*range(count), *data.draw(st.lists(st.integers(0, count - 1)))])
    )
    open_in = data.draw(st.lists(st.integers(1, count), unique=True, max_size=3))
    samples = in_contexts(labels)
    scheme = named(Contexts, open_in=tuple(open_in), common=common)
    opened = open_contexts(scheme.gates(samples), samples)
    if common:
        assert opened.pop(0) == frozenset(range(count))
    # all subsets, from all strings of zeros and ones, by sizes in the order listed
    subsets = [frozenset(np.flatnonzero(bits)) for bits in product((0, 1), repeat=count)]
    assert [len(chosen) for chosen in opened] == [
        q for q in open_in for subset in subsets if len(subset) == q
    ]
    assert len(set(opened)) == len(opened)


@pytest.mark.parametrize("common", [True, False])
def test_context_pathways_receive_objects_alone(common):
    data = in_contexts([0, 1, 2])
    parameters = {"open_in": (2,), "common": common}
    visible = named(Contexts, **parameters).visible_inputs(data)
    if common:
        assert visible[0].all()
        visible = visible[1:]
    np.testing.assert_array_equal(visible, [[True, True, True, False]] * 3)
    everything = named(Contexts, shown="everything", **parameters).visible_inputs(
        in_contexts([0, 1, 2], groups=())
    )
    assert everything.shape == (3 + common, 4)
    assert everything.all()


def test_pathways_of_other_schemes_receive_all_inputs():
    for cls, (parameters, pathways) in SAMPLED.items():
        if cls not in (Contexts, Learned):
            visible = named(cls, **parameters).visible_inputs(samples(0))
            assert visible.shape == (pathways, 3)
            assert visible.all()


@pytest.mark.parametrize(
    ("parameters", "data", "key", "value"),
    [
        ({"open_in": (1,)}, Data(x=np.ones((2, 2)), y=np.ones((2, 1))), "name", "'contexts'"),
        ({"open_in": (2, 4)}, in_contexts([0, 1, 2, 0]), "open_in", "4"),
        ({"open_in": (1,)}, in_contexts([0, 1], groups=()), "shown", "'first_group'"),
    ],
    ids=["no contexts", "more than there are", "no groups"],
)
def test_contexts_that_the_dataset_lacks_are_refused(parameters, data, key, value):
    network = Gated(name="gated", hidden=(2,), gates=named(Contexts, **parameters))
    with pytest.raises(UserError) as error:
        network.wiring(data)
    assert (error.value.key, error.value.value) == (f"network.gates.{key}", value)


def test_listed_gates_are_one_value_per_sample_or_per_context():
    data = in_contexts([1, 0, 2, 0])
    rows = ((0.25, 0.5, 1.0), (0.0, 1.0, 0.125, 0.0))
    expected = [[0.5, 0.25, 1, 0.25], [0, 1, 0.125, 0]]
    np.testing.assert_array_equal(named(Listed, rows=rows).gates(data), expected)
    alone = Data(x=data.x, y=data.y)
    np.testing.assert_array_equal(named(Listed, rows=rows[1:]).gates(alone), expected[1:])


@pytest.mark.parametrize(
    ("contexts", "allowed"),
    [
        ([1, 0, 2, 0], "3 or 4, one for each context or sample"),
        (None, "4, one for each sample"),
    ],
    ids=["contexts", "samples"],
)
def test_listed_gates_of_another_length_are_refused(contexts, allowed):
    data = in_contexts([0] * 4)
    data = Data(x=data.x, y=data.y, contexts=None if contexts is None else np.array(contexts))
    scheme = named(Listed, rows=((1.0,) * 4, (1.0,) * 2))
    with pytest.raises(UserError, match="row 1 has 2 values") as error:
        scheme.gates(data)
    assert (error.value.key, error.value.remedy) == ("network.gates.rows", f"give {allowed}")


# Gates that depend on the domains --------------------------------------------------------------


@st.composite
def divided(draw):
    """A number of domains and a scheme that divides them."""
    domains = draw(st.integers(1, 12))
    divisors = [n for n in range(1, domains + 1) if domains % n == 0]
    scheme = draw(
        st.sampled_from(
            [
                named(AlwaysOnDomains),
                *(named(Groups, size=n) for n in divisors),
                named(Parallel, dedicated=draw(unit)),
            ]
        )
    )
    return domains, scheme


def test_every_domain_scheme_is_tested():
    assert set(DOMAIN_SCHEMES) == {AlwaysOnDomains, Groups, Parallel}


@given(drawn=divided(), hidden=st.lists(unit, min_size=1, max_size=3).map(tuple))
@few
def test_each_family_covers_every_pair_once(drawn, hidden):
    domains, scheme = drawn
    gates, families = scheme.gates(domains), scheme.families(domains, hidden)
    assert set(np.unique(gates)) <= {0.0, 1.0}
    np.testing.assert_array_equal(gates.sum(axis=0), len(families))
    start = 0
    for family in families:
        assert len(family.hidden) == len(hidden)
        count = (domains // family.size) ** 2
        blocks = gates[start : start + count]
        np.testing.assert_array_equal(blocks.sum(axis=0), 1)
        for block in blocks:  # each joins `size` inputs with `size` outputs, all with all
            ins, outs = block.any(axis=1), block.any(axis=0)
            assert ins.sum() == outs.sum() == family.size
            np.testing.assert_array_equal(block, np.outer(ins, outs))
        start += count
    assert start == len(gates)
    picture = scheme.picture(domains)
    for block, row in zip(gates, picture.values, strict=True):
        assert [tuple(pair) for pair in np.argwhere(block)] == [
            divmod(pair, domains) for pair in np.flatnonzero(row)
        ]
    assert (picture.rows, picture.columns) == ("pathway block", "pair of domains")


def test_groups_of_four_domains():
    gates = named(Groups, size=2).gates(4)
    number = np.einsum("bij,b->ij", gates, np.arange(1, 5))
    np.testing.assert_array_equal(number, [[1, 1, 2, 2], [1, 1, 2, 2], [3, 3, 4, 4], [3, 3, 4, 4]])


@given(domains=unit, dedicated=unit, hidden=st.lists(unit, min_size=1, max_size=3).map(tuple))
@few
def test_parallel_is_a_shared_block_and_dedicated_pathways(domains, dedicated, hidden):
    scheme = named(Parallel, dedicated=dedicated)
    shared, single = named(AlwaysOnDomains), named(Groups, size=1)
    np.testing.assert_array_equal(
        scheme.gates(domains), np.concatenate([shared.gates(domains), single.gates(domains)])
    )
    assert scheme.families(domains, hidden) == (
        Family(domains, hidden),
        Family(1, (dedicated,) * len(hidden)),
    )
    assert shared.families(domains, hidden) == (Family(domains, hidden),)
    assert single.families(domains, hidden) == (Family(1, hidden),)


@given(domains=unit, size=st.integers(2, 12))
@few
def test_groups_that_do_not_divide_are_refused_with_those_that_do(domains, size):
    network = Routing(
        name="routing",
        hidden=(3,),
        gates=Groups(name="groups", size=size),
        pairs=AllPairs(name="all"),
    )
    if domains % size == 0:
        assert network.families(domains) == (Family(size, (3,)),)
        return
    for refused in (network.families, network.gates.gates):
        with pytest.raises(UserError, match=f"{domains} domains do not divide") as error:
            refused(domains)
        assert (error.value.key, error.value.value) == ("network.gates.size", str(size))
        divisors = {int(number) for number in re.findall(r"\d+", error.value.remedy)}
        assert divisors == {n for n in range(1, domains + 1) if (domains / n).is_integer()}
