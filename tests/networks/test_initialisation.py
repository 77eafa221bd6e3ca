"""Initialisers have the properties that their docstrings state."""

import json
from functools import reduce
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from neuralrace.config.cell import INITIALISERS
from neuralrace.datasets import Data
from neuralrace.datasets.modes import PrescribedModes
from neuralrace.errors import UserError
from neuralrace.networks.gates.architecture import Architecture
from neuralrace.networks.gates.effective import EffectiveData, effective_data
from neuralrace.networks.initial_weights import initial_edges, initial_weights
from neuralrace.networks.initialisers.aligned import Aligned
from neuralrace.networks.initialisers.base import EdgeInitialiser
from neuralrace.networks.initialisers.decoupled import Decoupled
from neuralrace.networks.initialisers.glorot import Glorot
from neuralrace.networks.initialisers.lambda_balanced import LambdaBalanced
from neuralrace.networks.initialisers.normal import Normal
from neuralrace.networks.initialisers.orthogonal import Orthogonal
from neuralrace.networks.initialisers.scaled import Scaled
from neuralrace.networks.initialisers.tied import Tied
from neuralrace.networks.initialisers.uniform import Uniform
from neuralrace.networks.initialisers.zero_balanced import ZeroBalanced
from neuralrace.testing.cells import DRAWN, example_of

WIDTHS = (5, 7, 4)
few = settings(max_examples=25)
unit = st.integers(1, 6)


def task(inputs, outputs, singular_values=(3.0,), basis="random", seed=0):
    return PrescribedModes(
        name="modes",
        singular_values=singular_values,
        inputs=inputs,
        outputs=outputs,
        basis=basis,
        seed=seed,
    ).load()


MODES = task(5, 4, (3.0, -2.0, 1.0)).modes


def product(weights):
    return reduce(lambda below, above: above @ below, weights)


def initialiser_of(cls):
    return cls.model_validate_json(json.dumps(example_of(cls)))


@pytest.fixture(params=DRAWN.values(), ids=DRAWN)
def initialiser(request):
    return initialiser_of(request.param)


# All initialisers ------------------------------------------------------------------------------


@given(data=st.data())
@few
def test_shapes_and_scale(data):
    initialiser = initialiser_of(data.draw(st.sampled_from([*DRAWN.values()])))
    inputs, outputs = data.draw(unit), data.draw(unit)
    hidden = data.draw(st.lists(unit, max_size=3))
    if isinstance(initialiser, Decoupled | LambdaBalanced | Scaled | Tied):
        hidden = [min(inputs, outputs) + data.draw(unit)]
    widths = (inputs, *hidden, outputs)
    scale, seeds = data.draw(st.floats(1e-3, 1e3)), range(data.draw(unit))
    weights = initial_weights(initialiser, widths, task(inputs, outputs).modes, (1.0, scale), seeds)
    assert [w.shape for w in weights] == [
        (2, len(seeds), n_out, n_in) for n_in, n_out in pairwise(widths)
    ]
    for w in weights:
        assert w.dtype == np.float64
        np.testing.assert_allclose(w[1], scale * w[0], rtol=1e-15)


def test_draws_are_paired_by_seed(initialiser):
    weights = initial_weights(initialiser, WIDTHS, MODES, (1.0,), (0, 1))
    alone = initial_weights(initialiser, WIDTHS, MODES, (1.0, 2.0), (1,))
    differ = []
    for both, one in zip(weights, alone, strict=True):
        np.testing.assert_array_equal(both[0, 1], one[0, 0])
        differ.append(not np.array_equal(both[0, 0], both[0, 1]))
    assert any(differ)


# One initialiser -------------------------------------------------------------------------------


def test_layers_keep_their_draws_when_others_are_added():
    shallow = Normal(name="normal").draw(3, (5, 4, 2), MODES)
    deep = Normal(name="normal").draw(3, (5, 4, 2, 6), MODES)
    for one, other in zip(shallow, deep, strict=False):
        np.testing.assert_array_equal(one, other)


