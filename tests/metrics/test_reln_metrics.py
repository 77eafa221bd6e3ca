"""Metrics of imitation and of gates, on networks whose gates and outputs are known."""

from importlib import import_module
from itertools import combinations, product

import numpy as np
import pytest
import xarray as xr
from cells import complete, made

from neuralrace.metrics.measure import metrics_dataset
from neuralrace.metrics.relu.gate_identification import elbow, reln_gates_found
from neuralrace.metrics.relu.imitation import on_plateau, scaling_disparity
from neuralrace.results.axes import axes, provenance_attributes
from neuralrace.results.schema import COORDINATES, build
from neuralrace.theory.reln.imitation import imitate, loss_gap, output_error

OBJECTS, CONTEXTS = 4, 3
SAMPLES = OBJECTS * CONTEXTS
SPEC = {
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


def make_cell(*metrics, **parts):
    return complete(SPEC | {"metrics": metrics} | parts)


def runs(cell, array):
    """The same array for every run."""
    return np.tile(array, (len(cell.init_scales), cell.seeds, *[1] * np.ndim(array)))


def record(cell, **arrays):
    coords = axes(cell, len(cell.dataset.load().x))
    arrays = {"loss": runs(cell, np.linspace(2, 1, len(coords["time"][1])))} | arrays
    arrays["diverged_at"] = np.full(arrays["loss"].shape[:2], -1)
    attrs = provenance_attributes("paper/experiment/main", cell, "train", ("numpy",))
    return build("trajectory", arrays, coords, attrs)


def theory(cell, **arrays):
    coords = {k: v for k, v in axes(cell, SAMPLES).items() if "snapshot" not in k}
    coords["candidate"] = ("candidate", np.array(list(cell.candidates)), "1")
    dims = ("init_scale", "seed", "candidate", "time")
    return xr.Dataset(
        {name: (dims, array) for name, array in arrays.items()},
        coords={name: (dim, values) for name, (dim, values, _) in coords.items()},
    )


def measure(cell, trajectory, solved=None):
    return metrics_dataset(made(cell, trajectory, solved))


def close(actual, expected, **tolerance):
    expected = np.asarray(expected, dtype=float)
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual.values, expected, **({"rtol": 1e-9} | tolerance))


def random(cell, *shape):
    return np.random.default_rng(7).normal(size=(len(cell.init_scales), cell.seeds, *shape))


# Imitation -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def imitated():
    """A cell whose network is one of its candidates, and the trajectory of that."""
    cell = make_cell("imitation", candidates=CANDIDATES)
    trained = imitate(cell, cell.candidates["pairs"]).variables
    snapshots = {name: trained[name][:, :, ::10] for name in ("outputs", "sample_similarity")}
    return cell, record(cell, loss=trained["loss"], **snapshots), trained


@pytest.fixture(scope="module")
def imitation(imitated):
    cell, trajectory, trained = imitated
    scale = np.array([1.0, 1.1])[:, None]
    predicted = np.stack([trained["loss"]] * 2, axis=2) * scale
    return measure(cell, trajectory, theory(cell, candidate_loss=predicted))


def test_a_candidate_imitates_itself(imitated, imitation):
    _, trajectory, _ = imitated
    own = imitation.sel(candidate="pairs")
    close(own["imitation_loss"], trajectory["loss"])
    close(own["imitation_gap"], np.zeros((1, 2)))
    close(own["imitation_output_error_curve"], np.zeros((1, 2, 5)), atol=1e-25)
    close(own["imitation_output_error"], np.zeros((1, 2)), atol=1e-25)
    close(own["similarity_correlation"], np.ones((1, 2)))
    close(own["scaling_disparity"], np.zeros((1, 2)), atol=1e-9)
    reached = own["imitation_time_ratio"].dropna("loss_level", how="all")
    assert reached["loss_level"].values.tolist()[:2] == [0.5, 0.2]
    close(reached, np.ones(reached.shape))


