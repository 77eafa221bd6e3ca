"""Metrics of imitation and of gates of ReLU networks, for networks with known gates and outputs."""

from functools import partial
from importlib import import_module
from itertools import combinations, product

import numpy as np
import pytest
import xarray as xr

from builders import (
    assert_close,
    cell_with_requirements,
    flow_time,
    for_all_runs,
    metrics_of,
    random_for_runs,
    recorded_trajectory,
    theory_in_memory,
)
from neuralrace.metrics.relu.gate_identification import elbow, reln_gates_found
from neuralrace.metrics.relu.imitation import scaling_disparity
from neuralrace.theory.reln.imitation import SmallestGraph, imitate, loss_gap, output_error
from neuralrace.training.trainer import train

OBJECTS, CONTEXTS = 4, 3
SAMPLES = OBJECTS * CONTEXTS
CONTEXTUAL = {
    "dataset": {"name": "contextual", "contexts": CONTEXTS, "objects": OBJECTS},
    "network": {"name": "layered", "hidden": [8], "activation": "relu"},
    "init": {"name": "normal"},
    "init_scales": [0.1],
    "seeds": 2,
    "training": {"learning_rate": 0.02, "steps": 80, "loss": {"normalisation": "half_sum"}},
    "record": {"every": 2, "snapshots": 4},
}
CANDIDATES = {
    "pairs": {
        "name": "gated",
        "hidden": [2],
        "widths": [3, 1, 1, 1],
        "gates": {"name": "contexts", "open_in": [2]},
    },
    "linear": {"name": "gated", "hidden": [8], "gates": {"name": "always_on"}},
}
relu_cell = partial(cell_with_requirements, base=CONTEXTUAL)


def recorded(cell, **arrays):
    """A trajectory; its loss falls on a straight line when absent."""
    falling = for_all_runs(cell, np.linspace(2, 1, 41))
    return recorded_trajectory(cell, **({"loss": falling} | arrays))


# Imitation ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def imitated():
    """A cell and the trajectory of one of its candidates, in place of a ReLU network."""
    cell = relu_cell(["imitation"], candidates=CANDIDATES)
    trained = imitate(cell, cell.candidates["pairs"]).variables
    snapshots = {name: trained[name][:, :, ::10] for name in ("outputs", "sample_similarity")}
    return cell, recorded(cell, loss=trained["loss"], **snapshots), trained


@pytest.fixture(scope="module")
def imitation(imitated):
    cell, trajectory, trained = imitated
    scale = np.array([1.0, 1.1])[:, None]
    predicted = np.stack([trained["loss"]] * 2, axis=2) * scale
    return metrics_of(cell, trajectory, theory_in_memory(cell, candidate_loss=predicted))


def test_candidate_imitates_itself(imitated, imitation):
    _, trajectory, _ = imitated
    own = imitation.sel(candidate="pairs")
    assert_close(own["imitation_loss"], trajectory["loss"])
    assert_close(own["imitation_gap"], np.zeros((1, 2)))
    assert_close(own["imitation_output_error_curve"], np.zeros((1, 2, 5)), atol=1e-25)
    assert_close(own["imitation_output_error"], np.zeros((1, 2)), atol=1e-25)
    assert_close(own["similarity_correlation"], np.ones((1, 2)))
    assert_close(own["scaling_disparity"], np.zeros((1, 2)), atol=1e-9)
    reached = own["imitation_time_ratio"].dropna("loss_level", how="all")
    assert reached["loss_level"].values.tolist()[:2] == [0.5, 0.2]
    assert_close(reached, np.ones(reached.shape))


