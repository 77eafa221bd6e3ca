"""Metrics of ReLU networks against sums over units and samples, and curves in closed form."""

import re
from itertools import product
from math import comb

import numpy as np
import pytest
import xarray as xr
from cells import complete, made, tabulated
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from neuralrace.config.cell import Ensemble
from neuralrace.metrics.gates.pathway_correlations import commutator
from neuralrace.metrics.measure import metrics_dataset
from neuralrace.results.axes import axes, provenance_attributes
from neuralrace.results.schema import build
from neuralrace.results.trajectory import trajectory_dataset
from neuralrace.theory.contextual import head_start, staged_loss
from neuralrace.training.trainer import train

few = settings(max_examples=20)
SPEC = {
    "dataset": {"name": "xor", "margin": 0.75},
    "network": {"name": "layered", "hidden": [6], "activation": "relu"},
    "init": {"name": "normal"},
    "init_scales": [0.01, 0.1],
    "seeds": 3,
    "training": {"learning_rate": 0.01, "steps": 4000},
    "record": {"every": 10, "snapshots": 2},
}


def make_cell(*metrics, **parts):
    return complete(SPEC | {"metrics": metrics} | parts)


def clock(cell):
    """Flow time of the entries of the time axis."""
    steps = np.arange(0, cell.training.steps + 1, cell.record.every)
    return steps * cell.training.flow_step(len(cell.dataset.load().x))


def runs(cell, array):
    """The same array for every run."""
    return np.tile(array, (len(cell.init_scales), cell.seeds, *[1] * np.ndim(array)))


def record(cell, **arrays):
    arrays = {"loss": runs(cell, np.ones(len(clock(cell))))} | arrays
    arrays["diverged_at"] = np.full(arrays["loss"].shape[:2], -1)
    attrs = provenance_attributes("paper/experiment/main", cell, "train", ("numpy",))
    return build("trajectory", arrays, axes(cell, len(cell.dataset.load().x)), attrs)


def measure(cell, trajectory):
    found = metrics_dataset(made(cell, trajectory))
    for array in found.data_vars.values():
        assert set(array.attrs) == {"long_name", "units"}
    return found


def close(actual, expected, **tolerance):
    expected = np.asarray(expected, dtype=float)
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual.values, expected, **({"rtol": 1e-9} | tolerance))


def everywhere(cell, *weights):
    """A trajectory of networks that never move."""
    return record(
        cell,
        **{
            f"weight_{number}": np.repeat(runs(cell, weight)[:, :, None], 3, axis=2)
            for number, weight in enumerate(weights, start=1)
        },
    )


def wandering(cell, *shapes, seed=0):
    """A trajectory of random networks, others in every run and at every snapshot."""
    rng = np.random.default_rng(seed)
    lead = (len(cell.init_scales), cell.seeds, cell.record.snapshots + 1)
    return {
        f"weight_{number}": rng.normal(size=(*lead, *shape))
        for number, shape in enumerate(shapes, start=1)
    }


# Decision boundary -----------------------------------------------------------------------------


def boundary(margin, units):
    """Metrics of one network, (outgoing, incoming) weights unit by unit."""
    cell = make_cell("decision_boundary", dataset={"name": "xor", "margin": margin})
    readout, encoder = zip(*units, strict=True)
    values = measure(cell, everywhere(cell, np.array(encoder), np.array([readout])))
    return values.isel(init_scale=0, seed=0)


def corners(margin):
    """The points of the task, label first."""
    return [(-a * b, np.array([a, b, -a * b * margin])) for a, b in product((-1.0, 1.0), repeat=2)]


def answer_alone(margin, size):
    """A unit for each point that answers it with its label times `size`."""
    return [(y * size / (2 + margin**2), x) for y, x in corners(margin)]


def answer_together(margin, size):
    """A unit for each class that answers both points of it."""
    return [(y * size / margin, np.array([0, 0, y])) for y in (1.0, -1.0)]


margins = st.floats(0.1, 1.4)  # beyond sqrt(2) a point has a positive product with the opposite one


@given(margin=margins, share=st.floats(0.01, 0.99), size=st.floats(0.1, 10))
@few
def test_units_of_both_types_share_the_output(margin, share, size):
    units = answer_alone(margin, share * size) + answer_together(margin, (1 - share) * size)
    found = boundary(margin, units)
    close(found["xor_share"], share)
    close(found["linear_share"], 1 - share)
    close(found["other_share"], 0.0)
    close(found["nonlinearity_index"], share * size * 2 / (2 + margin**2))
    close(found["nonlinearity_share"], share * size)