def test_another_candidate_does_not(imitated, imitation):
    cell, trajectory, _ = imitated
    other = imitation.sel(candidate="linear")
    trained = imitate(cell, cell.candidates["linear"]).variables
    loss = trajectory["loss"].values
    close(other["imitation_loss"], trained["loss"])
    gap = abs(trained["loss"] - loss).max(axis=-1) / loss[..., 0]
    close(other["imitation_gap"], gap)
    assert (gap > 0.01).all()
    error = other["imitation_output_error_curve"]
    close(other["imitation_output_error"], error.max("snapshot"))
    # a linear network never gets as far: at the end its own end is compared
    assert (trained["loss"].min(axis=-1) > loss[..., -1]).all()
    y = cell.dataset.load().y
    last = ((trained["outputs"][:, :, -1] - trajectory["outputs"].values[:, :, -1]) ** 2).sum(
        axis=(-2, -1)
    )
    close(error.isel(snapshot=-1), last / (y**2).sum())
    share = loss[..., ::10] / loss[..., :1]
    assert (other["imitation_plateau_error"] <= other["imitation_output_error"]).all()
    for seed in range(2):
        inner = range(1, 4)
        fall = [np.log(share[0, seed, n - 1] / share[0, seed, n + 1]) for n in inner]
        kept = [n for n in inner if 0.02 < share[0, seed, n] < 0.9]
        flattest = min(kept, key=lambda n: fall[n - 1])
        close(other["imitation_plateau_error"][0, seed], error.values[0, seed, flattest])
    above = np.triu_indices(SAMPLES, k=1)
    for seed in range(2):
        pair = (
            trained["sample_similarity"][0, seed, -1][above],
            trajectory["sample_similarity"].values[0, seed, -1][above],
        )
        correlation = np.corrcoef(*pair)[0, 1]
        close(other["similarity_correlation"][0, seed], correlation)
        assert correlation < 0.999


def test_times_are_those_of_interpolated_losses(imitated, imitation):
    _, trajectory, _ = imitated
    loss = trajectory["loss"].values
    linear = imitation["imitation_loss"].sel(candidate="linear").values
    time = trajectory["flow_time"].values
    for seed, level in product(range(2), (0.5, 0.2)):
        at = [np.interp(-level * loss[0, seed, 0], -each[0, seed], time) for each in (linear, loss)]
        ratio = imitation["imitation_time_ratio"].sel(candidate="linear", loss_level=level)
        close(ratio[0, seed], at[0] / at[1])
    assert imitation["imitation_time_ratio"].dims == (
        "init_scale", "seed", "candidate", "loss_level",
    )  # fmt: skip


def test_theory_splits_the_distance(imitated, imitation):
    _, trajectory, _ = imitated
    loss = trajectory["loss"].values
    close(imitation["candidate_prediction_gap"].sel(candidate="pairs"), np.zeros((1, 2)))
    close(imitation["prediction_gap"].sel(candidate="pairs"), np.zeros((1, 2)))
    close(imitation["prediction_gap"].sel(candidate="linear"), np.full((1, 2), 0.1))
    linear = imitation["imitation_loss"].sel(candidate="linear").values
    off = abs(linear - 1.1 * loss).max(axis=-1) / loss[..., 0]
    close(imitation["candidate_prediction_gap"].sel(candidate="linear"), off)
    whole, parts = imitation["prediction_gap"], imitation["candidate_prediction_gap"]
    assert (whole <= imitation["imitation_gap"] + parts + 1e-12).all()
    ratio = imitation["prediction_time_ratio"].sel(loss_level=0.5)
    close(ratio.sel(candidate="pairs"), np.ones((1, 2)))
    assert (ratio.sel(candidate="linear") > 1).all()


def test_without_theory_and_similarity_there_is_less(imitated, imitation):
    cell, trajectory, _ = imitated
    found = measure(cell, trajectory.drop_vars("sample_similarity"))
    gone = {
        "scaling_disparity",
        "similarity_correlation",
        "prediction_gap",
        "candidate_prediction_gap",
        "prediction_time_ratio",
    }
    assert set(imitation) - set(found) == gone
    xr.testing.assert_identical(found["imitation_gap"], imitation["imitation_gap"])


def test_disparity_is_what_shift_size_and_rotation_leave():
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
    found = scaling_disparity(np.stack([first, first]), pairs)
    np.testing.assert_allclose(found, [0, 1 - cosine**2], atol=1e-9)


def test_a_plateau_is_where_the_logarithm_is_flattest():
    share = [1, 0.99, 0.98, 0.6, 0.55, 0.5, 0.2, 0.1, 0.011, 0.01]
    loss = xr.DataArray(4 * np.array(share), {"time": np.arange(10)}, dims="time")
    assert np.flatnonzero(on_plateau(loss)).tolist() == [4]