def test_another_candidate_does_not_imitate(imitated, imitation):
    cell, trajectory, _ = imitated
    other = imitation.sel(candidate="linear")
    trained = imitate(cell, cell.candidates["linear"]).variables
    loss = trajectory["loss"].values
    assert_close(other["imitation_loss"], trained["loss"])
    gap = abs(trained["loss"] - loss).max(axis=-1) / loss[..., 0]
    assert_close(other["imitation_gap"], gap)
    assert (gap > 0.01).all()
    error = other["imitation_output_error_curve"]
    assert_close(other["imitation_output_error"], error.max("snapshot"))
    # a linear network never reaches the final loss, so its own end is compared
    assert (trained["loss"].min(axis=-1) > loss[..., -1]).all()
    y = cell.dataset.load().y
    last = ((trained["outputs"][:, :, -1] - trajectory["outputs"].values[:, :, -1]) ** 2).sum(
        axis=(-2, -1)
    )
    assert_close(error.isel(snapshot=-1), last / (y**2).sum())
    above = np.triu_indices(SAMPLES, k=1)
    for seed in range(2):
        pair = (
            trained["sample_similarity"][0, seed, -1][above],
            trajectory["sample_similarity"].values[0, seed, -1][above],
        )
        correlation = np.corrcoef(*pair)[0, 1]
        assert_close(other["similarity_correlation"][0, seed], correlation)
        assert correlation < 0.999


def test_graph_candidate_is_trained_as_it_is_written():
    graph = {
        "name": "graph",
        # more units than inputs and outputs together, so that fewer are trained
        "nodes": {"x": 7, "first": 20, "common": 50, "second": 3, "y": 28},
        "edges": [["x", "first"], ["first", "common"], ["first", "second"],
                  ["common", "y"], ["second", "y"]],
        "gates": {"second": [1, 0, 1]},
    }  # fmt: skip
    cell = relu_cell(["imitation"], candidates={"graph": graph, "linear": CANDIDATES["linear"]})
    record = {"every": 2, "snapshots": 40, "observables": ["outputs"]}
    alone = train(relu_cell([], network=graph, record=record)).variables
    similarity = np.outer(*[np.arange(SAMPLES, dtype=float)] * 2)
    learned = recorded(
        cell,
        loss=alone["loss"],
        outputs=alone["outputs"][:, :, ::10],
        sample_similarity=for_all_runs(cell, np.stack([similarity] * 5)),
    )
    metrics = metrics_of(cell, learned)
    assert_close(metrics["imitation_loss"].sel(candidate="graph"), alone["loss"])
    weights = SmallestGraph(
        *(cell.candidates["graph"], cell.candidates["graph"].examples(cell.dataset)),
        *(cell.init, cell.training),
    ).weights([0.1], [0])
    assert [w.shape[2:] for w in weights] == [(20, 7), (48, 20), (3, 20), (28, 48), (28, 3)]
    for name in ("imitation_gap", "imitation_output_error"):
        assert (metrics[name].sel(candidate="graph") < 1e-12).all()
        assert (metrics[name].sel(candidate="linear") > 1e-3).all()
    unknown = metrics["similarity_correlation"].isnull().all(["init_scale", "seed"])
    assert unknown.to_series().to_dict() == {"graph": True, "linear": False}


def test_imitation_times_agree_with_interpolation(imitated, imitation):
    _, trajectory, _ = imitated
    loss = trajectory["loss"].values
    linear = imitation["imitation_loss"].sel(candidate="linear").values
    time = trajectory["flow_time"].values
    for seed, level in product(range(2), (0.5, 0.2)):
        at = [np.interp(-level * loss[0, seed, 0], -each[0, seed], time) for each in (linear, loss)]
        ratio = imitation["imitation_time_ratio"].sel(candidate="linear", loss_level=level)
        assert_close(ratio[0, seed], at[0] / at[1])
    assert imitation["imitation_time_ratio"].dims == (
        "init_scale", "seed", "candidate", "loss_level",
    )  # fmt: skip


def test_theory_splits_the_distance_of_candidates(imitated, imitation):
    _, trajectory, _ = imitated
    loss = trajectory["loss"].values
    assert_close(imitation["candidate_prediction_gap"].sel(candidate="pairs"), np.zeros((1, 2)))
    assert_close(imitation["prediction_gap"].sel(candidate="pairs"), np.zeros((1, 2)))
    assert_close(imitation["prediction_gap"].sel(candidate="linear"), np.full((1, 2), 0.1))
    linear = imitation["imitation_loss"].sel(candidate="linear").values
    off = abs(linear - 1.1 * loss).max(axis=-1) / loss[..., 0]
    assert_close(imitation["candidate_prediction_gap"].sel(candidate="linear"), off)
    whole, parts = imitation["prediction_gap"], imitation["candidate_prediction_gap"]
    assert (whole <= imitation["imitation_gap"] + parts + 1e-12).all()
    ratio = imitation["prediction_time_ratio"].sel(loss_level=0.5)
    assert_close(ratio.sel(candidate="pairs"), np.ones((1, 2)))
    assert (ratio.sel(candidate="linear") > 1).all()