def test_normal_in_the_mode_basis_is_equivariant():
    initialiser = Normal(name="normal", basis="modes")
    rotated = initialiser.draw(0, WIDTHS, MODES)
    plain = Normal(name="normal").draw(0, WIDTHS, MODES)
    np.testing.assert_allclose(rotated[0] @ MODES.input_basis, plain[0], atol=1e-13)
    np.testing.assert_allclose(MODES.output_basis.T @ rotated[-1], plain[-1], atol=1e-13)
    # a deep network moves its outer layers only, a single layer is rotated on both sides
    deep, deep_plain = (
        each.draw(0, (5, 3, 6, 4), MODES) for each in (initialiser, Normal(name="normal"))
    )
    np.testing.assert_array_equal(deep[1], deep_plain[1])
    (single,), (single_plain,) = (
        each.draw(0, (5, 4), MODES) for each in (initialiser, Normal(name="normal"))
    )
    np.testing.assert_allclose(
        MODES.output_basis.T @ single @ MODES.input_basis, single_plain, atol=1e-13
    )


def test_uniform_entries_fill_their_range():
    (w,) = Uniform(name="uniform").draw(0, (100, 100), task(100, 100).modes)
    assert stats.kstest(w.ravel(), stats.uniform(-(3**0.5), 2 * 3**0.5).cdf).pvalue > 0.01


@pytest.mark.parametrize(
    ("initialiser", "variances"),
    [
        (Normal(name="normal"), (1, 1)),
        (Glorot(name="glorot"), (2 / 110, 2 / 90)),
        (Glorot(name="glorot", variance="product"), (1 / 2800, 1 / 1400)),
        (Glorot(name="glorot", distribution="uniform"), (2 / 110, 2 / 90)),
        (Glorot(name="glorot", distribution="truncated"), (2 / 110, 2 / 90)),
        (Glorot(name="glorot", distribution="truncated", variance="product"), (1 / 2800, 1 / 1400)),
        (Uniform(name="uniform"), (1, 1)),
    ],
    ids=[
        "normal",
        "glorot standard",
        "glorot product",
        "glorot uniform",
        "glorot truncated",
        "glorot truncated product",
        "uniform",
    ],
)
def test_entry_variance(initialiser, variances):
    for w, variance in zip(initialiser.draw(0, (40, 70, 20), MODES), variances, strict=True):
        # 4.5 standard errors of mean and variance of as many normal draws
        assert abs(w.mean()) < 4.5 * np.sqrt(variance / w.size)
        assert abs(w.var() / variance - 1) < 4.5 * np.sqrt(2 / w.size)


def test_glorot_has_the_directions_of_normal():
    for variance in ("standard", "product"):
        glorot = Glorot(name="glorot", variance=variance).draw(2, WIDTHS, MODES)
        for one, other in zip(glorot, Normal(name="normal").draw(2, WIDTHS, MODES), strict=True):
            ratio = one / other
            np.testing.assert_allclose(ratio, ratio[0, 0], rtol=1e-12)


@pytest.mark.parametrize(
    ("distribution", "law"),
    [
        # eq. 16 of Glorot and Bengio: uniform on sqrt(6/(n_in + n_out)), here with 100 and 100
        ("uniform", stats.uniform(-(0.03**0.5), 2 * 0.03**0.5)),
        ("truncated", stats.truncnorm(-2, 2, scale=0.1 / stats.truncnorm(-2, 2).std())),
    ],
)
def test_glorot_entries_have_the_distribution_of_scipy(distribution, law):
    initialiser = Glorot(name="glorot", distribution=distribution)
    (w,) = initialiser.draw(0, (100, 100), task(100, 100).modes)
    assert stats.kstest(w.ravel(), law.cdf).pvalue > 0.01
    assert np.abs(w).max() <= law.support()[1]


def test_truncated_glorot_has_the_convention_of_flax():
    """The bound of the entries, which fixes the standard deviation before truncation."""
    with jax.enable_x64(True):
        draw = nnx.initializers.glorot_normal()(jax.random.key(0), (300, 100), jnp.float64)
    (w,) = Glorot(name="glorot", distribution="truncated").draw(0, (300, 100), MODES)
    bound = 2 * np.sqrt(2 / 400) / 0.87962566103423978  # as variance_scaling of JAX has it
    for entries in (np.asarray(draw), w):
        # the largest of 30000 entries: as near to the bound as 1 of 1000 draws is not
        assert 0.997 * bound < np.abs(entries).max() <= bound * (1 + 1e-15)


