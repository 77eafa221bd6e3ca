"""Training of routing networks in the subspace of their hidden units, against all units."""

from functools import reduce

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import LINEAR, build_cell
from neuralrace.config.cost import estimate_cost
from neuralrace.config.requirements import unmet
from neuralrace.datasets import Domains
from neuralrace.extensions.registry import OBSERVABLES
from neuralrace.networks.initialisers.base import orthonormal
from neuralrace.networks.subspace import narrow
from neuralrace.networks.tasks.domains import RoutingTask
from neuralrace.results.trajectory import trajectory_dataset
from neuralrace.training.trainer import Trainer

ORTHOGONAL, NORMAL = {"name": "orthogonal"}, {"name": "normal"}
MOMENTUM = {"name": "momentum", "momentum": 0.8}
NETWORK = {
    "name": "routing",
    "hidden": [12, 12],
    "gates": {"name": "groups", "size": 1},
    "pairs": {"name": "random_regular", "partners": 2},
}
PAIRS, PARALLEL = {"name": "groups", "size": 2}, {"name": "parallel", "dedicated": 12}
CASES = {
    "groups of 1": ({}, ORTHOGONAL, {"name": "sgd"}, [5]),
    "groups of 2": ({"gates": PAIRS}, ORTHOGONAL, MOMENTUM, [10]),
    "three layers": ({"hidden": [12] * 3}, ORTHOGONAL, {"name": "sgd"}, [5]),
    "families of two sizes": ({"gates": PARALLEL}, ORTHOGONAL, MOMENTUM, [12, 5]),
    "one layer": ({"hidden": [12]}, NORMAL, {"name": "sgd"}, [5]),
}
"""Network, start, optimiser, and trained units of a block by family; 12 is all."""


def run_of(make_run, network, init, optimiser):
    parts = {
        "dataset": {"name": "routing", "count": 4},
        "network": NETWORK | network,
        "init": init,
        "init_scales": [0.6, 0.9],
        "training": {
            "learning_rate": 0.05 if optimiser == MOMENTUM else 0.2,
            "steps": 120,
            "optimiser": optimiser,
        },
    }
    bare = make_run(**parts, record={"every": 10})
    names = [n for n, e in OBSERVABLES.items() if not unmet(bare, e.declaration.requires)]
    return make_run(**parts, record={"every": 10, "snapshots": 3, "observables": names})


def task_of(ensemble):
    """The task between domains of two inputs and three outputs."""
    rng = np.random.default_rng(8)
    domains = Domains(inputs=rng.normal(size=(4, 5, 2)), targets=rng.normal(size=(4, 5, 3)))
    return RoutingTask(ensemble.network, domains, ensemble.init, ensemble.training)


def slopes(view):
    """The gradient of the first block, and one imbalance that is made from it."""
    gradient = view.gradient()
    return {
        **{f"slope {n}": weight for n, weight in enumerate(gradient.weights)},
        "slope between layers": gradient.junctions[0][1][0],
    }


def trained(ensemble, task):
    with jax.enable_x64(True):
        trainer = Trainer(ensemble, task=task)
        trainer.observables.append(slopes)
        return trainer.train()


@pytest.mark.parametrize("case", CASES)
def test_all_records_equal_those_of_all_units(make_run, case):
    network, init, optimiser, units = CASES[case]
    ensemble = run_of(make_run, network, init, optimiser)
    narrow_task, wide_task = task_of(ensemble), task_of(ensemble)
    wide_task.narrowed = [False for _ in units]
    for task, widths in ((narrow_task, units), (wide_task, [12 for _ in units])):
        families, _ = task.weights((1.0,), (0,))
        assert [encoder.shape[-2] for encoder, *_ in families] == widths
    one, other = (trained(ensemble, task) for task in (narrow_task, wide_task))
    assert one.variables.keys() == other.variables.keys()
    assert set(one.variables) > {"singular_values", "imbalance_drift", "slope 0", "pair_outputs"}
    assert (other.variables["loss"][..., -1] < 0.9 * other.variables["loss"][..., 0]).all()
    np.testing.assert_array_equal(one.diverged_at, -1)
    for name, values in other.variables.items():
        scale = np.nanmax(np.abs(values), initial=1.0)
        np.testing.assert_allclose(
            one.variables[name], values, rtol=0, atol=1e-9 * scale, err_msg=name
        )


@pytest.mark.parametrize(
    ("network", "init", "optimiser"),
    [
        ({}, NORMAL, {"name": "sgd"}),
        ({}, {"name": "glorot"}, {"name": "sgd"}),
        ({}, {"name": "aligned"}, {"name": "sgd"}),
        ({}, ORTHOGONAL, {"name": "adam"}),
        ({"hidden": [12]}, NORMAL, {"name": "adam"}),
        ({"hidden": [12, 11]}, ORTHOGONAL, {"name": "sgd"}),
        ({"hidden": [5, 5]}, ORTHOGONAL, {"name": "sgd"}),
        ({"hidden": [3]}, NORMAL, {"name": "sgd"}),
    ],
)
def test_all_units_are_trained_where_descent_leaves_the_subspace_or_fills_it(
    make_run, network, init, optimiser
):
    task = task_of(run_of(make_run, network, init, optimiser))
    ((encoder, *_),), subspace = task.weights((1.0,), (0,))
    assert encoder.shape[-2] == (NETWORK | network)["hidden"][0]
    assert subspace == []
    assert task.trained_width == "all units"


