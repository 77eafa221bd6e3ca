"""Metrics of frozen and refreshed gates, against weights and losses from other routes."""

import re
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm

from builders import (
    assert_close,
    build_cell,
    cell_with_requirements,
    metrics_of,
    recorded_trajectory,
    trained_trajectory,
)
from neuralrace.datasets import Data
from neuralrace.metrics.gates.frozen_gate_errata import EQUATIONS
from neuralrace.metrics.gates.gate_prediction import sample_loss
from neuralrace.metrics.gates.gate_refresh import MOMENTS, REFRESHES, _order
from neuralrace.metrics.gates.gating_loss import sampled
from neuralrace.metrics.receptive_fields.receptive_fields import class_shares

INPUTS, UNITS, SAMPLES, STEPS, RATE = 6, 4, 80, 60, 0.4
TIME = STEPS * RATE
MEAN = {"hidden": [1], "readout": "mean"}
GATES = {
    "general": {"name": "half_space", "pathways": UNITS},
    "exclusive": {"name": "tiling", "pathways": UNITS, "directions": "random"},
    "redundant": {"name": "half_space", "pathways": 1, "antipodal": True, "copies": 2},
}
RING = {
    "dataset": {
        "name": "nonlinear_gaussian",
        "inputs": INPUTS,
        "xi": [0.7, 0.3],
        "samples": SAMPLES,
        "seed": 3,
    },
    "network": {"name": "layered", "hidden": [UNITS], "activation": "relu", "readout": "mean"},
    "init": {"name": "normal"},
    "init_scales": [0.5, 0.1],
    "seeds": 2,
    "training": {"learning_rate": RATE, "steps": STEPS},
    "record": {"every": 10, "snapshots": 2, "observables": ["weights"]},
}
CROSS_ENTROPY = {"loss": {"name": "cross_entropy", "normalisation": "mean"}}
relu_cell = partial(cell_with_requirements, base=RING)


def gated_cell(*metrics, gates=GATES["general"], **changes):
    network = {"name": "gated", "gates": gates} | MEAN
    record = RING["record"] | {"observables": ["pathway_maps"]}
    return relu_cell(metrics, **({"network": network, "record": record} | changes))


def diverged(trajectory):
    """The trajectory with a divergence of its last run."""
    broken = trajectory.copy(deep=True)
    broken["diverged_at"][-1, -1] = STEPS - 5
    for name in ("weight_1", "pathway_maps"):
        if name in broken:
            broken[name][-1, -1, -1] = np.nan
    broken["loss"][-1, -1, -1] = np.nan
    return broken


def gated_inputs(gates, x):
    """g_k x_i of each sample, all pathways side by side."""
    return (gates.T[:, :, None] * x[:, None, :]).reshape(len(x), -1)


def frozen_weights(gates, data, start, time):
    """Weights of frozen gates by the matrix exponential of the flow with a source."""
    z, (units, _) = gated_inputs(gates, data.x), start.shape
    source, rate = z.T @ data.y[:, 0] / len(z) / units, z.T @ z / len(z) / units**2
    size = start.size
    joint = np.zeros((size + 1, size + 1))
    joint[:size, :size], joint[:size, size] = -rate, source
    return (expm(joint * time) @ np.append(start.ravel(), 1.0))[:size].reshape(start.shape)


def loss_of(weights, gates, data):
    answers = gated_inputs(gates, data.x) @ weights.ravel() / len(weights)
    return np.mean((data.y[:, 0] - answers) ** 2) / 2


def relu_gates(weights, data):
    return (weights @ data.x.T > 0).astype(float)


# Gate prediction ---------------------------------------------------------------------------------

CANDIDATES = {name: {"name": "gated", "gates": gates} | MEAN for name, gates in GATES.items()}


@pytest.fixture(scope="module")
def relu():
    return trained_trajectory(relu_cell([]))


@pytest.fixture(scope="module")
def prediction(relu):
    return metrics_of(relu_cell(["gate_prediction"], candidates=CANDIDATES), relu)