def test_theory_and_similarity_are_optional(imitated, imitation):
    cell, trajectory, _ = imitated
    metrics = metrics_of(cell, trajectory.drop_vars("sample_similarity"))
    gone = {
        "scaling_disparity",
        "similarity_correlation",
        "prediction_gap",
        "candidate_prediction_gap",
        "prediction_time_ratio",
    }
    assert set(imitation) - set(metrics) == gone
    xr.testing.assert_identical(metrics["imitation_gap"], imitation["imitation_gap"])


def test_disparity_ignores_shift_size_and_rotation():
    rng = np.random.default_rng(3)
    points = rng.normal(size=(9, 4))
    points -= points.mean(axis=0)
    turn, _ = np.linalg.qr(rng.normal(size=(4, 4)))
    moved = 3 * points @ turn
    far = points + 0.2 * rng.normal(size=points.shape)
    far -= far.mean(axis=0)
    first = points @ points.T
    # squared cosine of the best alignment, by singular values of the cross product
    cosine = np.linalg.svd(points.T @ far, compute_uv=False).sum()
    cosine /= np.linalg.norm(points) * np.linalg.norm(far)
    pairs = np.stack([moved @ moved.T, far @ far.T])
    disparities = scaling_disparity(np.stack([first, first]), pairs)
    np.testing.assert_allclose(disparities, [0, 1 - cosine**2], atol=1e-9)


def test_imitation_needs_candidates():
    with pytest.raises(ValueError, match=r"candidates: \{\}: give gated networks"):
        relu_cell(["imitation"])


# Outputs on plateaus -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rested():
    """A candidate in place of a ReLU network, ten records later, with a shift of its outputs."""
    training = CONTEXTUAL["training"] | {"steps": 400}
    parts = {"training": training, "record": {"every": 4}, "init_scales": [1e-4]}
    cell = relu_cell(["plateau_outputs", "plateaus"], candidates=CANDIDATES, **parts)
    trained = imitate(cell, cell.candidates["pairs"]).variables
    late = np.maximum(np.arange(101) - 10, 0)
    shift = np.random.default_rng(3).normal(size=(SAMPLES, 28))
    outputs = trained["outputs"][:, :, late]
    loss = trained["loss"][:, :, late]
    at_own_time = metrics_of(relu_cell(["plateaus"], **parts), loss=trained["loss"])
    metrics = metrics_of(cell, recorded(cell, loss=loss, output_curve=outputs + shift))
    # where each loss is nearest to that of a plateau, plateau by plateau
    level = at_own_time["plateau_level"].values[0]
    share = trained["loss"][0] / trained["loss"][0, :, :1]
    moments = abs(share[:, None] - level[..., None]).argmin(axis=-1)
    rest = np.stack([trained["outputs"][0, seed, at] for seed, at in enumerate(moments)])
    return cell, metrics.isel(init_scale=0), at_own_time.isel(init_scale=0), rest, shift


def test_outputs_are_compared_on_each_networks_own_plateaus(rested):
    cell, metrics, at_own_time, rest, shift = rested
    power = (cell.dataset.load().y ** 2).sum()
    own = metrics.sel(candidate="pairs")
    assert_close(own["plateau_output_error"], np.full((2, 2), (shift**2).sum() / power))
    other = ((rest + shift - rest[:, ::-1]) ** 2).sum(axis=(-2, -1)) / power
    assert_close(own["other_plateau_output_error"], other)
    assert_close(own["candidate_plateau_length"], at_own_time["plateau_length"])
    assert_close(metrics["plateau_length"], at_own_time["plateau_length"])
    moved = metrics["plateau_time"] - at_own_time["plateau_time"]
    assert_close(moved, np.full((2, 2), 10 * flow_time(cell)[1]))