def test_orthogonal_layers():
    initialiser = Orthogonal(name="orthogonal")
    for w in initialiser.draw(0, (5, 7, 4, 4), MODES):
        np.testing.assert_allclose(np.linalg.svd(w, compute_uv=False), 1, rtol=1e-12)
    # Haar measure has mean 0 and mean square 1/n, which a bare QR decomposition misses; 4.5 errors
    corners = np.array([initialiser.draw(seed, (3, 3), MODES)[0] for seed in range(600)])
    assert np.abs(corners.mean(axis=0)).max() < 4.5 / np.sqrt(3 * 600)
    error = np.std(corners**2, axis=0) / np.sqrt(600)
    assert (np.abs((corners**2).mean(axis=0) - 1 / 3) < 4.5 * error).all()


@given(widths=st.lists(unit, min_size=3, max_size=5), imbalance=st.floats(0.2, 2), seed=unit)
@few
def test_zero_balanced(widths, imbalance, seed):
    def imbalances(weights):
        return [above.T @ above - below @ below.T for below, above in pairwise(weights)]

    modes = task(widths[0], widths[-1]).modes
    balanced = ZeroBalanced(name="zero_balanced").draw(seed, tuple(widths), modes)
    skewed = ZeroBalanced(name="zero_balanced", imbalance=imbalance).draw(
        seed, tuple(widths), modes
    )
    for c in imbalances(balanced):
        np.testing.assert_allclose(c, 0, atol=1e-12)
    strengths = np.linalg.svd(balanced[0], compute_uv=False)[: min(widths)]
    assert ((strengths > 0.5) & (strengths < 1.5)).all()
    np.testing.assert_allclose(product(skewed), product(balanced), atol=1e-11)
    violated = [np.linalg.norm(c) > 0.01 for c in imbalances(skewed)]
    # only the outermost layers are rescaled
    assert violated == [index in (0, len(widths) - 3) for index in range(len(widths) - 2)]
    log_ratio = np.log(np.linalg.norm(skewed[-1]) / np.linalg.norm(skewed[0]))
    np.testing.assert_allclose(log_ratio, imbalance, rtol=1e-9, atol=1e-9)


@given(hidden=st.lists(unit, max_size=3), seed=unit)
@few
def test_aligned_starts_decoupled(hidden, seed):
    strengths = tuple(0.5 + 0.25 * layer for layer in range(len(hidden) + 1))
    initialiser = Aligned(name="aligned", layer_strengths=strengths)
    weights = initialiser.draw(seed, (5, *hidden, 4), MODES)
    rank = min(hidden, default=4)
    between = MODES.u.T @ product(weights) @ MODES.v
    carried = np.prod(strengths) * np.array([1, -1, 1, 1])
    carried[rank:] = 0
    np.testing.assert_allclose(between, np.diag(carried), atol=1e-12)
    for w, strength in zip(weights, strengths, strict=True):
        values = np.linalg.svd(w, compute_uv=False)
        np.testing.assert_allclose(values[: min(rank, 4)], strength, rtol=1e-12)
        np.testing.assert_allclose(values[min(rank, 4) :], 0, atol=1e-12)


def test_aligned_layers_have_strength_one_by_default():
    for w in Aligned(name="aligned").draw(0, WIDTHS, MODES):
        np.testing.assert_allclose(np.linalg.svd(w, compute_uv=False)[:4], 1, rtol=1e-12)


def test_decoupled_modes_share_nothing():
    first, second = Decoupled(name="decoupled").draw(0, (5, 10, 4), MODES)
    encoder, decoder = first @ MODES.v, second.T @ MODES.u
    vectors = np.concatenate([encoder, decoder], axis=1)
    gram = vectors.T @ vectors
    within = np.tile(np.eye(4, dtype=bool), (2, 2))
    np.testing.assert_allclose(gram[~within], 0, atol=1e-12)
    assert (np.abs(gram[within]) > 1e-3).all()
    # neither balanced nor aligned
    assert np.abs(np.diag(encoder.T @ encoder - decoder.T @ decoder)).min() > 1e-2
    cosines = np.sum(encoder * decoder, axis=0)
    cosines /= np.linalg.norm(encoder, axis=0) * np.linalg.norm(decoder, axis=0)
    assert np.abs(cosines).max() < 0.999