def test_frozen_gates_agree_with_the_matrix_exponential(relu, prediction):
    cell = relu_cell([], candidates=CANDIDATES)
    data, fresh = cell.dataset.load(), sampled(cell, 1)
    assert len(np.unique(np.concatenate([data.x, fresh.x]), axis=0)) == 2 * SAMPLES
    assert prediction["gates_from"].values.tolist() == ["initial", "trained", *GATES]
    weights = relu["weight_1"].values
    for ensemble in np.ndindex(2, 2):
        start, end = weights[ensemble][0], weights[ensemble][-1]
        for number, source in enumerate(prediction["gates_from"].values):
            if source in GATES:
                rule = cell.candidates[source].gates.gates
                gates, fresh_gates = rule(data), rule(fresh)
            else:
                normals = start if source == "initial" else end
                gates, fresh_gates = relu_gates(normals, data), relu_gates(normals, fresh)
            metrics = prediction.isel(init_scale=ensemble[0], seed=ensemble[1], gates_from=number)
            for name, time in (("frozen", TIME), ("frozen_limit", 1e9)):
                w = frozen_weights(gates, data, start, time)
                tolerance = {"rtol": 1e-6} if time > TIME else {}
                assert_close(metrics[f"{name}_loss"], loss_of(w, gates, data), **tolerance)
                assert_close(
                    metrics[f"{name}_fresh_loss"], loss_of(w, fresh_gates, fresh), **tolerance
                )
                ratio = (w**4).sum(axis=1) / (w**2).sum(axis=1) ** 2
                assert_close(metrics[f"{name}_participation"], INPUTS * ratio.mean(), **tolerance)
                assert 0 <= metrics[f"{name}_localised_share"] <= 1
                if time == TIME:
                    cosine = [a @ b / np.sqrt(a @ a * (b @ b)) for a, b in zip(w, end, strict=True)]
                    assert_close(metrics["frozen_overlap"], np.mean(cosine))
        relu_fresh = sample_loss(np.maximum(end @ fresh.x.T, 0), fresh)
        assert_close(prediction["relu_fresh_loss"][ensemble], relu_fresh)
        assert_close(
            prediction["frozen_loss_ratio"][ensemble],
            prediction["frozen_fresh_loss"][ensemble].values / relu_fresh,
        )
    assert_close(prediction["relu_loss"], relu["loss"][:, :, -1])


def test_gaussian_predictions_agree_with_many_drawn_samples(relu, prediction):
    """The closed form agrees with many Gaussian samples that are drawn."""
    cell = relu_cell([], candidates=CANDIDATES)
    covariances = cell.dataset.mixture().covariances
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.multivariate_normal(np.zeros(INPUTS), c, 100_000) for c in covariances])
    many = Data(x=x, y=np.repeat(cell.dataset.targets, 100_000)[:, None])
    names = {"gaussian_localised_share": TIME, "gaussian_limit_localised_share": 1e9}
    for source, seed in (("initial", 0), ("trained", 1), ("general", 0), ("redundant", 1)):
        start, end = relu["weight_1"].values[0, seed][[0, -1]]
        if source in GATES:
            gates = cell.candidates[source].gates.gates(many)
        else:
            gates = relu_gates(start if source == "initial" else end, many)
        for name, time in names.items():
            w = frozen_weights(gates, many, start, time)
            share = class_shares(w)["localised"]
            assert_close(prediction[name].sel(gates_from=source, seed=seed)[0], share)
    for name in names:
        assert prediction[name].sel(gates_from="exclusive").isnull().all()