@given(
    margin=margins,
    normal=st.lists(st.floats(-2, 2), min_size=3, max_size=3),
    size=st.floats(0.1, 10),
)
@few
def test_a_linear_function_has_no_nonlinearity(margin, normal, size):
    normal = np.array(normal)
    found = boundary(margin, [(size, normal), (-size, -normal), *answer_together(margin, 1.0)])
    close(found["nonlinearity_index"], 0.0, atol=1e-14)


def test_nonlinearity_is_half_the_difference_of_outputs():
    """As the paper has it, where the network answers both points of a class alike."""
    margin = 0.6
    units = [(0.3, np.array([1.0, -1, 0.2])), (0.3, np.array([-1.0, 1, 0.2]))]
    found = boundary(margin, units)
    # f(1, -1, 0) = 0.3 * 2, and f(1, 1, 0) = 0
    close(found["nonlinearity_index"], 0.3)


def test_units_open_on_both_classes_are_other():
    margin = 1.0
    # open on (1, -1, 1) and (1, 1, -1), where it is 3 and 1: it carries 2 of 2 + 4 * 3/3
    units = [(1.0, np.array([2.0, -0.25, 0.75])), *answer_alone(margin, 1.0)]
    found = boundary(margin, units)
    close(found["other_share"], 2 / 6)
    close(found["xor_share"], 4 / 6)
    close(found["linear_share"], 0.0)


def test_a_unit_on_the_verge_of_a_sample_is_shut_there():
    # (1, 1, 0) is 0 on both points of the positive class
    found = boundary(1.0, [(-1.0, np.array([1.0, 1.0, 0.0]))])
    close(found["xor_share"], 1.0)


def test_decision_boundary_sample_by_sample():
    margin, kinds = 0.75, ("xor", "linear", "other")
    cell = make_cell("decision_boundary")
    weights = wandering(cell, (6, 3), (1, 6))
    found = measure(cell, record(cell, **weights))
    at = found["nonlinearity_index_curve"]
    assert at.dims == ("init_scale", "seed", "snapshot")
    for ensemble in np.ndindex(at.shape):
        encoder, (readout,) = weights["weight_1"][ensemble], weights["weight_2"][ensemble]
        index, carried = 0.0, dict.fromkeys(kinds, 0.0)
        for w, v in zip(encoder, readout, strict=True):
            opened = [y for y, x in corners(margin) if w @ x > 0]
            total = sum(y * v * max(w @ x, 0) for y, x in corners(margin))
            if len(opened) == 1:
                carried["xor"] += total
            elif len(opened) == 2 and opened[0] == opened[1]:
                carried["linear"] += total
            else:
                carried["other"] += total
            index += sum(y * v * max(w[:2] @ x[:2], 0) for y, x in corners(margin)) / 4
        np.testing.assert_allclose(at.values[ensemble], index, rtol=1e-12)
        for kind, value in carried.items():
            share = found[f"{kind}_share_curve"].values[ensemble]
            np.testing.assert_allclose(share, value / sum(carried.values()), rtol=1e-9)
    for name in ("nonlinearity_index", "nonlinearity_share", *(f"{k}_share" for k in kinds)):
        close(found[name], found[f"{name}_curve"][..., -1].values)
        assert "snapshot" not in found[name].coords


def test_decision_boundary_of_a_diverged_run_is_undefined():
    cell = make_cell("decision_boundary")
    weights = wandering(cell, (6, 3), (1, 6))
    for weight in weights.values():
        weight[0, 1] = np.nan
    found = measure(cell, record(cell, **weights))
    for name in ("nonlinearity_index", "xor_share", "linear_share", "other_share"):
        undefined = found[name].isnull()
        assert undefined.sum() == 1
        assert undefined[0, 1]


def test_predicted_share_is_that_of_a_trained_network():
    """Theory from the initial weights, against the units that training ends with."""
    cell = make_cell(
        "decision_boundary",
        dataset={"name": "xor", "margin": 0.9},
        network={"name": "layered", "hidden": [32], "activation": "relu"},
        init_scales=[0.001],
        seeds=3,
        training={"learning_rate": 0.02, "steps": 1500},
        record={"every": 1500, "snapshots": 1, "observables": ["weights"]},
    )
    ensemble = cell.only(Ensemble)
    found = measure(cell, trajectory_dataset("paper/experiment/main", ensemble, train(ensemble)))
    assert (found["xor_share_error"] < 0.02).all()
    assert found["predicted_xor_share"].std("seed").item() > 0.02  # it tells the runs apart
    close(found["xor_share"] + found["linear_share"] + found["other_share"], np.ones((1, 3)))


# Plateaus --------------------------------------------------------------------------------------


