"""Metrics of ReLU networks on XoR: cell types, decision boundary and fitted initial strength."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from networks_in_memory import constant_networks, random_networks

from builders import (
    RELU,
    assert_close,
    cell_with_requirements,
    flow_time,
    for_all_runs,
    metrics_of,
    random_for_runs,
    trained_trajectory,
)
from neuralrace.theory.xor import xor_start

few = settings(max_examples=8)
xor_cell = partial(cell_with_requirements, base=RELU)
margin_cell = partial(xor_cell, dataset={"name": "xor", "margin": 0.75})


# Functional cell types ---------------------------------------------------------------------------

ANGLES = np.deg2rad([225, 135, 315, 45])
"""Directions of the corners, in the order of the data."""
SIGNS = np.array([-1, 1, 1, -1])


def cell_types(angle, readout, length=1.0, cell=None):
    """Metrics of units with these final directions, and random ones before."""
    cell = cell or xor_cell(["cell_types"])
    encoder = length * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    weights = {"weight_1": encoder, "weight_2": readout[None]}
    arrays = {
        name: np.concatenate([random_for_runs(cell, 2, *w.shape), for_all_runs(cell, w[None])], 2)
        for name, w in weights.items()
    }
    metrics = metrics_of(cell, **arrays)
    assert all((metrics[name].isel(seed=0) == metrics[name]).all() for name in metrics)
    return metrics.isel(init_scale=0, seed=0)


@pytest.mark.parametrize("gated", [False, True], ids=["layered", "learned gates"])
def test_four_cell_types(gated):
    cell = None
    if gated:
        network = {"name": "gated", "hidden": [8], "gates": {"name": "learned"}}
        cell = xor_cell(["cell_types"], network=network)
    lengths = np.array([3.0, 1, 1, 1, 1, 1, 1, 1])
    metrics = cell_types(np.tile(ANGLES, 2), np.tile(2.0 * SIGNS, 2), lengths[:, None], cell)
    assert_close(metrics["corner_cosine"], 1.0)
    assert_close(metrics["matching_readouts"], 1.0)
    assert_close(metrics["corner_share"], [0.4, 0.2, 0.2, 0.2])
    assert_close(metrics["corners_occupied"], 4)
    assert metrics["corner"].values.tolist() == ["(-1, -1)", "(-1, +1)", "(+1, -1)", "(+1, +1)"]


def test_wrong_readouts_and_empty_corners():
    angle = np.repeat(ANGLES, [45, 45, 8, 2]) + 0.3
    readout = np.repeat(SIGNS, [45, 45, 8, 2]).astype(float)
    readout[:30] *= -1
    metrics = cell_types(angle, readout)
    assert_close(metrics["corner_cosine"], np.cos(0.3))
    assert_close(metrics["matching_readouts"], 0.7)
    assert_close(metrics["corner_share"], [0.45, 0.45, 0.08, 0.02])
    assert_close(metrics["corners_occupied"], 3)


def test_random_directions_are_no_cell_types():
    angle = (np.arange(2000) + 0.5) * 2 * np.pi / 2000
    readout = np.where(np.arange(2000) % 2, 1.0, -1.0)
    metrics = cell_types(angle, readout)
    assert_close(metrics["corner_cosine"], 4 / np.pi * np.sin(np.pi / 4), rtol=1e-4)
    assert_close(metrics["matching_readouts"], 0.5)


def test_diverged_network_has_no_cell_types():
    cell = xor_cell(["cell_types"])
    shapes = {"weight_1": (3, 6, 2), "weight_2": (3, 1, 6)}
    lost = {name: np.full((2, 3, *shape), np.nan) for name, shape in shapes.items()}
    metrics = metrics_of(cell, **lost)
    for name in ("corner_cosine", "matching_readouts", "corner_share", "corners_occupied"):
        assert metrics[name].isnull().all()


# Lottery tickets ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tickets():
    """A cell of 32 units, its trajectory and its metrics, for an eighth and a half of the units."""
    cell = xor_cell(
        ["lottery_tickets"],
        network={"name": "layered", "hidden": [32], "activation": "relu"},
        init_scales=[0.001, 0.01],
        training={"learning_rate": 0.05, "steps": 1200},
    )
    trajectory = trained_trajectory(cell)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("neuralrace.metrics.relu.lottery_tickets.SHARES", (1 / 2, 1 / 8))
        return cell, trajectory, metrics_of(cell, trajectory)


def test_tickets_learn_when_theory_says(tickets):
    _, _, metrics = tickets
    covered = (metrics["ticket_lost_examples"] == 0).sel(ticket=["winners", "losers"])
    assert covered.all()
    assert (metrics["ticket_half_time_error"].where(covered) > 0.02).sum() == 0
    times = metrics["ticket_half_time_over_whole"]
    assert (times.sel(ticket="winners") < times.sel(ticket="losers")).all()
    assert (times.sel(kept=1 / 2) < times.sel(kept=1 / 8)).sel(ticket=["winners", "losers"]).all()
    # what is left of the distance is the step, which the whole network has as well
    predicted = metrics["ticket_predicted_half_time_over_whole"].where(covered)
    assert abs(times / predicted - 1).max() < 0.005


def test_by_number_alone_winners_are_early_and_losers_late(tickets):
    _, _, metrics = tickets
    error = metrics["ticket_half_time_error_by_number"].sel(ticket=["winners", "losers"])
    assert (error > metrics["ticket_half_time_error"]).all()


def test_tickets_keep_the_loss_of_examples_that_no_unit_joins(tickets):
    cell, _, metrics = tickets
    final, lost = metrics["ticket_final_loss"], metrics["ticket_lost_examples"]
    assert lost.max() > 0
    assert_close(final, lost, rtol=0, atol=0.02)
    last = metrics["ticket_loss"].isel(time=-1) / metrics["ticket_predicted_loss"].isel(time=0)
    assert_close(final, last, rtol=0.01, atol=1e-9)
    assert metrics["ticket_loss"].sizes["time"] == cell.training.steps // cell.record.every + 1


def test_largest_units_are_those_of_the_trained_network(tickets):
    """The winners among them, counted unit by unit from the definition of the rules."""
    cell, trajectory, metrics = tickets
    data = cell.dataset.load()
    first, last = (trajectory.isel(snapshot=at) for at in (0, -1))
    overlap = np.empty((2, 3))
    for run in np.ndindex(overlap.shape):
        w, v = (first[f"weight_{n}"].values[run] for n in (1, 2))
        strength = np.array(
            [xor_start(w[[unit]], v[0, [unit]], data.x, data.y[:, 0]) for unit in range(32)]
        )
        winners = set(strength.argmax(axis=0))
        w, v = (last[f"weight_{n}"].values[run] for n in (1, 2))
        size = np.linalg.norm(w, axis=1) * abs(v[0])
        overlap[run] = len(winners & set(np.argsort(size)[-4:])) / 4
    own = metrics["ticket_winners"].sel(kept=1 / 8)
    assert_close(own.sel(ticket="largest"), overlap)
    assert_close(own.sel(ticket="winners"), np.ones((2, 3)))
    assert (metrics["ticket_winners"].sel(ticket="largest", kept=1 / 2) > 0.8).all()


# Fitted initial strength -------------------------------------------------------------------------


@pytest.mark.parametrize("start", [3e-7, 2e-3])
def test_initial_strength_is_recovered(start):
    """The closed form, without and with an error that no initial strength removes."""
    parts = {"training": {"learning_rate": 0.1, "steps": 400}, "record": {"every": 1}}
    cell = xor_cell(["fitted_start"], **parts)
    s, d, time = np.sqrt(2) / 4, 0.5, flow_time(cell)
    a = (s / d) / (1 + (s / (d * start) - 1) * np.exp(-2 * s * time))
    loss = (1 - np.sqrt(2) * a) ** 2 / 2
    metrics = metrics_of(cell, loss=for_all_runs(cell, loss))
    assert_close(metrics["fitted_start"], np.full((2, 3), start), rtol=1e-3)
    assert (metrics["fitted_loss_error_sup"] < 1e-3).all()
    assert (metrics["fitted_rival_error_sup"] > 0.05).all()
    off = metrics_of(cell, loss=for_all_runs(cell, loss + 0.02 * np.sin(40 * time)))
    assert_close(off["fitted_loss_error_sup"], np.full((2, 3), 0.04), rtol=0.1)
    # in the time of the rival, the rival fits and the paper's pathways do not
    fast = np.interp(np.sqrt(2) * time, time, loss)
    metrics = metrics_of(cell, loss=for_all_runs(cell, fast))
    assert (metrics["fitted_rival_error_sup"] < metrics["fitted_loss_error_sup"] / 5).all()


# Decision boundary -------------------------------------------------------------------------------


def boundary(margin, units):
    """Metrics of one network, (outgoing, incoming) weights unit by unit."""
    cell = xor_cell(["decision_boundary"], dataset={"name": "xor", "margin": margin})
    readout, encoder = zip(*units, strict=True)
    metrics = metrics_of(cell, constant_networks(cell, np.array(encoder), np.array([readout])))
    return metrics.isel(init_scale=0, seed=0)


def corners(margin):
    """The points of the task, label first."""
    return [(-a * b, np.array([a, b, -a * b * margin])) for a, b in product((-1.0, 1.0), repeat=2)]


def xor_units(margin, size):
    """A unit for each point, with an output of its label times `size`."""
    return [(y * size / (2 + margin**2), x) for y, x in corners(margin)]


def linear_units(margin, size):
    """A unit for each class, with equal outputs on both of its points."""
    return [(y * size / margin, np.array([0, 0, y])) for y in (1.0, -1.0)]


margins = st.floats(0.1, 1.4)  # beyond sqrt(2) a point has a positive product with the opposite one


@given(margin=margins, share=st.floats(0.01, 0.99), size=st.floats(0.1, 10))
@few
def test_units_of_both_types_share_the_output(margin, share, size):
    units = xor_units(margin, share * size) + linear_units(margin, (1 - share) * size)
    metrics = boundary(margin, units)
    assert_close(metrics["xor_share"], share)
    assert_close(metrics["linear_share"], 1 - share)
    assert_close(metrics["other_share"], 0.0)
    assert_close(metrics["nonlinearity_index"], share * size * 2 / (2 + margin**2))
    assert_close(metrics["nonlinearity_share"], share * size)


@given(
    margin=margins,
    normal=st.lists(st.floats(-2, 2), min_size=3, max_size=3),
    size=st.floats(0.1, 10),
)
@few
def test_linear_function_has_no_nonlinearity(margin, normal, size):
    normal = np.array(normal)
    metrics = boundary(margin, [(size, normal), (-size, -normal), *linear_units(margin, 1.0)])
    assert_close(metrics["nonlinearity_index"], 0.0, atol=1e-14)


def test_nonlinearity_is_half_the_difference_of_outputs():
    """As in the paper, for equal outputs on both points of a class."""
    margin = 0.6
    units = [(0.3, np.array([1.0, -1, 0.2])), (0.3, np.array([-1.0, 1, 0.2]))]
    metrics = boundary(margin, units)
    # f(1, -1, 0) = 0.3 * 2, and f(1, 1, 0) = 0
    assert_close(metrics["nonlinearity_index"], 0.3)


def test_units_open_on_both_classes_are_other():
    margin = 1.0
    # open on (1, -1, 1) and (1, 1, -1), where it is 3 and 1: it carries 2 of 2 + 4 * 3/3
    units = [(1.0, np.array([2.0, -0.25, 0.75])), *xor_units(margin, 1.0)]
    metrics = boundary(margin, units)
    assert_close(metrics["other_share"], 2 / 6)
    assert_close(metrics["xor_share"], 4 / 6)
    assert_close(metrics["linear_share"], 0.0)


def test_unit_on_the_edge_of_a_sample_is_closed_there():
    # (1, 1, 0) is 0 on both points of the positive class
    metrics = boundary(1.0, [(-1.0, np.array([1.0, 1.0, 0.0]))])
    assert_close(metrics["xor_share"], 1.0)


def test_decision_boundary_sample_by_sample():
    margin, kinds = 0.75, ("xor", "linear", "other")
    cell = margin_cell(["decision_boundary"])
    weights = random_networks(cell, (6, 3), (1, 6))
    metrics = metrics_of(cell, **weights)
    at = metrics["nonlinearity_index_curve"]
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
            share = metrics[f"{kind}_share_curve"].values[ensemble]
            np.testing.assert_allclose(share, value / sum(carried.values()), rtol=1e-9)
    for name in ("nonlinearity_index", "nonlinearity_share", *(f"{k}_share" for k in kinds)):
        assert_close(metrics[name], metrics[f"{name}_curve"][..., -1].values)
        assert "snapshot" not in metrics[name].coords


def test_decision_boundary_of_a_diverged_run_is_undefined():
    cell = margin_cell(["decision_boundary"])
    weights = random_networks(cell, (6, 3), (1, 6))
    for weight in weights.values():
        weight[0, 1] = np.nan
    metrics = metrics_of(cell, **weights)
    for name in ("nonlinearity_index", "xor_share", "linear_share", "other_share"):
        undefined = metrics[name].isnull()
        assert undefined.sum() == 1
        assert undefined[0, 1]


def test_predicted_share_agrees_with_a_trained_network():
    """Theory from the initial weights, compared with the trained units."""
    cell = xor_cell(
        ["decision_boundary"],
        dataset={"name": "xor", "margin": 0.9},
        network={"name": "layered", "hidden": [32], "activation": "relu"},
        init_scales=[0.001],
        seeds=3,
        training={"learning_rate": 0.02, "steps": 1500},
        record={"every": 1500, "snapshots": 1, "observables": ["weights"]},
    )
    metrics = metrics_of(cell, trained_trajectory(cell))
    assert (metrics["xor_share_error"] < 0.02).all()
    assert metrics["predicted_xor_share"].std("seed").item() > 0.02  # runs differ
    assert_close(
        metrics["xor_share"] + metrics["linear_share"] + metrics["other_share"], np.ones((1, 3))
    )