def test_predicted_losses_have_the_normalisation_of_training(relu, prediction):
    """The same gradient steps with another normalisation."""
    training = {"loss": {"normalisation": "sum"}, "learning_rate": RATE / 2 / SAMPLES,
                "steps": STEPS}  # fmt: skip
    cell = relu_cell(["gate_prediction"], candidates=CANDIDATES, training=training)
    other = relu.copy()
    other["loss"] = 2 * SAMPLES * relu["loss"]
    metrics = metrics_of(cell, other)
    for name in ("frozen_loss", "frozen_limit_fresh_loss", "relu_loss", "relu_fresh_loss"):
        assert_close(metrics[name], 2 * SAMPLES * prediction[name])
    for name in ("frozen_overlap", "frozen_limit_participation", "frozen_loss_ratio"):
        assert_close(metrics[name], prediction[name])


def test_prediction_is_undefined_for_gates_that_never_open(relu):
    dead = relu.copy(deep=True)
    dead["weight_1"][0, 0, -1, 0] = 0.0
    metrics = metrics_of(relu_cell(["gate_prediction"]), dead)
    of_dead = metrics["frozen_loss"].isel(init_scale=0, seed=0)
    assert np.isnan(of_dead.sel(gates_from="trained"))
    assert of_dead.sel(gates_from="initial").notnull()
    assert metrics["frozen_loss"].isel(seed=1).notnull().all()


@pytest.mark.parametrize(
    ("candidate", "message"),
    [
        ({"hidden": [2]}, r"candidates.odd.hidden: \[2\].* give pathways of one unit"),
        ({"readout": "trained"}, "candidates.odd.readout: 'trained'.* use mean"),
        ({"gates": {"name": "half_space", "pathways": 3}}, r"candidates.odd.gates: make 3 .* 4"),
        ({"gates": {"name": "per_example"}}, "candidates.odd.gates.name: 'per_example'.* gates of"),
        (
            {"gates": {"name": "listed", "rows": [[1.0] * SAMPLES] * UNITS}},
            r"candidates.odd.gates.name: 'listed'.* gates of single samples",
        ),
    ],
)
def test_unsuitable_candidates_are_refused(candidate, message):
    odd = {"name": "gated", "gates": GATES["general"]} | MEAN | candidate
    unfit = str(relu_cell(["gate_prediction"], candidates={"odd": odd}).unfit())
    assert re.search(message, unfit)


def test_candidate_with_the_name_of_a_source_is_refused():
    cell = relu_cell(["gate_prediction"], candidates={"trained": CANDIDATES["general"]})
    assert re.search(r"candidates.trained: .* use another", str(cell.unfit()))


# Gate refresh ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def refresh(relu):
    return metrics_of(relu_cell(["gate_refresh"]), relu)


def test_refreshed_gates_agree_with_the_matrix_exponential(relu, refresh):
    data = relu_cell([]).dataset.load()
    intervals = TIME / np.array(REFRESHES)
    assert_close(refresh["refresh_interval"], intervals)
    for ensemble in np.ndindex(2, 2):
        w0, end = relu["weight_1"].values[ensemble][[0, -1]]
        final = []
        for refreshes, interval in zip(REFRESHES, intervals, strict=True):
            w = w0
            for _ in range(refreshes):
                w = frozen_weights(relu_gates(w, data), data, w, interval)
            final.append(w)
        metrics = refresh.isel(init_scale=ensemble[0], seed=ensemble[1])
        errors = [np.linalg.norm(w - end) / np.linalg.norm(end) for w in final]
        assert_close(metrics["refresh_error"], errors)
        losses = relu["loss"].values[ensemble]
        far = [abs(sample_loss(np.maximum(w @ data.x.T, 0), data) - losses[-1]) for w in final]
        assert_close(metrics["refresh_loss_error"], far / losses[0], rtol=1e-7)
        ratio = [INPUTS * np.mean((w**4).sum(1) / (w**2).sum(1) ** 2) for w in final]
        assert_close(metrics["refresh_participation"], ratio)
        assert_close(metrics["refresh_order"], np.polyfit(np.log(intervals), np.log(errors), 1)[0])
        to_last = [np.linalg.norm(w - final[-1]) for w in final[:-1]]
        slope = np.polyfit(np.log(intervals[:-1]), np.log(to_last), 1)[0]
        assert_close(metrics["refresh_order_to_finest"], slope)
    assert refresh["refreshes"].values.tolist() == list(REFRESHES)