def test_result_file_states_the_subspace(make_run):
    ensemble = make_run(
        dataset={"name": "routing", "count": 2},
        network=NETWORK,
        init=ORTHOGONAL,
        training={"learning_rate": 0.01, "steps": 2},
        record={"every": 1},
    )
    with jax.enable_x64(True):
        trajectory = Trainer(ensemble).train()
    attributes = trajectory_dataset("paper/experiment/main", ensemble, trajectory).attrs
    assert attributes["trained_width"] == (
        "a subspace that gradient descent never leaves: 11 of 12 units of blocks of size 1"
    )


def test_estimated_cost_is_that_of_the_trained_width():
    spec = LINEAR | {
        "dataset": {"name": "routing", "count": 4},
        "network": NETWORK | {"hidden": [200, 200]},
        "seeds": 50,
        "training": {"learning_rate": 0.02, "steps": 1000},
    }
    within, all_units = (
        estimate_cost(build_cell(spec, init=init)) for init in (ORTHOGONAL, NORMAL)
    )
    assert within.train < 0.1 * all_units.train
    at_width = estimate_cost(build_cell(spec, init=NORMAL, network=NETWORK | {"hidden": [11, 11]}))
    assert within.train == pytest.approx(at_width.train)


@given(
    domains=st.integers(1, 3),
    inputs=st.integers(1, 3),
    outputs=st.integers(1, 3),
    more=st.integers(1, 4),
    scales=st.lists(st.floats(0.1, 1.5), min_size=0, max_size=3),
    seed=st.integers(0, 99),
)
def test_descent_of_a_block_is_that_of_its_narrow_block(
    domains, inputs, outputs, more, scales, seed
):
    """Gradient descent in NumPy, with all domains of a block in one encoder and decoder."""
    rng = np.random.default_rng(seed)
    units = domains * (inputs + outputs) + more
    encoder = rng.normal(size=(domains, units, inputs)) / units
    decoder = rng.normal(size=(domains, outputs, units)) / units
    hidden = [scale * orthonormal(rng, units, units) for scale in scales]
    target = rng.normal(size=(domains * outputs, domains * inputs))
    inside = narrow([encoder, *hidden, decoder])
    assert inside.bases[0].shape == (units, units - more)
    small, wide = (
        descended(chain_of(*weights), target)
        for weights in (inside.weights, [encoder, *hidden, decoder])
    )
    bases = [None, *inside.bases, None]
    outside = [0, *inside.outside, 0]
    for small_matrix, matrix, below, above, rest in zip(
        small, wide, bases, bases[1:], outside, strict=False
    ):
        across = small_matrix if below is None else small_matrix @ below.T
        widened = rest + (across if above is None else above @ across)
        np.testing.assert_allclose(widened, matrix, atol=1e-10)
    assert not np.allclose(wide[0], chain_of(encoder)[0], atol=1e-6)


def chain_of(encoder, *others):
    """Matrices of a block, with domains side by side."""
    matrices = [np.concatenate(list(encoder), axis=1), *others]
    return [*matrices[:-1], np.concatenate(list(others[-1]))] if others else matrices


def descended(chain, target):
    """Weights after a few steps on half the squared distance between map and target."""

    def product(matrices, units):
        return reduce(lambda below, above: above @ below, matrices, np.eye(units))

    for _ in range(5):
        error = product(chain, chain[0].shape[1]) - target
        gradients = [
            product(chain[n + 1 :], len(chain[n])).T
            @ error
            @ product(chain[:n], chain[0].shape[1]).T
            for n in range(len(chain))
        ]
        chain = [matrix - 0.05 * slope for matrix, slope in zip(chain, gradients, strict=True)]
    return chain


def test_narrow_blocks_have_the_maps_of_the_wide_ones(make_run):
    task = task_of(run_of(make_run, {"gates": PAIRS}, ORTHOGONAL, MOMENTUM))
    weights = task.weights((0.4, 0.8), (0, 3))
    task.narrowed = [False]
    wide = task.weights((0.4, 0.8), (0, 3))
    with jax.enable_x64(True):
        for scale in (0, 1):
            maps, expected = (
                task.network(
                    jax.tree.map(lambda w, scale=scale: jnp.asarray(w[scale, 1]), each)
                ).maps()
                for each in (weights, wide)
            )
            np.testing.assert_allclose(maps, expected, atol=1e-13)