def plateaus_of(loss, **parts):
    """Metrics of curves that are given by a function of flow time and seed."""
    cell = make_cell("plateaus", init_scales=[1.0], **parts)
    curves = [loss(clock(cell), seed) for seed in range(cell.seeds)]
    return measure(cell, record(cell, loss=np.array([curves]))).isel(init_scale=0)


def drop(time, centre, width, size):
    return size / (1 + np.exp((time - centre) / width))


def test_times_of_levels_and_their_variation():
    rates = np.array([1.0, 2.0, 4.0])
    found = plateaus_of(lambda t, seed: 3 * np.exp(-rates[seed] * t), record={"every": 1})
    levels = np.array([0.5, 0.2, 0.1, 0.05, 0.02])
    np.testing.assert_array_equal(found["loss_level"], levels)
    times = -np.log(levels) / rates[:, None]
    interpolation = 0.01**2 * rates.max() / 8
    close(found["level_time"], times, rtol=0, atol=1.1 * interpolation)
    assert found["level_time_variation"].dims == ("loss_level",)
    variation = np.std(1 / rates, ddof=1) / np.mean(1 / rates)
    close(found["level_time_variation"], np.full(5, variation), rtol=1e-3)
    off = np.abs(1 / rates - np.mean(1 / rates)) / np.mean(1 / rates)
    close(found["level_time_deviation"], np.tile(off[:, None], 5), rtol=1e-3)
    assert found["plateau_level"].isnull().all()  # exponentials have no drops
    assert found["plateau_time"].isnull().all()


def test_variation_needs_every_run_and_more_than_one():
    found = plateaus_of(lambda t, seed: np.maximum(np.exp(-t), 0.15 if seed == 1 else 0))
    close(found["level_time_variation"], [0, 0, np.nan, np.nan, np.nan], atol=1e-12)
    assert found["level_time"].sel(loss_level=0.1).isnull().sum() == 1
    alone = plateaus_of(lambda t, seed: np.exp(-t), seeds=1)
    assert alone["level_time"].notnull().all()
    assert alone["level_time_variation"].isnull().all()


def two_drops(time, last=0.3):
    return drop(time, 8, 0.5, 1 - last) + drop(time, 25, 0.8, last) + 1e-4


@given(
    last=st.floats(0.1, 0.8),
    unit=st.floats(0.01, 100),
    learning_rate=st.sampled_from([0.01, 0.002]),
)
@few
def test_plateau_is_where_the_loss_falls_least_for_its_size(last, unit, learning_rate):
    """Found by another road: on the logarithm of the curve itself, at any units."""
    slower = 0.01 / learning_rate

    def loss(t):
        return two_drops(t * slower, last)

    training = SPEC["training"] | {"learning_rate": learning_rate}
    found = plateaus_of(lambda t, seed: unit * loss(t), seeds=1, training=training).isel(seed=0)
    step = 1e-4 / slower
    slowest = minimize_scalar(
        lambda t: np.log(loss(t - step) / loss(t + step)),
        bounds=(9 / slower, 24 / slower),
        method="bounded",
    )
    close(found["plateau_level"], loss(slowest.x) / loss(0.0), rtol=1e-4)
    close(found["plateau_time"], slowest.x, rtol=2e-2)
    assert abs(found["plateau_level"] - last) < 0.01


def test_the_longest_of_several_rests_counts():
    def loss(t, seed):
        return drop(t, 5, 0.5, 0.5) + drop(t, 10, 0.5, 0.3) + drop(t, 30, 0.5, 0.2)

    found = plateaus_of(loss)
    close(found["plateau_level"], np.full(3, 0.2), rtol=1e-3)
    assert ((found["plateau_time"] > 12) & (found["plateau_time"] < 28)).all()


@pytest.mark.parametrize(
    "loss",
    [
        lambda t, seed: drop(t, 10, 1, 1.0) + 0.2,
        lambda t, seed: np.ones_like(t),
        lambda t, seed: np.where(t < 20, two_drops(t), np.nan),
    ],
    ids=["one drop", "none", "diverged"],
)
def test_without_two_drops_there_is_no_plateau(loss):
    found = plateaus_of(loss)
    assert found["plateau_level"].isnull().all()
    assert found["plateau_time"].isnull().all()


# Linear layers ---------------------------------------------------------------------------------

DEEP = {
    "dataset": {"name": "contextual", "contexts": 2, "objects": 2},
    "network": {"name": "layered", "hidden": [5, 4, 3], "activation": "relu"},
    "record": {"every": 10, "snapshots": 2, "observables": ["weights"]},
}
SHAPES = [(5, 4), (4, 5), (3, 4), (9, 3)]


def forward(weights, x, linear=None):
    """Outputs of one network for one sample."""
    for layer, weight in enumerate(weights, start=1):
        x = weight @ x
        if layer not in (linear, len(weights)):
            x = np.where(x > 0, x, 0)
    return x