def test_eigenvectors_of_the_start_miss_part_of_the_final_moment(relu, refresh):
    """Compared with second moments of all samples at every place with both signs."""
    data = relu_cell([]).dataset.load()
    x = np.concatenate([s * np.roll(data.x, k, axis=1) for k in range(INPUTS) for s in (1, -1)])
    whole = Data(x=x, y=np.zeros((len(x), 1)))
    missed = refresh["basis_missed"]
    assert missed["moment"].values.tolist() == list(MOMENTS)
    for scale, seed in np.ndindex(2, 2):
        start, end = relu["weight_1"].values[scale, seed][[0, -1]]
        other = relu["weight_1"].values[scale, 1 - seed][0]
        before, after, elsewhere = (
            (z.T @ z / len(z)) for z in (gated_inputs(relu_gates(w, whole), x)
                                         for w in (start, end, other))
        )  # fmt: skip
        for name, basis in (("all gates", before), ("all gates, other start", elsewhere)):
            vectors = np.linalg.eigh(basis)[1]
            on = (np.diag(vectors.T @ after @ vectors) ** 2).sum() / (after**2).sum()
            assert_close(missed.sel(moment=name)[scale, seed], np.sqrt(1 - on), rtol=1e-6)
    # every half-space has half of the inputs' second moment
    assert (missed.sel(moment="one gate") < 1e-12).all()
    assert (missed.sel(moment="all gates") > 0.01).all()


def test_gates_refreshed_at_every_step_are_those_of_the_relu_network(refresh):
    assert (refresh["refresh_every_step_error"] < 1e-13).all()


@given(st.floats(0.1, 3), st.floats(1e-6, 1e3))
def test_order_of_a_power_law(order, size):
    intervals = 7.0 / np.array(REFRESHES)
    orders = _order(intervals, np.stack([size * intervals**order, intervals]))
    np.testing.assert_allclose(orders, [order, 1.0], rtol=1e-9)


@pytest.mark.parametrize(
    "training",
    [
        {"optimiser": {"name": "momentum", "momentum": 0.5}},
        {"batch": {"name": "fresh", "size": 10}},
    ],
)
def test_refresh_needs_plain_descent_on_all_samples(training):
    with pytest.raises(
        ValueError, match=r"training.(optimiser.name: .* use plain|batch.name: .* use full)"
    ):
        relu_cell(["gate_refresh"], training=RING["training"] | training)


@pytest.mark.parametrize("metric", ["gate_prediction", "gate_refresh"])
@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"network": RING["network"] | {"readout": "trained"}}, "network.readout: 'trained'"),
        ({"network": RING["network"] | {"activation": "erf"}}, "network.activation: 'erf'"),
        ({"network": RING["network"] | {"hidden": [4, 4]}}, r"network.hidden: \[4, 4\]"),
        (
            {"training": RING["training"]
             | CROSS_ENTROPY},
            r"training.loss.name: 'cross_entropy'",
        ),
    ],
)  # fmt: skip
def test_other_relu_networks_are_refused(metric, parts, message):
    with pytest.raises(ValueError, match=message):
        relu_cell([metric], **parts)


def test_refresh_needs_one_output():
    cell = relu_cell(["gate_refresh"], dataset={"name": "contextual", "contexts": 2, "objects": 4})
    assert re.search(r"metrics: 'gate_refresh': .* has \d+ outputs", str(cell.unfit()))


# Gating loss -------------------------------------------------------------------------------------


def without_curves(cell):
    """A trajectory of which only the axes matter."""
    return recorded_trajectory(cell, SAMPLES)