def test_another_network_has_other_outputs_on_its_plateaus(rested):
    _, metrics, *_ = rested
    linear, own = (metrics["plateau_output_error"].sel(candidate=n) for n in ("linear", "pairs"))
    assert (abs(linear - own) > 1e-4).all()


def test_network_without_plateaus_has_no_outputs_there():
    cell = relu_cell(["plateau_outputs"], candidates=CANDIDATES, record={"every": 40})
    outputs = random_for_runs(cell, 3, SAMPLES, 28)
    loss = for_all_runs(cell, np.array([2.0, 1.5, 1.0]))
    metrics = metrics_of(cell, recorded(cell, loss=loss, output_curve=outputs))
    assert metrics["plateau_output_error"].isnull().all()


# Gate identification -----------------------------------------------------------------------------

COMMON, FIRST, SECOND, THIRD = (1, 1, 1), (1, 1, 0), (1, 0, 1), (0, 1, 1)
KNOWN = (COMMON, FIRST, SECOND, THIRD)


def context_encoder(*kinds):
    """Units that are open in some contexts, for all objects."""
    return np.hstack([np.zeros((len(kinds), OBJECTS)), 2.0 * np.array(kinds) - 1])


@pytest.fixture(scope="module")
def identified():
    """Known pathways of units that are all common at first, and that lack two kinds at the end.

    Outputs are those of the gated network with these pathways, of equal width.
    """
    cell = relu_cell(["gate_identification"])
    gates = {"name": "listed", "rows": KNOWN}
    network = {"name": "gated", "hidden": [1], "widths": [4, 2, 1, 1], "gates": gates}
    gated = relu_cell([], candidates={"known": network}).candidates["known"]
    trained = imitate(cell, gated).variables
    between = context_encoder(*[COMMON] * 4, *[FIRST] * 2, SECOND, THIRD)
    snapshots = [between] * 5
    snapshots[0] = context_encoder(*[COMMON] * 8)
    snapshots[-1] = context_encoder(*[COMMON] * 4, *[FIRST] * 4)
    trajectory = recorded(
        cell,
        loss=trained["loss"],
        outputs=trained["outputs"][:, :, ::10],
        weight_1=for_all_runs(cell, np.stack(snapshots)),
        weight_2=random_for_runs(cell, 5, 28, 8),
    )
    with pytest.MonkeyPatch.context() as patch:
        module = import_module("neuralrace.metrics.relu.gate_identification")
        patch.setattr(module, "CLUSTERS", np.arange(1, 6))
        return cell, trajectory, metrics_of(cell, trajectory)


def test_known_gates_are_identified(identified):
    _, _, metrics = identified
    by_sample = np.repeat(np.array(KNOWN), OBJECTS, axis=1)
    gates = metrics["identified_gates"].isel(init_scale=0).sel(source="training")
    assert_close(gates.sel(clusters=4, pathway=slice(1, 4)), by_sample)
    centroids = metrics["identified_centroids"].isel(init_scale=0).sel(source="training")
    mean = np.array([37, 37, 30]).repeat(OBJECTS) / 40
    assert_close(centroids.sel(clusters=1, pathway=1), mean)
    shares = metrics["identified_share"].isel(init_scale=0).sel(source="training")
    assert_close(shares.sel(clusters=4, pathway=slice(1, 4)), np.array([24, 10, 3, 3]) / 40)
    assert gates["sample"].values[:2].tolist() == ["0 in 0", "1 in 0"]
    for clusters in range(1, 6):
        known = clusters if clusters < 5 else 0  # there are only four distinct patterns
        assert int(shares.sel(clusters=clusters).notnull().sum()) == known
        assert (gates.sel(clusters=clusters).notnull().all("sample").sum()) == known