def test_tied_encoder_and_decoder_are_equal():
    first, second = Tied(name="tied").draw(0, WIDTHS, MODES)
    np.testing.assert_allclose(first @ MODES.v, second.T @ MODES.u, atol=1e-13)
    between = MODES.u.T @ second @ first @ MODES.v
    np.testing.assert_allclose(between, between.T, atol=1e-13)
    assert np.linalg.eigvalsh(between).min() > 1e-3  # seven units for four modes: full rank
    assert np.abs(between - np.diag(np.diag(between))).max() > 1e-2


@pytest.mark.parametrize(
    ("initialiser", "widths", "key", "problem"),
    [
        (
            Aligned(name="aligned", layer_strengths=(1.0,)),
            WIDTHS,
            "init.layer_strengths",
            "1 entries for 2 layers",
        ),
        (Decoupled(name="decoupled"), (5, 3, 4), "init.name", r"at least 4 units.*\[3\]"),
        (Decoupled(name="decoupled"), (5, 6, 6, 4), "init.name", r"one hidden layer.*\[6, 6\]"),
        (Tied(name="tied"), (5, 4), "init.name", "one hidden layer, and the network has 0"),
    ],
    ids=["strengths", "too few units", "too deep", "too shallow"],
)
def test_initialiser_that_does_not_fit_the_widths_is_refused(initialiser, widths, key, problem):
    with pytest.raises(UserError, match=problem) as error:
        initial_weights(initialiser, widths, MODES, (1.0,), (0,))
    assert error.value.key == key


# Graphs ----------------------------------------------------------------------------------------

GRAPH = Architecture(
    nodes={"a": 3, "b": 4, "h": 6, "k": 5, "y": 3, "z": 4},
    edges=(("a", "h"), ("b", "h"), ("h", "k"), ("k", "y"), ("k", "z"), ("a", "k"), ("h", "y")),
)
LEVELS = (0, 0, 1, 2, 2, 0, 1)
"""Longest distance of each edge from the inputs."""
NARROW = Architecture(nodes=GRAPH.nodes | {"k": 2}, edges=GRAPH.edges)
EDGE_INITIALISERS = tuple(cls for cls in INITIALISERS if issubclass(cls, EdgeInitialiser))


def unused():
    raise AssertionError("this initialiser does not depend on the task")


def boundary(graph, rank=3):
    """Orthonormal vectors at every input and output node."""
    rng = np.random.default_rng(0)
    return {
        name: np.linalg.qr(rng.normal(size=(graph.nodes[name], rank)))[0]
        for name in (*graph.inputs, *graph.outputs)
    }


def effective_of(bases, graph=GRAPH):
    """Effective datasets that are diagonal in these bases, with modes of distinct strengths."""
    pathways = graph.pathways
    rng = np.random.default_rng(1)
    strengths = np.array([3.0, 2.0, 1.0])[: len(next(iter(bases.values())).T)]
    return EffectiveData(
        architecture=graph,
        sigma_yx=tuple(
            bases[p.target] * strengths * rng.uniform(0.9, 1.1) @ bases[p.source].T
            for p in pathways
        ),
        sigma_xx={
            (j, p): rng.uniform(0.9, 1.1) * bases[pathways[j].source] @ bases[pathways[p].source].T
            for j in range(len(pathways))
            for p in range(len(pathways))
            if pathways[j].target == pathways[p].target
        },
        y_power=1.0,
    )


def test_initialisers_that_need_shapes_only():
    assert set(EDGE_INITIALISERS) == {Glorot, Normal, Orthogonal, Uniform}