@pytest.mark.parametrize("scheme", GATES)
def test_least_losses_agree_with_least_squares(scheme):
    cell = gated_cell("gating_loss", gates=GATES[scheme], seeds=3)
    metrics = metrics_of(cell, without_curves(cell))
    inputs = []
    for seed in range(3):
        data, fresh = (sampled(cell, offset) for offset in (seed, 3 + seed))
        inputs += [data.x, fresh.x]
        scheme_gates = cell.network.gates
        drawn = scheme_gates.model_copy(update={"seed": scheme_gates.seed + seed})
        gates, fresh_gates = (drawn.gates(each) for each in (data, fresh))
        z, other = gated_inputs(gates, data.x), gated_inputs(fresh_gates, fresh.x)
        w, _, rank, _ = np.linalg.lstsq(z, data.y[:, 0])
        own = metrics.isel(seed=seed)
        assert_close(own["optimal_loss"], np.mean((data.y[:, 0] - z @ w) ** 2) / 2)
        assert_close(own["optimal_fresh_loss"], np.mean((fresh.y[:, 0] - other @ w) ** 2) / 2)
        assert_close(own["gating_rank"], rank)
        # balanced classes with targets 1 and 0; eq. 17 has a gain of 1 for all gates
        least = np.mean((data.y[:, 0] - z @ w) ** 2)
        for equation, loss in {"12": least, "14": least, "15": least, "17": 0.0}.items():
            assert_close(own["equation_loss"].sel(equation=equation), loss, atol=1e-12)
        second = z.T @ z / len(z)
        block = np.kron(np.eye(UNITS), np.ones((INPUTS, INPUTS)))
        for name, matrix in (("second_moment", second), ("precision", np.linalg.pinv(second))):
            share = (matrix**2 * (1 - block)).sum() / (matrix**2).sum()
            assert_close(own[f"{name}_diagonality"], share, rtol=1e-7, atol=1e-12)
        assert_close(own["open_fraction"], gates.mean())
        pairs = [np.mean(gates[i] * gates[j]) for i in range(UNITS) for j in range(i)]
        assert_close(own["overlap_of_gates"], np.mean(pairs), atol=1e-15)
    assert len(np.unique(np.concatenate(inputs), axis=0)) == 6 * SAMPLES
    assert metrics["optimal_loss"].dims == ("seed",)


def test_gating_losses_have_the_normalisation_of_training():
    half = gated_cell("gating_loss")
    training = RING["training"] | {"loss": {"normalisation": "sum"}}
    whole = gated_cell("gating_loss", training=training)
    metrics, other = (
        metrics_of(half, without_curves(half)),
        metrics_of(whole, without_curves(whole)),
    )
    for name in ("optimal_loss", "optimal_fresh_loss"):
        assert_close(other[name], 2 * SAMPLES * metrics[name])
    assert_close(other["equation_loss"], metrics["equation_loss"])


def test_equations_of_classes_need_targets_one_and_zero():
    cell = gated_cell("gating_loss", dataset=RING["dataset"] | {"targets": [3.0, -1.0]})
    metrics = metrics_of(cell, without_curves(cell))["equation_loss"]
    assert_close(metrics.sel(equation="14"), metrics.sel(equation="12"))
    assert metrics.sel(equation=["15", "17"]).isnull().all()


def test_overlaps_are_undefined_for_a_single_pathway():
    cell = gated_cell("gating_loss", "ring_structure", gates={"name": "always_on"})
    metrics = metrics_of(cell, without_curves(cell))
    assert metrics["overlap_of_gates"].isnull().all()
    assert metrics["block_circulance_other"].isnull().all()
    assert_close(metrics["open_fraction"], [1, 1])