def mistakes(cell, weights, linear=None):
    """Summed error of one network over all samples."""
    data = cell.dataset.load()
    total = 0.0
    for x, y in zip(data.x, data.y, strict=True):
        out = forward(weights, x, linear)
        if cell.training.loss.name == "squared_error":
            total += np.sum((y - out) ** 2)
        else:
            total -= np.sum(y * np.log(np.exp(out) / np.exp(out).sum()))
    return total


CLASSES = {
    "dataset": {
        "name": "table",
        "x": np.random.default_rng(1).normal(size=(5, 4)).tolist(),
        "y": np.eye(9)[[0, 1, 2, 1, 0]].tolist(),
    },
    "training": SPEC["training"] | {"loss": {"name": "cross_entropy", "normalisation": "mean"}},
}


@pytest.mark.parametrize("parts", [{}, CLASSES], ids=["squared error", "cross-entropy"])
def test_losses_without_the_nonlinearity_of_a_layer(parts):
    cell = make_cell("layer_linearity", **DEEP | parts)
    outputs = cell.dataset.load().y.shape[1]
    weights = wandering(cell, *SHAPES[:-1], (outputs, 3))
    found = measure(cell, record(cell, **weights))
    assert found["linearised_loss"].dims == ("init_scale", "seed", "hidden_layer")
    np.testing.assert_array_equal(found["hidden_layer"], [1, 2, 3])
    for ensemble in np.ndindex(2, 3):
        start, end = ([w[ensemble][at] for w in weights.values()] for at in (0, -1))
        initial = mistakes(cell, start)
        share = float(found["final_loss_share"][ensemble])
        np.testing.assert_allclose(share, mistakes(cell, end) / initial, rtol=1e-12)
        for layer in (1, 2, 3):
            expected = mistakes(cell, end, layer) / initial
            np.testing.assert_allclose(
                found["linearised_loss"].sel(hidden_layer=layer).values[ensemble],
                expected,
                rtol=1e-12,
            )


def test_a_layer_that_is_always_open_is_linear():
    """One-hot inputs under positive weights open every unit; the next layer has closed ones."""
    cell = make_cell("layer_linearity", **DEEP)
    weights = wandering(cell, *SHAPES)
    weights["weight_1"] = np.abs(weights["weight_1"])
    found = measure(cell, record(cell, **weights))
    taken, kept = found["linearised_loss"], found["final_loss_share"]
    np.testing.assert_array_equal(taken.sel(hidden_layer=1), kept)
    assert (abs(taken.sel(hidden_layer=[2, 3]) / kept - 1) > 1e-3).any("hidden_layer").all()


def test_final_loss_share_is_that_of_training():
    cell = make_cell(
        "layer_linearity",
        **DEEP | {"network": DEEP["network"] | {"hidden": [20, 20, 20]}},
        init={"name": "glorot"},
        init_scales=[1.0],
        seeds=2,
        training={"learning_rate": 0.01, "steps": 100, "loss": {"normalisation": "half_sum"}},
    )
    trajectory = trajectory_dataset("paper/experiment/main", cell, train(cell))
    loss = trajectory["loss"]
    assert (loss[..., -1] < 0.9 * loss[..., 0]).all()
    found = measure(cell, trajectory)
    close(found["final_loss_share"], (loss[..., -1] / loss[..., 0]).values, rtol=1e-10)


# Gate patterns ---------------------------------------------------------------------------------

SQUARE = {"dataset": {"name": "contextual", "contexts": 2, "objects": 2}}


def test_patterns_of_two_objects_in_two_contexts():
    """Against units drawn at random, and the lemma read out pattern by pattern.

    Samples are objects 1 and 2 in context 1, then in context 2.
    """
    cell = make_cell("realisable_patterns", **SQUARE)
    found = measure(cell, everywhere(cell, np.zeros((6, 4)), np.zeros((9, 6))))["patterns"]
    assert found.dims == ("pattern_kind",)
    x = cell.dataset.load().x
    normals = np.random.default_rng(0).normal(size=(5000, 4))
    seen = {tuple(row) for row in (normals @ x.T > 0)}
    allowed = {(0, 0, 0, 0), (1, 1, 1, 1), (1, 1, 0, 0), (0, 0, 1, 1)}
    allowed |= {tuple(row) for row in np.eye(4, dtype=int)}
    allowed |= {(1, 0, 1, 0), (0, 1, 0, 1)}  # by the object alone
    never = {(1, 0, 0, 1), (0, 1, 1, 0)}  # the sums over both diagonals are the same
    assert {p for p in product((0, 1), repeat=4) if p not in seen} == never
    assert (1, 0, 1, 1) in seen  # w = (.5, -.5; 1, 0) read backwards is no exception
    close(found, [16, len(seen), len(seen - allowed)])
    assert found.sel(pattern_kind="beyond the lemma") == 4