def test_error_vanishes_only_for_the_known_gates(identified):
    cell, trajectory, metrics = identified
    error = metrics["identification_error"].isel(init_scale=0).sel(source="training")
    square = metrics["identification_mse"].isel(init_scale=0).sel(source="training")
    assert_close(error.sel(clusters=4), [0.0, 0.0], atol=1e-25)
    assert_close(square.sel(clusters=4), [0.0, 0.0], atol=1e-25)
    assert (error.sel(clusters=slice(1, 3)) > 1e-3).all()
    assert np.isnan(error.sel(clusters=5)).all()
    assert_close(metrics["elbow"].sel(source="training"), [[4, 4]])
    gap = metrics["identification_gap"].isel(init_scale=0).sel(source="training")
    assert_close(gap.sel(clusters=4), [0.0, 0.0], atol=1e-12)
    assert (gap.sel(clusters=slice(1, 3)) > 1e-3).all()
    # one cluster is open everywhere: a linear network, trained for two seeds
    linear = relu_cell([], candidates={"all": CANDIDATES["linear"]}).candidates["all"]
    trained = imitate(cell, linear)
    loss, outputs = trajectory["loss"].values, trajectory["outputs"].values
    y = cell.dataset.load().y
    own = output_error(loss[:, :, ::10], outputs, trained, y).max(axis=-1)
    assert_close(error.sel(clusters=1), own[0])
    assert_close(gap.sel(clusters=1), loss_gap(loss, trained.variables["loss"])[0])
    apart = trained.variables["outputs"][:, :, ::10] - outputs
    assert_close(square.sel(clusters=1), (apart**2).mean(axis=(-3, -2, -1))[0])
    # the only cluster of the initial gates is open everywhere too
    start = metrics["identification_error"].isel(init_scale=0).sel(source="start")
    assert_close(start.sel(clusters=1), own[0])


def test_initial_gates_are_a_control(identified):
    _, _, metrics = identified
    error = metrics["identification_error"].isel(init_scale=0, run=0)
    assert error.sel(source="start").notnull().values.tolist() == [True] + [False] * 4
    assert_close(metrics["elbow"].sel(source="start"), [[1, 1]])


def test_elbow_is_at_the_first_error_near_the_least():
    errors = [[9, 5, 2.1, 1.9, 1, 1.2], [9, 2, np.nan, 1, 3, 1], [np.nan] * 6]
    errors = xr.DataArray(errors, {"clusters": np.arange(1, 7)}, ("source", "clusters"))
    assert_close(elbow(errors), [4, 2, np.nan])


def test_share_of_the_papers_gates(identified):
    _, _, metrics = identified
    share = metrics["reln_gates_found"].isel(init_scale=0)
    assert_close(share.sel(source="training", clusters=4), 1)
    assert_close(share.sel(source="start", clusters=1), 1 / 4)
    # one of the paper's gates, twice, and one that is half open in a context
    gates = xr.DataArray([[1, 0, 0, 1], [1, 0, 0, 1], [1, 0, 1, 1.0]], dims=("pathway", "sample"))
    assert_close(reln_gates_found(gates, np.array([0, 1, 1, 0])), 1 / 3)


def test_gates_of_the_last_of_two_hidden_layers_are_identified():
    """The first layer passes inputs on, so that the second has the gates of a single one."""
    cell = relu_cell(["gate_identification"], network=CONTEXTUAL["network"] | {"hidden": [7, 8]})
    between = context_encoder(*[COMMON] * 4, *[FIRST] * 2, SECOND, THIRD)
    trajectory = recorded(
        cell,
        outputs=random_for_runs(cell, 5, SAMPLES, 28),
        weight_1=for_all_runs(cell, np.stack([np.eye(7)] * 5)),
        weight_2=for_all_runs(cell, np.stack([between] * 5)),
        weight_3=random_for_runs(cell, 5, 28, 8),
    )
    metrics = metrics_of(cell, trajectory)
    gates = metrics["identified_gates"].isel(init_scale=0).sel(source="training", clusters=4)
    by_sample = np.repeat(np.array(KNOWN), OBJECTS, axis=1)
    assert_close(gates.sel(pathway=slice(1, 4)), by_sample)
    assert_close(metrics["reln_gates_found"].sel(clusters=4), np.ones((1, 2)))
    assert not {"identification_error", "identification_mse", "elbow"} & {*metrics}