# Ring structure ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gates", "shifted"),
    [
        ({"name": "bumps", "pathways": INPUTS, "width": 0.7}, True),
        ({"name": "tiling", "pathways": INPUTS, "directions": "bumps", "width": 0.7}, True),
        ({"name": "bumps", "pathways": 3, "width": 0.7}, True),
        ({"name": "half_space", "pathways": INPUTS}, False),
    ],
)
def test_shifted_gates_are_diagonal_in_blocks(gates, shifted):
    cell = gated_cell("ring_structure", gates=gates)
    metrics = metrics_of(cell, without_curves(cell))
    if shifted:
        assert (metrics["joint_violation"] < 1e-14).all()
        assert (metrics["joint_eigenvalue_error"] < 1e-13).all()
    else:
        assert (metrics["joint_violation"] > 0.1).all()
        assert (metrics["joint_eigenvalue_error"] > 0.01).all()
    assert (metrics["input_circulance_law"] < 1e-14).all()
    assert (metrics["input_circulance_samples"] > 0.01).all()
    assert (np.diff(metrics["input_circulance_samples"]) != 0).all()
    same, other = metrics["block_circulance_same"], metrics["block_circulance_other"]
    if gates["name"] == "tiling":  # exclusive: no sample opens two gates
        assert (same > 0.05).all()
        assert_close(other, [0, 0])
    else:  # symmetric in x and -x: each half-space has half of the second moment
        assert (same < 1e-14).all()
        assert (other > 0.05).all()


def test_moments_behind_gates_block_by_block():
    cell = gated_cell("ring_structure", gates=GATES["general"])
    metrics = metrics_of(cell, without_curves(cell))
    x = cell.dataset.load().x  # all samples are used, as there are few
    moved = np.concatenate([np.roll(s * x, k, axis=1) for s in (1, -1) for k in range(INPUTS)])
    normals = cell.network.gates.normals(INPUTS)
    opened = normals @ moved.T > 0
    far = np.zeros((UNITS, UNITS))
    for i, j in np.ndindex(UNITS, UNITS):
        both = moved[opened[i] & opened[j]]
        a = both.T @ both
        circulant = np.array([[np.mean([a[m, (m + q - p) % INPUTS] for m in range(INPUTS)])
                               for q in range(INPUTS)] for p in range(INPUTS)])  # fmt: skip
        far[i, j] = np.linalg.norm(a - circulant) / np.linalg.norm(a)
    assert_close(metrics["block_circulance_same"][0], np.trace(far) / UNITS, atol=1e-14)
    assert_close(metrics["block_circulance_other"][0], far[~np.eye(UNITS, dtype=bool)].mean())
    assert metrics["joint_violation"].isnull().all()
    assert metrics["joint_eigenvalue_error"].isnull().all()


@pytest.mark.parametrize("metric", ["gating_loss", "ring_structure"])
def test_datasets_without_a_distribution_are_refused(metric):
    for dataset in (
        {"name": "gaussian_mixture", "samples_per_component": 10, "inputs": 4},
        {"name": "single_pulse", "inputs": 8, "widths": [[4, 4], [2, 2]]},
        {"name": "table", "x": np.eye(4).tolist(), "y": [[1.0], [0.0], [1.0], [0.0]]},
    ):
        with pytest.raises(
            ValueError, match=rf"dataset.name: '{dataset['name']}': .* same distribution"
        ):
            gated_cell(metric, dataset=dataset, gates={"name": "always_on"})


@pytest.mark.parametrize("metric", ["frozen_gate_errata", "gating_loss", "ring_structure"])
@pytest.mark.parametrize(
    ("network", "message"),
    [
        ({"hidden": [2]}, r"network.hidden: \[2\].* give pathways of one unit"),
        ({"widths": [1] * 4}, r"network.widths: .* leave them out"),
        ({"readout": "trained"}, "network.readout: 'trained'.* use mean"),
        (
            {"gates": {"name": "learned"}, "hidden": [4]},
            "network.gates.name: 'learned'.* use gates",
        ),
    ],
)
def test_other_gated_networks_are_refused(metric, network, message):
    network = {"name": "gated", "gates": GATES["general"]} | MEAN | network
    with pytest.raises(ValueError, match=message):
        build_cell(RING | {"metrics": [metric], "network": network, "record": {"every": 10}})