def shown(units):
    """Metrics of one network, (outgoing, incoming) weights unit by unit."""
    cell = make_cell("realisable_patterns", **SQUARE)
    readout, encoder = zip(*units, strict=True)
    weights = np.array(encoder, dtype=float), np.outer(np.ones(9), readout)
    return measure(cell, everywhere(cell, *weights)).isel(init_scale=0, seed=0)


def test_patterns_that_units_show():
    found = shown(
        [
            (1.0, [1, 1, 0, 0]),  # open everywhere
            (2.0, [1, 2, 0, 0]),  # the same pattern
            (1.0, [0, 0, 1, -1]),  # by context
            (1.0, [1, -1, 0.5, -1]),  # on object 1 in context 1, and in context 2 on the verge
            (1.0, [1, -1, 0, 0]),  # on object 1
            (1.0, [0.5, -0.5, 1, 0]),  # on all but object 2 in context 2: beyond
            (9.0, [-1, -1, -1, -1]),  # shut
        ]
    )
    close(found["shown_patterns"], 5.0)
    close(found["shown_beyond_lemma"], 1.0)
    # every sample asks for 4 properties in all, of object 1 and 2 alike
    carried = 4 * np.array([4, 2 * 6, 2, 1.5, 2, 1.5 + 0.5 + 0.5])
    close(found["share_beyond_lemma"], carried[-1] / carried.sum())


def test_patterns_run_by_run():
    cell = make_cell("realisable_patterns", **SQUARE)
    weights = wandering(cell, (6, 4), (9, 6))
    found = measure(cell, record(cell, **weights))
    data = cell.dataset.load()
    for ensemble in np.ndindex(2, 3):
        patterns, carried = [], []
        for w, v in zip(
            weights["weight_1"][ensemble][-1], weights["weight_2"][ensemble][-1].T, strict=True
        ):
            h = np.maximum(data.x @ w, 0)
            patterns.append(tuple(h > 0))
            carried.append(sum(h[n] * v @ data.y[n] for n in range(4)))
        beyond = [
            not (p[0] == p[1] and p[2] == p[3])
            and not (p[0] == p[2] and p[1] == p[3])
            and sum(p) > 1
            for p in patterns
        ]
        assert found["shown_patterns"][ensemble] == len({p for p in patterns if any(p)})
        assert found["shown_beyond_lemma"][ensemble] == len(
            {p for p, out in zip(patterns, beyond, strict=True) if out}
        )
        expected = np.sum(np.array(carried)[beyond]) / np.sum(carried)
        np.testing.assert_allclose(
            found["share_beyond_lemma"].values[ensemble], expected, rtol=1e-9
        )


def test_patterns_of_a_diverged_run_are_undefined():
    cell = make_cell("realisable_patterns", **SQUARE)
    weights = wandering(cell, (6, 4), (9, 6))
    weights["weight_2"][1, 2, -1] = np.nan
    found = measure(cell, record(cell, **weights))
    for name in ("shown_patterns", "shown_beyond_lemma", "share_beyond_lemma"):
        undefined = found[name].isnull()
        assert undefined.sum() == 1
        assert undefined[1, 2]
    assert found["patterns"].notnull().all()


# Uniqueness ------------------------------------------------------------------------------------


def haste_cell(contexts=4, objects=8, **parts):
    return make_cell(
        "uniqueness",
        **{
            "dataset": {"name": "contextual", "contexts": contexts, "objects": objects},
            "network": {"name": "layered", "hidden": [700], "activation": "relu"},
            "init_scales": [1e-4],
            "seeds": 1,
            "training": {
                "learning_rate": 0.001,
                "steps": 8000,
                "loss": {"normalisation": "half_sum"},
            },
            "record": {"every": 40},
        }
        | parts,
    )


def staged(time, contexts, open_in, common, context):
    """Loss of 8 objects by the notes' formulas, in sums over samples: time is their number t/N."""

    def learned(s, d, a0, k=1.0):
        a = (s / (k * d)) / (1 - (1 - s / (k * d * a0)) * np.exp(-2 * s * time))
        return s * a - k * d * a**2 / 2

    loss = np.full(time.shape, 0.5 * 8 * contexts * 4 * 2)  # eight properties a sample
    loss -= learned(np.sqrt(15 * (8 + contexts) * (contexts + 1)), 8 + contexts, common)
    loss -= (contexts - 1) * learned(np.sqrt(15 * 8), 8, common)
    for power in (7, 3, 3, 1, 1, 1, 1):
        s = np.sqrt(power * contexts * (contexts + 1))
        loss -= learned(s, contexts, common)
        q, k = open_in, comb(contexts - 2, open_in - 1) / open_in
        s = np.sqrt(power * q * (contexts - q) / contexts)
        loss -= comb(contexts, q) * learned(s, q, context, k)
    return loss