def test_imitation_needs_candidates():
    with pytest.raises(ValueError, match=r"candidates: \{\}: give gated networks"):
        make_cell("imitation")


# Gate identification ---------------------------------------------------------------------------

COMMON, FIRST, SECOND, THIRD = (1, 1, 1), (1, 1, 0), (1, 0, 1), (0, 1, 1)
KNOWN = (COMMON, FIRST, SECOND, THIRD)


def context_encoder(*kinds):
    """Units that are open in given contexts, whatever the object."""
    return np.hstack([np.zeros((len(kinds), OBJECTS)), 2.0 * np.array(kinds) - 1])


@pytest.fixture(scope="module")
def identified():
    """Known pathways, found in units that are all common at first and lack two of them at last.

    Outputs are those of the network with these pathways, as wide as the units are many.
    """
    cell = make_cell("gate_identification")
    gates = {"name": "listed", "rows": KNOWN}
    network = {"name": "gated", "hidden": [1], "widths": [4, 2, 1, 1], "gates": gates}
    gated = make_cell(candidates={"known": network}).candidates["known"]
    trained = imitate(cell, gated).variables
    between = context_encoder(*[COMMON] * 4, *[FIRST] * 2, SECOND, THIRD)
    snapshots = [between] * 5
    snapshots[0] = context_encoder(*[COMMON] * 8)
    snapshots[-1] = context_encoder(*[COMMON] * 4, *[FIRST] * 4)
    trajectory = record(
        cell,
        loss=trained["loss"],
        outputs=trained["outputs"][:, :, ::10],
        weight_1=runs(cell, np.stack(snapshots)),
        weight_2=random(cell, 5, 28, 8),
    )
    with pytest.MonkeyPatch.context() as patch:
        module = import_module("neuralrace.metrics.relu.gate_identification")
        patch.setattr(module, "CLUSTERS", np.arange(1, 6))
        return cell, trajectory, measure(cell, trajectory)


def test_known_gates_are_identified(identified):
    _, _, found = identified
    by_sample = np.repeat(np.array(KNOWN), OBJECTS, axis=1)
    gates = found["identified_gates"].isel(init_scale=0).sel(source="training")
    close(gates.sel(clusters=4, pathway=slice(1, 4)), by_sample)
    close(found["identified_centroids"].isel(init_scale=0)
          .sel(source="training", clusters=1, pathway=1),
          np.array([37, 37, 30]).repeat(OBJECTS) / 40)  # fmt: skip
    shares = found["identified_share"].isel(init_scale=0).sel(source="training")
    close(shares.sel(clusters=4, pathway=slice(1, 4)), np.array([24, 10, 3, 3]) / 40)
    assert gates["sample"].values[:2].tolist() == ["0 in 0", "1 in 0"]
    for clusters in range(1, 6):
        known = clusters if clusters < 5 else 0  # there are only four distinct patterns
        assert int(shares.sel(clusters=clusters).notnull().sum()) == known
        assert (gates.sel(clusters=clusters).notnull().all("sample").sum()) == known


def test_error_vanishes_at_the_known_gates_alone(identified):
    cell, trajectory, found = identified
    error = found["identification_error"].isel(init_scale=0).sel(source="training")
    square = found["identification_mse"].isel(init_scale=0).sel(source="training")
    close(error.sel(clusters=4), [0.0, 0.0], atol=1e-25)
    close(square.sel(clusters=4), [0.0, 0.0], atol=1e-25)
    assert (error.sel(clusters=slice(1, 3)) > 1e-3).all()
    assert np.isnan(error.sel(clusters=5)).all()
    close(found["elbow"].sel(source="training"), [[4, 4]])
    gap = found["identification_gap"].isel(init_scale=0).sel(source="training")
    close(gap.sel(clusters=4), [0.0, 0.0], atol=1e-12)
    assert (gap.sel(clusters=slice(1, 3)) > 1e-3).all()
    # one cluster is open everywhere: a linear network, trained for two seeds
    linear = make_cell(candidates={"all": CANDIDATES["linear"]}).candidates["all"]
    trained = imitate(cell, linear)
    loss, outputs = trajectory["loss"].values, trajectory["outputs"].values
    y = cell.dataset.load().y
    own = output_error(loss[:, :, ::10], outputs, trained, y).max(axis=-1)
    close(error.sel(clusters=1), own[0])
    close(gap.sel(clusters=1), loss_gap(loss, trained.variables["loss"])[0])
    apart = trained.variables["outputs"][:, :, ::10] - outputs
    close(square.sel(clusters=1), (apart**2).mean(axis=(-3, -2, -1))[0])
    # and so is the only one of the start
    start = found["identification_error"].isel(init_scale=0).sel(source="start")
    close(start.sel(clusters=1), own[0])