def test_gates_that_leave_out_samples_make_no_network():
    cell = relu_cell(["gate_identification"])
    encoder = np.stack([context_encoder(*[(1, 0, 0)] * 8)] * 5)
    trajectory = recorded(
        cell,
        outputs=random_for_runs(cell, 5, SAMPLES, 28),
        weight_1=for_all_runs(cell, encoder),
        weight_2=random_for_runs(cell, 5, 28, 8),
    )
    metrics = metrics_of(cell, trajectory)
    assert metrics["identification_error"].isnull().all()
    assert metrics["elbow"].isnull().all()
    first = np.array([1, 0, 0]).repeat(OBJECTS)
    gates = metrics["identified_gates"].sel(source="training", clusters=1, pathway=1)
    assert_close(gates, first[None])


# Gate flips --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def flips():
    cell = relu_cell(["gate_flips"], network=CONTEXTUAL["network"] | {"hidden": [8, 6]})
    x = cell.dataset.load().x
    shapes = ((8, x.shape[1]), (6, 8), (28, 6))
    weights = [random_for_runs(cell, 5, *shape) + 0.3 for shape in shapes]
    for layer in weights[:2]:
        layer[:, :, -1, 0] = 1  # open on every sample
    names = [f"weight_{n}" for n in (1, 2, 3)]
    return x, weights, metrics_of(cell, recorded(cell, **dict(zip(names, weights, strict=True))))


def gates_of(weights, x):
    """Gates of each hidden layer, sample by sample: lists of (unit, sample)."""
    first = np.array([[w @ n > 0 for n in x] for w in weights[0]])
    hidden = np.array([np.maximum(weights[0] @ n, 0) for n in x])
    return first, np.array([[w @ h > 0 for h in hidden] for w in weights[1]])


def test_flips_unit_by_unit(flips):
    x, weights, metrics = flips
    for seed, layer in product(range(2), range(2)):
        at = [gates_of([w[0, seed, s] for w in weights], x)[layer] for s in range(5)]
        into, out = weights[layer][0, seed, -1], weights[layer + 1][0, seed, -1]
        power = [np.sqrt((w**2).sum() * (out[:, u] ** 2).sum()) for u, w in enumerate(into)]
        select = {"init_scale": 0, "seed": seed, "layer": layer}
        from_start = np.array([[(g != g0).mean() for g, g0 in zip(each, at[0], strict=True)]
                               for each in at])  # fmt: skip
        carried = from_start @ power / np.sum(power)
        assert_close(
            metrics["gate_flip_fraction"].isel(select), from_start.mean(axis=1), atol=1e-15
        )
        assert_close(metrics["carried_gate_flip_fraction"].isel(select), carried, atol=1e-15)
        recent = [np.nan] + [(a != b).mean() for a, b in zip(at[1:], at[:-1], strict=True)]
        assert_close(metrics["recent_gate_flips"].isel(select), recent)
        assert_close(metrics["final_gate_flips"].isel(select), from_start[-1].mean())
        assert_close(metrics["final_carried_gate_flips"].isel(select), carried[-1])
        always = at[-1].all(axis=1)
        assert_close(metrics["always_open_units"].isel(select), always.mean())
        assert_close(metrics["always_open_share"].isel(select), always @ power / np.sum(power))
        assert always.any()
    assert metrics["layer"].values.tolist() == [1, 2]


def test_flips_between_any_two_snapshots(flips):
    x, weights, metrics = flips
    for seed, layer in product(range(2), range(2)):
        at = [gates_of([w[0, seed, s] for w in weights], x)[layer] for s in range(5)]
        select = {"init_scale": 0, "seed": seed, "layer": layer}
        between = [[(one != other).mean() for other in at] for one in at]
        assert_close(metrics["gate_flips_between"].isel(select), between, atol=1e-15)
        units, samples = at[0].shape
        still = [
            len({bool(gates[unit, n]) for gates in at}) == 1
            for unit, n in product(range(units), range(samples))
        ]
        assert_close(metrics["never_changed"].isel(select), np.mean(still))
        assert 0 < np.mean(still) < 1
    assert metrics["gate_flips_between"].dims == (
        "init_scale", "seed", "layer", "snapshot", "other_snapshot",
    )  # fmt: skip
    assert metrics["other_snapshot"].values.tolist() == metrics["snapshot"].values.tolist()
    assert "predicted_gate_flips" not in metrics  # the dataset has no known distribution