def unique(cell, loss):
    found = measure(cell, record(cell, loss=np.reshape(loss, (1, 1, -1))))
    return found.isel(init_scale=0, seed=0)


@pytest.mark.parametrize(("contexts", "open_in"), [(3, 2), (4, 2), (4, 3), (5, 2)])
def test_the_family_that_made_a_loss_is_found_with_its_starts(contexts, open_in):
    cell = haste_cell(contexts)
    time = np.arange(0, 8001, 40) * 0.001
    found = unique(cell, staged(time, contexts, open_in, 3e-6, 2e-3))
    assert found["fitted_gap"].dims == ("open_in",)
    np.testing.assert_array_equal(found["open_in"], np.arange(1, contexts))
    own = found.sel(open_in=open_in)
    close(own["fitted_gap"], 0.0, atol=1e-6)
    close(own["fitted_common_start"], 3e-6, rtol=1e-5)
    close(own["fitted_context_start"], 2e-3, rtol=1e-5)
    assert own["unfitted_gap"] > 0.05
    others = [q for q in range(1, contexts) if q != open_in]
    same = [contexts - open_in]  # nothing of the closed form tells these from the family itself
    for q in others:
        gap = float(found["fitted_gap"].sel(open_in=q))
        assert (gap < 1e-6) == (q in same), (q, gap)


@pytest.mark.parametrize("contexts", [3, 4])
def test_without_a_fit_starts_are_those_of_equal_widths(contexts):
    cell = haste_cell(contexts)
    time = np.arange(0, 8001, 40) * 0.001
    half = 700 * 1e-8 / 4
    for open_in in range(1, contexts):
        loss = staged(time, contexts, open_in, half, half / comb(contexts, open_in))
        found = unique(cell, loss).sel(open_in=open_in)
        close(found["unfitted_gap"], 0.0, atol=1e-12)
        close(found["fitted_common_start"], half, rtol=1e-4)
        assert found["head_start_gap"] > 0.01


def test_head_starts_are_those_of_theory():
    cell = haste_cell(4)
    task = 4, 8, 3
    common, context = np.full(11, 700 * 1e-8 / 4), np.full(7, 700 * 1e-8 / 16)
    start = head_start(*task, common, context)
    loss = 32 * staged_loss(clock(cell), *task, common, start)  # the sum over 32 samples
    found = unique(cell, loss)
    close(found["head_start_gap"].sel(open_in=3), 0.0, atol=1e-12)
    assert (found["head_start_gap"].sel(open_in=[1, 2]) > 0.01).all()


def test_gaps_are_relative_to_the_initial_loss_whatever_its_units():
    cell = haste_cell(3)
    time = np.arange(0, 8001, 40) * 0.001
    loss = staged(time, 3, 2, 3e-6, 2e-3)
    bent = np.where(time < 4, loss, 0.5 * loss)
    found = unique(cell, bent)
    mean = haste_cell(
        3, training={"learning_rate": 0.024, "steps": 8000, "loss": {"normalisation": "half_mean"}}
    )
    again = unique(mean, bent / 24)
    for name in ("unfitted_gap", "fitted_gap", "head_start_gap"):
        close(found[name], again[name].values, rtol=1e-6)
    expected = np.max(np.abs(bent - staged(time, 3, 2, *2 * [700 * 1e-8 / 4]))) / loss[0]
    assert expected > 0  # the same start for both kinds is not that of equal widths
    own = np.max(np.abs(bent - staged(time, 3, 2, 700 * 1e-8 / 4, 700 * 1e-8 / 12))) / loss[0]
    close(found["unfitted_gap"].sel(open_in=2), own, rtol=1e-9)


def test_every_run_is_fitted_by_itself():
    cell = haste_cell(3, init_scales=[1e-4, 1e-3], seeds=2)
    time = np.arange(0, 8001, 40) * 0.001
    starts = np.array([[1e-6, 1e-5], [1e-4, 1e-3]])
    loss = [[staged(time, 3, 2, a0, 10 * a0) for a0 in row] for row in starts]
    loss[1][0] = np.where(time < 5, loss[1][0], np.nan)
    found = measure(cell, record(cell, loss=np.array(loss))).sel(open_in=2)
    expected = starts.copy()
    expected[1, 0] = np.nan
    close(found["fitted_common_start"], expected, rtol=1e-4)
    close(found["fitted_context_start"], 10 * expected, rtol=1e-4)
    assert found["unfitted_gap"].isnull().sum() == 1