def test_controls_have_the_gates_of_their_time(identified):
    _, _, found = identified
    error = found["identification_error"].isel(init_scale=0, run=0)
    assert error.sel(source="start").notnull().values.tolist() == [True] + [False] * 4
    close(found["elbow"].sel(source="start"), [[1, 1]])


def test_elbow_is_at_the_first_error_near_the_least():
    errors = [[9, 5, 2.1, 1.9, 1, 1.2], [9, 2, np.nan, 1, 3, 1], [np.nan] * 6]
    found = elbow(xr.DataArray(errors, {"clusters": np.arange(1, 7)}, dims=("source", "clusters")))
    close(found, [4, 2, np.nan])


def test_gates_of_the_paper_are_found_or_not(identified):
    _, _, found = identified
    share = found["reln_gates_found"].isel(init_scale=0)
    close(share.sel(source="training", clusters=4), 1)
    close(share.sel(source="start", clusters=1), 1 / 4)
    # both of a kind twice, and one that is half open in a context
    gates = xr.DataArray([[1, 0, 0, 1], [1, 0, 0, 1], [1, 0, 1, 1.0]], dims=("pathway", "sample"))
    close(reln_gates_found(gates, np.array([0, 1, 1, 0])), 1 / 3)


def test_gates_that_leave_samples_without_a_pathway_make_no_network():
    cell = make_cell("gate_identification")
    encoder = np.stack([context_encoder(*[(1, 0, 0)] * 8)] * 5)
    trajectory = record(
        cell,
        outputs=random(cell, 5, SAMPLES, 28),
        weight_1=runs(cell, encoder),
        weight_2=random(cell, 5, 28, 8),
    )
    found = measure(cell, trajectory)
    assert found["identification_error"].isnull().all()
    assert found["elbow"].isnull().all()
    first = np.array([1, 0, 0]).repeat(OBJECTS)
    gates = found["identified_gates"].sel(source="training", clusters=1, pathway=1)
    close(gates, first[None])


# Gate flips ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def flips():
    cell = make_cell("gate_flips", network=SPEC["network"] | {"hidden": [8, 6]})
    x = cell.dataset.load().x
    shapes = ((8, x.shape[1]), (6, 8), (28, 6))
    weights = [random(cell, 5, *shape) + 0.3 for shape in shapes]
    for layer in weights[:2]:
        layer[:, :, -1, 0] = 1  # open on every sample
    names = [f"weight_{n}" for n in (1, 2, 3)]
    return x, weights, measure(cell, record(cell, **dict(zip(names, weights, strict=True))))


def gates_of(weights, x):
    """Gates of each hidden layer, sample by sample: lists of (unit, sample)."""
    first = np.array([[w @ n > 0 for n in x] for w in weights[0]])
    hidden = np.array([np.maximum(weights[0] @ n, 0) for n in x])
    return first, np.array([[w @ h > 0 for h in hidden] for w in weights[1]])


def test_flips_unit_by_unit(flips):
    x, weights, found = flips
    for seed, layer in product(range(2), range(2)):
        at = [gates_of([w[0, seed, s] for w in weights], x)[layer] for s in range(5)]
        into, out = weights[layer][0, seed, -1], weights[layer + 1][0, seed, -1]
        power = [np.sqrt((w**2).sum() * (out[:, u] ** 2).sum()) for u, w in enumerate(into)]
        select = {"init_scale": 0, "seed": seed, "layer": layer}
        from_start = np.array([[(g != g0).mean() for g, g0 in zip(each, at[0], strict=True)]
                               for each in at])  # fmt: skip
        carried = from_start @ power / np.sum(power)
        close(found["gate_flip_fraction"].isel(select), from_start.mean(axis=1), atol=1e-15)
        close(found["carried_gate_flip_fraction"].isel(select), carried, atol=1e-15)
        recent = [np.nan] + [(a != b).mean() for a, b in zip(at[1:], at[:-1], strict=True)]
        close(found["recent_gate_flips"].isel(select), recent)
        close(found["final_gate_flips"].isel(select), from_start[-1].mean())
        close(found["final_carried_gate_flips"].isel(select), carried[-1])
        always = at[-1].all(axis=1)
        close(found["always_open_units"].isel(select), always.mean())
        close(found["always_open_share"].isel(select), always @ power / np.sum(power))
        assert always.any()
    assert found["layer"].values.tolist() == [1, 2]