@pytest.mark.parametrize("cls", EDGE_INITIALISERS)
@given(seed=unit, scale=st.floats(1e-3, 1e3))
@few
def test_edges_are_drawn_by_name_and_shape(cls, seed, scale):
    initialiser = initialiser_of(cls)
    weights = initial_edges(initialiser, GRAPH, unused, (1.0, scale), (0, seed))
    assert [w.shape for w in weights] == [
        (2, 2, GRAPH.nodes[target], GRAPH.nodes[source]) for source, target in GRAPH.edges
    ]
    smaller = Architecture(
        nodes={"y": 3, "h": 6, "k": 5}, edges=(("k", "y"), ("h", "y"))
    )  # the same edges elsewhere
    alone = dict(
        zip(
            smaller.edges, initial_edges(initialiser, smaller, unused, (1.0,), (seed,)), strict=True
        )
    )
    for edge, w in zip(GRAPH.edges, weights, strict=True):
        assert w.dtype == np.float64
        np.testing.assert_allclose(w[1], scale * w[0], rtol=1e-15)
        assert not np.array_equal(w[0, 0], w[0, 1])
        if edge in alone:
            np.testing.assert_array_equal(alone[edge][0, 0], w[0, 1])


@given(seed=unit, data=st.data())
@few
def test_weights_from_invisible_inputs_are_zero(seed, data):
    initialiser = initialiser_of(data.draw(st.sampled_from(EDGE_INITIALISERS)))
    named = {
        GRAPH.edge_name(edge): GRAPH.nodes[source] for edge, (source, _) in enumerate(GRAPH.edges)
    }
    visible_inputs = {
        name: np.array(data.draw(st.lists(st.booleans(), min_size=units, max_size=units)))
        for name, units in named.items()
        if data.draw(st.booleans())
    }
    plain = initial_edges(initialiser, GRAPH, unused, (1.0, 2.0), (0, seed))
    masked = initial_edges(initialiser, GRAPH, unused, (1.0, 2.0), (0, seed), visible_inputs)
    for name, before, after in zip(named, plain, masked, strict=True):
        visible = visible_inputs.get(name, np.ones(named[name], dtype=bool))
        np.testing.assert_array_equal(after[..., visible], before[..., visible])
        assert not after[..., ~visible].any()


@pytest.mark.parametrize(
    ("initialiser", "variances"),
    [
        (Normal(name="normal"), (1, 1)),
        (Glorot(name="glorot"), (2 / 110, 2 / 90)),
        (Glorot(name="glorot", variance="product"), (1 / 2800, 1 / 1400)),
    ],
    ids=["normal", "glorot standard", "glorot product"],
)
def test_variance_of_edges_goes_by_the_nodes_that_they_join(initialiser, variances):
    graph = Architecture(nodes={"y": 20, "h": 70, "x": 40}, edges=(("x", "h"), ("h", "y")))
    for w, variance in zip(initialiser.draw_edges(0, graph, unused), variances, strict=True):
        assert abs(w.mean()) < 4.5 * np.sqrt(variance / w.size)
        assert abs(w.var() / variance - 1) < 4.5 * np.sqrt(2 / w.size)


def test_orthogonal_edges():
    for w in Orthogonal(name="orthogonal").draw_edges(1, GRAPH, unused):
        np.testing.assert_allclose(np.linalg.svd(w, compute_uv=False), 1, rtol=1e-12)


@pytest.mark.parametrize("strengths", [None, (0.5, 2.0, 3.0)])
def test_aligned_edges_carry_each_mode_alone(strengths):
    bases = boundary(GRAPH)
    effective = effective_of(bases)
    initialiser = Aligned(name="aligned", layer_strengths=strengths)
    weights = initialiser.draw_edges(2, GRAPH, lambda _: effective)
    carried = strengths or (1.0, 1.0, 1.0)
    for pathway in GRAPH.pathways:
        total = product([weights[edge] for edge in pathway.edges])
        strength = np.prod([carried[LEVELS[edge]] for edge in pathway.edges])
        expected = strength * bases[pathway.target] @ bases[pathway.source].T
        np.testing.assert_allclose(total, expected, atol=1e-12)
    # W_e = strength R_target R_source^T, with one orthonormal R for each node
    for edge, w in enumerate(weights):
        values = np.linalg.svd(w, compute_uv=False)
        np.testing.assert_allclose(values[:3], carried[LEVELS[edge]], rtol=1e-12)
        np.testing.assert_allclose(values[3:], 0, atol=1e-12)
    other = initialiser.draw_edges(3, GRAPH, lambda _: effective)
    for w, w_other in zip(weights, other, strict=True):  # hidden bases are random
        assert not np.allclose(w, w_other)