@pytest.mark.parametrize("metric", ["gating_loss", "ring_structure"])
def test_gates_of_single_samples_are_refused(metric):
    with pytest.raises(ValueError, match=r"network.gates.name: 'per_example'.* gates of single"):
        gated_cell(metric, gates={"name": "per_example"})


# Errata ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=list(GATES))
def errata(request):
    cell = gated_cell("frozen_gate_errata", gates=GATES[request.param])
    trajectory = trained_trajectory(cell)
    return request.param, cell, trajectory, metrics_of(cell, trajectory)


APPLY = {"general": "7", "exclusive": "7 24", "redundant": "7 30 31"}


def test_equations_that_do_not_apply_are_undefined(errata):
    scheme, _, _, metrics = errata
    applies = np.isin(EQUATIONS, APPLY[scheme].split())
    for name in ("written_error", "corrected_error", "written_loss_error", "corrected_loss_error"):
        assert (metrics[name].notnull() == applies).all()


def written_as_printed(gates, data, start, pairs):
    """Weights of the equations as printed, by matrix functions of A."""
    z = gated_inputs(gates, data.x)
    a, b = z.T @ z / len(z), z.T @ data.y[:, 0] / len(z)
    inverse, decay = np.linalg.pinv(a, hermitian=True), expm(-a * TIME / UNITS)
    fixed, w0 = inverse @ b, start.ravel()
    null = np.eye(len(a)) - inverse @ a
    printed = {"7": fixed + decay @ (w0 - fixed - null @ w0) + null @ w0}
    printed |= {"24": printed["7"]}
    if pairs:
        first, second = [], []
        for k in range(0, UNITS, 2):
            a1 = a[k * INPUTS :, k * INPUTS :][:INPUTS, :INPUTS]
            half = UNITS * np.linalg.solve(a1, b[k * INPUTS :][:INPUTS]) / 2
            one = half + expm(-2 * a1 * TIME / UNITS**2) @ (start[k] - half)
            first.append(one)
            second.append(one - (start[k] - start[k + 1]))
        printed |= {"30": np.concatenate(first), "31": np.concatenate(second)}
    return printed


def test_equations_agree_with_matrix_functions(errata):
    scheme, cell, trajectory, metrics = errata
    data = cell.dataset.load()
    gates = cell.network.gates.gates(data)
    maps = UNITS * trajectory["pathway_maps"].values[:, :, :, :, 0]
    losses = trajectory["loss"].values
    for ensemble in np.ndindex(2, 2):
        start, end = maps[ensemble][0], maps[ensemble][-1]
        holds = frozen_weights(gates, data, start, TIME)
        printed = written_as_printed(gates, data, start, scheme == "redundant")
        own = metrics.isel(init_scale=ensemble[0], seed=ensemble[1])
        for equation in APPLY[scheme].split():
            units = {"30": slice(0, None, 2), "31": slice(1, None, 2)}.get(equation, slice(None))
            size = np.linalg.norm(end[units])
            error = np.linalg.norm((holds - end)[units]) / size
            assert_close(own["corrected_error"].sel(equation=equation), error, rtol=1e-6)
            far = abs(loss_of(holds, gates, data) - losses[ensemble][-1]) / losses[ensemble][0]
            assert_close(own["corrected_loss_error"].sel(equation=equation), far, rtol=1e-6)
            wrong = printed[equation]
            if scheme == "redundant" and equation in ("30", "31"):
                wrong = wrong.reshape(-1, INPUTS)
            else:
                wrong = wrong.reshape(start.shape)[units]
            error = np.linalg.norm(wrong - end[units]) / size
            assert_close(own["written_error"].sel(equation=equation), error, rtol=1e-6)
        # only the error of finite steps of gradient descent is left
        assert own["corrected_error"].sel(equation="7") < 0.02
        assert own["written_error"].sel(equation="7") > 0.2