def test_flips_between_any_two_snapshots(flips):
    x, weights, found = flips
    for seed, layer in product(range(2), range(2)):
        at = [gates_of([w[0, seed, s] for w in weights], x)[layer] for s in range(5)]
        select = {"init_scale": 0, "seed": seed, "layer": layer}
        between = [[(one != other).mean() for other in at] for one in at]
        close(found["gate_flips_between"].isel(select), between, atol=1e-15)
        units, samples = at[0].shape
        still = [
            len({bool(gates[unit, n]) for gates in at}) == 1
            for unit, n in product(range(units), range(samples))
        ]
        close(found["never_changed"].isel(select), np.mean(still))
        assert 0 < np.mean(still) < 1
    assert found["gate_flips_between"].dims == (
        "init_scale", "seed", "layer", "snapshot", "other_snapshot",
    )  # fmt: skip
    assert found["other_snapshot"].values.tolist() == found["snapshot"].values.tolist()
    assert "predicted_gate_flips" not in found  # the dataset has no law


def test_gates_that_stay_do_not_flip():
    cell = make_cell("gate_flips")
    encoder, readout = random(cell, 1, 8, 7), random(cell, 1, 28, 8)
    sizes = np.arange(1.0, 6)[:, None, None]
    found = measure(cell, record(cell, weight_1=encoder * sizes, weight_2=readout / sizes))
    close(found["gate_flip_fraction"], np.zeros((1, 2, 1, 5)))
    close(found["gate_flips_between"], np.zeros((1, 2, 1, 5, 5)))
    close(found["never_changed"], np.ones((1, 2, 1)))
    close(found["final_carried_gate_flips"], np.zeros((1, 2, 1)))


def test_a_diverged_network_has_no_gates():
    cell = make_cell("gate_flips", "context_selectivity")
    encoder, readout = random(cell, 5, 8, 7), random(cell, 5, 28, 8)
    encoder[:, 1, 3:], readout[:, 1, 3:] = np.nan, np.nan
    found = measure(cell, record(cell, weight_1=encoder, weight_2=readout))
    for name in ("final_gate_flips", "always_open_share", "carried_residual", "mean_open_contexts"):
        assert found[name].sel(seed=0).notnull().all()
        assert found[name].sel(seed=1).isnull().all()
    flips = found["gate_flip_fraction"].sel(seed=1).isel(init_scale=0, layer=0)
    assert flips.notnull().values.tolist() == [True] * 3 + [False] * 2
    between = found["gate_flips_between"].sel(seed=1).isel(init_scale=0, layer=0)
    assert between.notnull().values.tolist() == [[True] * 3 + [False] * 2] * 3 + [[False] * 5] * 2
    assert found["never_changed"].isel(init_scale=0, layer=0).isnull().values.tolist() == [
        False, True,
    ]  # fmt: skip


# Context selectivity ---------------------------------------------------------------------------


def parts_of(data):
    """The targets as answered by the best linear map, and the rest."""
    linear = data.x @ np.linalg.pinv(data.x) @ data.y
    return linear, data.y - linear


def test_what_units_carry_unit_by_unit():
    cell = make_cell("context_selectivity")
    data = cell.dataset.load()
    encoder, readout = random(cell, 5, 8, 7), random(cell, 5, 28, 8)
    # one unit that objects decide about too, on the edge of being open in a context
    encoder[:, :, :, 0] = [9, 9, -9, -9, 0, 0, 0]
    encoder[:, :, :, 1] = [-1, -2, -0.5, -1, 3, 0, 4]
    found = measure(cell, record(cell, weight_1=encoder, weight_2=readout))
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
            curve = found[f"carried_{name}_curve"].isel(init_scale=0, seed=seed, snapshot=at)
            close(curve, expected, atol=1e-12)
        if at == 4:
            close(found["carried_residual"][0, seed], carried["residual"], atol=1e-12)
            close(found["carried_common"][0, seed], carried["common"], atol=1e-12)
            close(found["context_gated_share"][0, seed], gated / total)
            close(found["mean_open_contexts"][0, seed], contexts / total)
            close(found["context_specific_share"][0, seed], specific / total, atol=1e-12)
            close(found["context_specific_units"][0, seed], alone / 8)
    assert found["open_contexts"].values.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("contexts", [3, 4])