def test_aligned_edges_of_one_pathway_carry_its_singular_vectors():
    rng = np.random.default_rng(4)
    white, _ = np.linalg.qr(rng.normal(size=(8, 5)))
    data = Data(x=white, y=rng.normal(size=(8, 4)))
    graph = Architecture(nodes={"x": 5, "h": 6, "y": 4}, edges=(("x", "h"), ("h", "y")))
    effective = effective_data(graph, np.ones((1, 8)), data)
    initialiser = Aligned(name="aligned", layer_strengths=(2.0, 3.0))
    first, second = initial_edges(initialiser, graph, lambda _: effective, (0.5,), (0,))
    u, _, vt = np.linalg.svd(data.sigma_yx, full_matrices=False)
    rotated = u.T @ second[0, 0] @ first[0, 0] @ vt.T
    np.testing.assert_allclose(rotated, (0.5 * 2) * (0.5 * 3) * np.eye(4), atol=1e-10)


@pytest.mark.parametrize(
    ("initialiser", "graph", "key", "problem"),
    [
        (
            Aligned(name="aligned", layer_strengths=(1.0, 2.0)),
            GRAPH,
            "init.layer_strengths",
            "2 entries for 3 layers of weights",
        ),
        (Aligned(name="aligned"), NARROW, "init.name", "'k' has fewer units than there are modes"),
        (Normal(name="normal", basis="modes"), GRAPH, "init.basis", "is for layered networks"),
        *(
            (initialiser_of(cls), GRAPH, "init.name", "is for layered networks")
            for cls in (Decoupled, Tied, ZeroBalanced)
        ),
    ],
    ids=["strengths", "too few units", "mode basis", "decoupled", "tied", "zero balanced"],
)
def test_initialiser_that_does_not_fit_the_graph_is_refused(initialiser, graph, key, problem):
    effective = effective_of(boundary(graph), graph)
    with pytest.raises(UserError, match=problem) as error:
        initial_edges(initialiser, graph, lambda _: effective, (1.0,), (0,))
    assert error.value.key == key


# Lambda-balanced -------------------------------------------------------------------------------


@given(widths=st.tuples(unit, unit, unit), lambda_=st.floats(-3, 3), scale=st.floats(0.1, 2))
@few
def test_lambda_is_the_imbalance_of_every_hidden_direction(widths, lambda_, scale):
    inputs, hidden, outputs = widths
    initialiser = LambdaBalanced(name="lambda_balanced", lambda_=lambda_)
    possible = hidden <= outputs if lambda_ > 0 else hidden <= inputs
    if lambda_ and not possible:
        with pytest.raises(UserError, match="use fewer hidden units") as error:
            initialiser.draw(0, widths, MODES)
        assert error.value.key == "init.lambda_"
        return
    w1, w2 = initial_weights(initialiser, widths, MODES, (scale,), range(2))
    difference = w2.mT @ w2 - w1 @ w1.mT
    expected = np.broadcast_to(lambda_ * scale**2 * np.eye(hidden), difference.shape)
    np.testing.assert_allclose(difference, expected, rtol=0, atol=1e-12)
    # the smaller layer has strengths of the init scale, in as many directions as fit
    smaller = w1 if lambda_ > 0 else w2
    values = np.linalg.svd(smaller, compute_uv=False)[..., : min(widths)] / scale
    assert ((values > 0.5 - 1e-9) & (values < 1.5 + 1e-9)).all()


def test_without_lambda_the_start_is_zero_balanced():
    for widths in [(5, 3, 4), (3, 6, 2)]:
        weights = LambdaBalanced(name="lambda_balanced").draw(3, widths, MODES)
        expected = ZeroBalanced(name="zero_balanced").draw(3, widths, MODES)
        for w, same in zip(weights, expected, strict=True):
            np.testing.assert_allclose(w, same, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("widths", [(3, 2), (3, 2, 2, 2)])
def test_lambda_is_of_two_layers(widths):
    with pytest.raises(UserError, match="needs one hidden layer"):
        LambdaBalanced(name="lambda_balanced").draw(0, widths, MODES)