def test_exclusive_pathways_learn_least_squares_on_their_samples():
    """Converged pathways, compared with the normal equations."""
    training = {"learning_rate": 20.0, "steps": 4000}
    cell = gated_cell(
        "frozen_gate_errata",
        gates=GATES["exclusive"],
        training=training,
        record=RING["record"] | {"every": 400, "observables": ["pathway_maps"]},
    )
    trajectory = trained_trajectory(cell)
    metrics, data = metrics_of(cell, trajectory)["least_squares_misfit"], cell.dataset.load()
    gates = cell.network.gates.gates(data)
    maps = trajectory["pathway_maps"].values[:, :, -1, :, 0]
    own = [np.linalg.solve((g * data.x.T) @ data.x, (g * data.x.T) @ data.y[:, 0]) for g in gates]
    everywhere = np.linalg.solve(data.x.T @ data.x, data.x.T @ data.y[:, 0])
    fits = {"own gate": own, "next gate": [*own[1:], own[0]], "all": [everywhere] * UNITS}
    assert metrics["fitted_on"].values.tolist() == list(fits)
    for name, fit in fits.items():
        for ensemble in np.ndindex(2, 2):
            far = np.linalg.norm(maps[ensemble] - fit) / np.linalg.norm(fit)
            assert_close(metrics.sel(fitted_on=name)[ensemble], far, rtol=1e-5, atol=1e-9)
    assert (metrics.sel(fitted_on="own gate") < 1e-6).all()
    assert (metrics.sel(fitted_on=["next gate", "all"]) > 0.3).all()


def test_drift_of_differences_of_neighbours(errata):
    scheme, _, trajectory, metrics = errata
    maps = trajectory["pathway_maps"].values[:, :, :, :, 0]
    for ensemble in np.ndindex(2, 2):
        before, after = (maps[ensemble][at][[0, 2]] - maps[ensemble][at][[1, 3]] for at in (0, -1))
        drift = np.linalg.norm(after - before) / np.linalg.norm(before)
        assert_close(metrics["difference_drift"][ensemble], drift, rtol=1e-6, atol=1e-12)
    assert (metrics["difference_drift"] < 1e-12).all() == (scheme == "redundant")
    assert metrics["least_squares_misfit"].notnull().all() == (scheme == "exclusive")


def test_shares_of_null_and_unreachable_modes(errata):
    _, cell, trajectory, metrics = errata
    data = cell.dataset.load()
    z = gated_inputs(cell.network.gates.gates(data), data.x)
    values, vectors = np.linalg.eigh(z.T @ z / len(z))
    moves = values > 1e-12 * values[-1]
    assert_close(metrics["null_share"], np.full((2, 2), 1 - moves.mean()), atol=1e-15)
    c = vectors.T @ z.T @ data.y[:, 0] / len(z)
    for ensemble in np.ndindex(2, 2):
        start = UNITS * trajectory["pathway_maps"].values[ensemble][0].ravel()
        negative = (values * (vectors.T @ start) - c)[moves] < 0
        assert_close(metrics["negative_coefficients"][ensemble], negative.mean())


def test_errata_need_squared_errors():
    with pytest.raises(ValueError, match=r"training.loss.name: 'cross_entropy'"):
        gated_cell("frozen_gate_errata", training=RING["training"] | CROSS_ENTROPY)


# Diverged runs -----------------------------------------------------------------------------------


def test_values_of_diverged_runs_are_undefined(relu, errata):
    scheme, cell, trajectory, _ = errata
    cells = (
        (relu_cell(["gate_prediction", "gate_refresh"], candidates=CANDIDATES), relu),
        (cell, trajectory),
    )
    for spec, whole in cells:
        metrics = metrics_of(spec, diverged(whole))
        for name, array in metrics.drop_vars(
            ["diverged_at", "refresh_interval"], errors="ignore"
        ).items():
            assert array.isel(init_scale=-1, seed=-1).isnull().all(), name
            if name != "least_squares_misfit" or scheme == "exclusive":
                assert array.isel(init_scale=0, seed=0).notnull().any(), name