@pytest.mark.parametrize("closed_in", [1, 2])
def test_a_network_of_context_pathways_carries_the_residual_in_them(contexts, closed_in):
    """An exact ReLU network: units in pairs make gated linear pathways of the objects."""
    open_in = contexts - closed_in
    cell = make_cell(
        "context_selectivity",
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
    # the units of one context each would carry some of it: none of the residual is theirs alone
    weights = {"weight_1": encoder, "weight_2": readout}
    stacked = {name: runs(cell, np.stack([w * 0, w])) for name, w in weights.items()}
    cell = cell.model_copy(update={"record": cell.record.model_copy(update={"snapshots": 1})})
    found = measure(cell, record(cell, **stacked)).isel(init_scale=0, seed=0)
    expected = np.zeros(contexts + 1)
    expected[open_in] = 1
    close(found["carried_residual"], expected, atol=1e-10)
    close(found["carried_common"].sum(), 1.0)
    close(found["mean_open_contexts"], open_in)
    close(found["context_gated_share"], 1.0)


def test_of_two_hidden_layers_the_last_counts():
    """A first layer that hands inputs on changes nothing."""
    one = make_cell("context_selectivity")
    encoder, readout = random(one, 5, 8, 7), random(one, 5, 28, 8)
    encoder[:, :, :, 0] = [0, 0, 0, 0, 1, -1, -1]  # on in the first context only
    alone = measure(one, record(one, weight_1=encoder, weight_2=readout))
    two = make_cell("context_selectivity", network=SPEC["network"] | {"hidden": [7, 8]})
    passed = runs(two, np.stack([np.eye(7)] * 5))
    found = measure(two, record(two, weight_1=passed, weight_2=encoder, weight_3=readout))
    assert (alone["context_specific_units"] >= 1 / 8).all()
    for name in alone.data_vars:
        np.testing.assert_allclose(found[name], alone[name], err_msg=str(name))


def test_targets_without_a_residual_have_none_to_carry():
    for part, missing in (("common", "residual"), ("residual", "common")):
        dataset = SPEC["dataset"] | {"part": part}
        cell = make_cell("context_selectivity", dataset=dataset)
        weights = {"weight_1": random(cell, 5, 8, 7), "weight_2": random(cell, 5, 28, 8)}
        found = measure(cell, record(cell, **weights))
        assert found[f"carried_{missing}"].isnull().all()
        assert found[f"carried_{part}"].notnull().all()


def test_selectivity_is_for_contexts():
    with pytest.raises(ValueError, match=r"dataset.name: 'xor': use one with contexts"):
        make_cell("context_selectivity", dataset={"name": "xor"})


# All -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["context_selectivity", "gate_flips", "gate_identification"])
def test_gates_are_those_of_relu_networks(name):
    with pytest.raises(ValueError, match=f"metrics: '{name}': .*network.activation: 'linear'"):
        make_cell(name, network={"name": "layered", "hidden": [8]})
    deep = SPEC["network"] | {"hidden": [8, 8]}
    if name == "gate_identification":
        with pytest.raises(ValueError, match="give exactly one hidden layer"):
            make_cell(name, network=deep)
    else:
        assert make_cell(name, network=deep).metrics == (name,)


def test_datasets_say_what_everything_is(imitation, identified, flips):
    for dataset in (imitation, identified[2], flips[2]):
        for name, array in dataset.data_vars.items():
            assert set(array.attrs) == {"long_name", "units"}, name
            assert array.dims[0] == "init_scale", name
            assert ("seed" in array.dims) == (
                not name.startswith(("identif", "elbow", "reln_gates"))
            ), name
        assert set(dataset.dims) <= set(dataset.coords)
        for name, coordinate in dataset.coords.items():
            assert coordinate.attrs["long_name"] == COORDINATES[name]