# Networks that metrics are not for -------------------------------------------------------------

RELU = SPEC["network"]
WHOLE = {"dataset": {"name": "contextual", "contexts": 3}}


@pytest.mark.parametrize(
    ("metric", "parts", "message"),
    [
        *(
            (metric, parts | {"network": RELU | change}, f"metrics: '{metric}': .*network.{key}")
            for metric, parts in (
                ("decision_boundary", {}),
                ("realisable_patterns", SQUARE),
                ("uniqueness", WHOLE),
            )
            for key, change in (
                ("hidden", {"hidden": [4, 4]}),
                ("bias", {"bias": True}),
                ("activation", {"activation": "linear"}),
            )
        ),
        (
            "decision_boundary",
            {"dataset": {"name": "xor"}},
            "metrics: 'decision_boundary': .*dataset.margin: is missing",
        ),
        ("decision_boundary", SQUARE, "dataset.name: 'contextual': use xor and give its margin"),
        ("layer_linearity", {}, r"network.hidden: \[6\]: give two layers or more"),
        (
            "layer_linearity",
            {"network": RELU | {"hidden": [4, 4], "bias": True}},
            "network.bias: True",
        ),
        (
            "realisable_patterns",
            {},
            "dataset.name: 'xor': use one with contexts",
        ),
        ("uniqueness", {}, "dataset.name: 'xor': use contextual"),
        *(
            ("uniqueness", {"dataset": WHOLE["dataset"] | change}, message)
            for change, message in (
                ({"part": "residual"}, "dataset.part: 'residual': use whole"),
                ({"structures": ["ring"]}, r"dataset.structures: \['ring'\]: use hierarchy alone"),
                ({"structures": ["hierarchy", "ring", "hierarchy"]}, "use hierarchy alone"),
            )
        ),
        (
            "uniqueness",
            WHOLE | {"init": {"name": "orthogonal"}},
            "init.name: 'orthogonal': use normal",
        ),
        (
            "uniqueness",
            WHOLE
            | {
                "training": SPEC["training"]
                | {"loss": {"name": "cross_entropy", "normalisation": "mean"}}
            },
            "training.loss.name: 'cross_entropy': use squared_error",
        ),
    ],
)
def test_what_a_metric_is_not_for_is_refused(metric, parts, message):
    with pytest.raises(ValueError, match=message):
        make_cell(metric, **parts)


def test_patterns_are_counted_of_few_samples_with_inputs_in_groups():
    many = {"name": "contextual", "contexts": 4, "objects": 4}
    cell = make_cell("realisable_patterns", dataset=many)
    assert re.search(r"has 16 samples, and at most 12 .*; use fewer objects", str(cell.unfit()))
    table = {"name": "table", "x": [[1, 0], [0, 1]], "y": [[1], [0]], "contexts": [0, 1]}
    cell = make_cell("realisable_patterns", dataset=table)
    assert "its inputs come in no two groups" in str(cell.unfit())


# All of them -----------------------------------------------------------------------------------


def test_numbers_go_to_the_table_and_curves_do_not():
    """Values without seeds among them."""
    cell = make_cell("plateaus", "realisable_patterns", **SQUARE)
    found = measure(cell, record(cell, **wandering(cell, (6, 4), (9, 6))))
    table = tabulated(found)
    assert set(table["metric"]) == set(map(str, found.data_vars))
    assert len(table) == sum(array.size for array in found.data_vars.values())
    boundary = make_cell("decision_boundary")
    found = measure(boundary, record(boundary, **wandering(boundary, (6, 3), (1, 6))))
    assert not any(name.endswith("_curve") for name in tabulated(found)["metric"])
    assert isinstance(found["xor_share_curve"], xr.DataArray)


# Pathways side by side ---------------------------------------------------------------------------


def test_shares_of_pathways_are_those_of_their_squared_maps():
    network = {"name": "gated", "hidden": [4], "gates": {"name": "contexts", "open_in": [1]}}
    record_ = {"every": 4, "observables": ["pathway_values"]}
    cell = make_cell("pathway_share", network=network, record=record_, **SQUARE)
    ensemble = cell.only(Ensemble)
    trajectory = trajectory_dataset("paper/experiment/main", ensemble, train(ensemble))
    values = trajectory["pathway_values"].copy()
    values[:, :, -1] = 0
    values[:, :, -1, 0, :2] = [3.0, 1.0]
    values[:, :, -1, 2, 0] = 2.0
    found = measure(cell, trajectory.assign(pathway_values=values))["pathway_share"]
    close(found, np.broadcast_to([10 / 14, 0, 4 / 14], found.shape))