def test_constant_gates_do_not_flip():
    cell = relu_cell(["gate_flips"])
    encoder, readout = random_for_runs(cell, 1, 8, 7), random_for_runs(cell, 1, 28, 8)
    sizes = np.arange(1.0, 6)[:, None, None]
    metrics = metrics_of(cell, recorded(cell, weight_1=encoder * sizes, weight_2=readout / sizes))
    assert_close(metrics["gate_flip_fraction"], np.zeros((1, 2, 1, 5)))
    assert_close(metrics["gate_flips_between"], np.zeros((1, 2, 1, 5, 5)))
    assert_close(metrics["never_changed"], np.ones((1, 2, 1)))
    assert_close(metrics["final_carried_gate_flips"], np.zeros((1, 2, 1)))


def test_diverged_network_has_no_gates():
    cell = relu_cell(["gate_flips", "context_selectivity"])
    encoder, readout = random_for_runs(cell, 5, 8, 7), random_for_runs(cell, 5, 28, 8)
    encoder[:, 1, 3:], readout[:, 1, 3:] = np.nan, np.nan
    metrics = metrics_of(cell, recorded(cell, weight_1=encoder, weight_2=readout))
    for name in ("final_gate_flips", "always_open_share", "carried_residual", "mean_open_contexts"):
        assert metrics[name].sel(seed=0).notnull().all()
        assert metrics[name].sel(seed=1).isnull().all()
    flips = metrics["gate_flip_fraction"].sel(seed=1).isel(init_scale=0, layer=0)
    assert flips.notnull().values.tolist() == [True] * 3 + [False] * 2
    between = metrics["gate_flips_between"].sel(seed=1).isel(init_scale=0, layer=0)
    assert between.notnull().values.tolist() == [[True] * 3 + [False] * 2] * 3 + [[False] * 5] * 2
    assert metrics["never_changed"].isel(init_scale=0, layer=0).isnull().values.tolist() == [
        False, True,
    ]  # fmt: skip


# Context selectivity -----------------------------------------------------------------------------


def parts_of(data):
    """The best linear map of the inputs, and the residual of the targets."""
    linear = data.x @ np.linalg.pinv(data.x) @ data.y
    return linear, data.y - linear


def test_carried_shares_unit_by_unit():
    cell = relu_cell(["context_selectivity"])
    data = cell.dataset.load()
    encoder, readout = random_for_runs(cell, 5, 8, 7), random_for_runs(cell, 5, 28, 8)
    # one unit whose gate also depends on the object, on the edge of being open in a context
    encoder[:, :, :, 0] = [9, 9, -9, -9, 0, 0, 0]
    encoder[:, :, :, 1] = [-1, -2, -0.5, -1, 3, 0, 4]
    metrics = metrics_of(cell, recorded(cell, weight_1=encoder, weight_2=readout))
    linear, residual = parts_of(data)
    for seed, at in product(range(2), range(5)):
        carried = {name: np.zeros(4) for name in ("residual", "common")}
        gated, contexts, total, specific, alone = 0.0, 0.0, 0.0, 0.0, 0
        for unit in range(8):
            h = [max(encoder[0, seed, at, unit] @ n, 0) for n in data.x]
            open_ = np.array(h).reshape(CONTEXTS, OBJECTS) > 0
            count = int((open_.sum(axis=1) > OBJECTS / 2).sum())
            for name, part in (("residual", residual), ("common", linear)):
                answers = np.outer(h, readout[0, seed, at, :, unit])
                share = (answers * part).sum() / (part**2).sum()
                carried[name][count] += share
                if name == "residual":
                    total += share
                    contexts += share * count
                    gated += share * all(len(set(context)) == 1 for context in open_.tolist())
                    only = sum(any(context) for context in open_.tolist()) == 1
                    specific += share * only
                    alone += only
            if unit < 2:
                assert count == 2 * unit
        for name, expected in carried.items():
            curve = metrics[f"carried_{name}_curve"].isel(init_scale=0, seed=seed, snapshot=at)
            assert_close(curve, expected, atol=1e-12)
        if at == 4:
            assert_close(metrics["carried_residual"][0, seed], carried["residual"], atol=1e-12)
            assert_close(metrics["carried_common"][0, seed], carried["common"], atol=1e-12)
            assert_close(metrics["context_gated_share"][0, seed], gated / total)
            assert_close(metrics["mean_open_contexts"][0, seed], contexts / total)
            assert_close(metrics["context_specific_share"][0, seed], specific / total, atol=1e-12)
            assert_close(metrics["context_specific_units"][0, seed], alone / 8)
    assert metrics["open_contexts"].values.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("contexts", [3, 4])
@pytest.mark.parametrize("closed_in", [1, 2])
def test_context_pathways_carry_the_residual(contexts, closed_in):
    """An exact ReLU network: units in pairs make gated linear pathways of the objects."""
    open_in = contexts - closed_in
    cell = relu_cell(
        ["context_selectivity"],
        dataset={"name": "contextual", "contexts": contexts, "objects": OBJECTS},
    )
    data = cell.dataset.load()
    kinds = [np.isin(range(contexts), c) for c in combinations(range(contexts), open_in)]
    encoder = [np.hstack([np.zeros(OBJECTS), own]) for own in np.eye(contexts)]
    for shown in [*kinds, np.ones(contexts)]:
        gate = np.where(shown, 1.0, -9)
        # x_o + 1 and 1 on the open contexts
        encoder += [np.hstack([own, gate]) for own in (*np.eye(OBJECTS), np.zeros(OBJECTS))]
    encoder = np.array(encoder)
    hidden = np.maximum(encoder @ data.x.T, 0)
    readout = np.linalg.lstsq(hidden.T, data.y, rcond=None)[0].T
    np.testing.assert_allclose(readout @ hidden, data.y.T, atol=1e-10)
    # units that are specific to one context must carry none of the residual
    weights = {"weight_1": encoder, "weight_2": readout}
    stacked = {name: for_all_runs(cell, np.stack([w * 0, w])) for name, w in weights.items()}
    cell = cell.model_copy(update={"record": cell.record.model_copy(update={"snapshots": 1})})
    metrics = metrics_of(cell, recorded(cell, **stacked)).isel(init_scale=0, seed=0)
    expected = np.zeros(contexts + 1)
    expected[open_in] = 1
    assert_close(metrics["carried_residual"], expected, atol=1e-10)
    assert_close(metrics["carried_common"].sum(), 1.0)
    assert_close(metrics["mean_open_contexts"], open_in)
    assert_close(metrics["context_gated_share"], 1.0)


def test_units_are_those_of_the_last_hidden_layer():
    """A first layer with identity weights changes nothing."""
    one = relu_cell(["context_selectivity"])
    encoder, readout = random_for_runs(one, 5, 8, 7), random_for_runs(one, 5, 28, 8)
    encoder[:, :, :, 0] = [0, 0, 0, 0, 1, -1, -1]  # on in the first context only
    alone = metrics_of(one, recorded(one, weight_1=encoder, weight_2=readout))
    two = relu_cell(["context_selectivity"], network=CONTEXTUAL["network"] | {"hidden": [7, 8]})
    passed = for_all_runs(two, np.stack([np.eye(7)] * 5))
    metrics = metrics_of(two, recorded(two, weight_1=passed, weight_2=encoder, weight_3=readout))
    assert (alone["context_specific_units"] >= 1 / 8).all()
    for name in alone.data_vars:
        np.testing.assert_allclose(metrics[name], alone[name], err_msg=str(name))


def test_carried_share_of_an_absent_part_is_undefined():
    for part, missing in (("common", "residual"), ("residual", "common")):
        dataset = CONTEXTUAL["dataset"] | {"part": part}
        cell = relu_cell(["context_selectivity"], dataset=dataset)
        weights = {
            "weight_1": random_for_runs(cell, 5, 8, 7),
            "weight_2": random_for_runs(cell, 5, 28, 8),
        }
        metrics = metrics_of(cell, recorded(cell, **weights))
        assert metrics[f"carried_{missing}"].isnull().all()
        assert metrics[f"carried_{part}"].notnull().all()