def test_modes_of_pathways_are_half_learned_on_their_way():
    network = {"name": "gated", "hidden": [4], "gates": {"name": "contexts", "open_in": [1]}}
    record_ = {"every": 4, "observables": ["pathway_values"]}
    parts = {"network": network, "record": record_, "solutions": ["pathway_modes"]} | SQUARE
    cell = make_cell("analytic_fit", "pathway_share", **parts)
    ensemble = cell.only(Ensemble)
    trajectory = trajectory_dataset("paper/experiment/main", ensemble, train(ensemble))
    time = trajectory["flow_time"].values
    values = trajectory["pathway_values"].copy()
    # a straight line, half of whose end is where time is half over, and one that is later
    values[:] = 0.01 * (time / time[-1])[:, None, None]
    values[:, :, :, 0, 0] = 3 * time / time[-1]
    values[:, :, :, 1, 0] = np.maximum(0, 4 * time / time[-1] - 3)
    trajectory = trajectory.assign(pathway_values=values)
    off = values.copy()
    off[:, :, 2, 1, 0] += 0.6
    predicted = xr.concat([values, off], xr.Variable("solution", ["same", "off"]))
    loss = trajectory["loss"].expand_dims(solution=["same", "off"])
    theory = xr.Dataset({"pathway_values": predicted, "loss": loss})
    found = metrics_dataset(made(cell, trajectory, theory))
    half = found["pathway_half_time"].isel(pathway_mode=0)
    close(half.isel(pathway=0), np.full(half.isel(pathway=0).shape, time[-1] / 2), rtol=1e-6)
    close(half.isel(pathway=1), np.full(half.isel(pathway=0).shape, 7 / 8 * time[-1]), rtol=1e-6)
    error = found["pathway_error_sup"].isel(init_scale=0, seed=0)
    close(error.sel(solution="same"), np.zeros(3))
    close(error.sel(solution="off").transpose(), [0, 0.2, 0])


def gated_cell(dataset, **gates):
    network = {"name": "gated", "hidden": [4], "gates": {"name": "contexts"} | gates}
    return make_cell("pathway_correlations", network=network, dataset=dataset)


def test_input_correlations_commute_for_hierarchies_alone():
    """Against eigenvectors: both are diagonal in the right singular vectors, or not."""
    for structures, diagonal in ((["hierarchy"], True), (["hierarchy", "ring", "ring"], False)):
        dataset = {"name": "contextual", "contexts": 3, "objects": 4, "structures": structures}
        cell = gated_cell(dataset, open_in=[2])
        found = measure(cell, record(cell))["pathway_commutator"]
        data = cell.dataset.load()
        sigma_yx, sigma_xx = data.y.T @ data.x, data.x.T @ data.x
        # a generic combination of commuting matrices has the eigenvectors of both
        _, v = np.linalg.eigh(sigma_yx.T @ sigma_yx + 0.3 * sigma_xx)
        rotated = v.T @ sigma_xx @ v
        rest = np.linalg.norm(rotated - np.diag(np.diag(rotated)))
        assert (rest < 1e-9) == diagonal
        assert (found.sel(pathway=1) < 1e-12) == diagonal
        # pathways that see one-hot objects alone have a multiple of the identity
        np.testing.assert_allclose(found.sel(pathway=[2, 3, 4]), 0, atol=1e-12)
    first, second = np.diag([1.0, 0]), np.array([[0, 1.0], [1, 0]])
    np.testing.assert_allclose(commutator(first, second), 1)


def test_residual_is_uncorrelated_with_contexts_over_all_samples_only():
    cell = gated_cell({"name": "contextual", "contexts": 3, "objects": 4}, open_in=[2])
    found = measure(cell, record(cell))
    np.testing.assert_allclose(found["residual_context_correlation"], 0, atol=1e-12)
    # the best linear map answers with both means less the mean over both
    data = cell.dataset.load()
    mean = data.y.reshape(3, 4, -1)
    linear = mean.mean(0, keepdims=True) + mean.mean(1, keepdims=True) - mean.mean((0, 1))
    left = (mean - linear).reshape(12, -1)
    expected = max(np.linalg.norm(r) / np.linalg.norm(y) for r, y in zip(left, data.y, strict=True))
    np.testing.assert_allclose(found["residual_context_correlation_of_one"], expected)
    assert expected > 0.3


def test_correlations_are_of_pathways_and_two_groups():
    with pytest.raises(ValueError, match=r"network.name: 'layered': use gated"):
        make_cell("pathway_correlations", **SQUARE)
    gates = {"name": "per_example"}
    network = {"name": "gated", "hidden": [4], "gates": gates}
    cell = make_cell("pathway_correlations", network=network)
    assert "its inputs come in no two groups" in str(cell.unfit())
