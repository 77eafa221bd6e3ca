"""Scores of theories, on curves whose scores are known by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from builders import (
    LINEAR,
    MIXTURE,
    build_cell,
    flow_time,
    for_all_runs,
    metrics_of,
    random_for_runs,
    recorded_trajectory,
    theory_in_memory,
)
from neuralrace.extensions.registry import METRICS

SCORES = tuple(METRICS["theory_scores"].declaration.variables)
OF_LOSS = (
    "loss_error",
    "initial_loss_error",
    "loss_shape_error",
    "halfway_time_log_ratio",
    "final_loss_error",
)
CELL = build_cell(
    LINEAR,
    seeds=3,
    training={"learning_rate": 0.02, "steps": 100},
    record={"every": 1},
    solutions=["exact", "flow"],
    metrics=["theory_scores"],
)
SHORT = build_cell(
    LINEAR, seeds=3, record={"every": 10}, solutions=["exact"], metrics=["theory_scores"]
)
TIME = flow_time(CELL)
ROUNDING = 1e-12
"""Curves are interpolated at times that are sums of rounded numbers."""


def ramp(begin, end, cell=CELL):
    """A loss of 1 until a record, 0.2 from another one on, and straight between them."""
    records = np.arange(len(flow_time(cell)))
    return np.interp(records, [begin, end], [1.0, 0.2])


def scores(simulated, *predicted, cell=CELL, simulation=None, theory=None):
    """Scores of the cell's solutions, from a loss of the simulation and of each solution."""
    solved = {"loss": np.stack(predicted, axis=2)} if predicted else {}
    return metrics_of(
        cell,
        recorded_trajectory(cell, loss=simulated, **(simulation or {})),
        theory_in_memory(cell, cell.solutions, **solved, **(theory or {})),
    )


def of(metrics, entry):
    """The scores of an entry, each the same for all runs, as numbers."""
    values = metrics[[name for name in SCORES if name in metrics]].sel(entry=entry)
    for value in values.values():
        assert np.ptp(value.values) < ROUNDING or value.isnull().all()
    return {name: float(value[0, 0]) for name, value in values.items()}


@pytest.mark.parametrize("delay", [1, 7, 20, -1, -13])
def test_a_delayed_theory_has_the_right_shape_at_the_wrong_time(delay):
    simulated, predicted = (for_all_runs(CELL, ramp(20 + d, 60 + d)) for d in (0, delay))
    found = of(scores(simulated, predicted, simulated), "exact")
    assert found["loss_shape_error"] < ROUNDING
    # halfway in the middle of each ramp
    assert found["halfway_time_log_ratio"] == pytest.approx(abs(np.log((40 + delay) / 40)))
    # both are straight lines for most of the time, one delay apart
    assert found["loss_error"] == pytest.approx(0.8 * abs(delay) / 40)
    assert found["initial_loss_error"] == found["final_loss_error"] == 0


def test_a_scaled_theory_misses_the_start_most():
    simulated = for_all_runs(CELL, ramp(20, 60))
    found = of(scores(simulated, 1.3 * simulated, 0.9 * simulated), "exact")
    assert found["loss_error"] == pytest.approx(0.3)
    assert found["initial_loss_error"] == pytest.approx(0.3)
    assert found["final_loss_error"] == pytest.approx(0.3 * 0.2)
    # 1.3 (1 - 0.02 (n - 20)) = 0.6 at record n
    assert found["halfway_time_log_ratio"] == pytest.approx(np.log((70 - 30 / 1.3) / 40))


def test_errors_are_relative_to_the_initial_loss():
    simulated, predicted = (for_all_runs(CELL, ramp(20, end)) for end in (60, 50))
    one, thousand = (of(scores(c * simulated, c * predicted, simulated), "exact") for c in (1, 1e3))
    assert one == pytest.approx(thousand)


def test_a_theory_that_never_gets_halfway_counts_as_there_at_the_last_record():
    simulated, at_rest = for_all_runs(CELL, ramp(20, 60)), for_all_runs(CELL, np.ones(len(TIME)))
    found = of(scores(simulated, at_rest, simulated), "exact")
    assert found["halfway_time_log_ratio"] == pytest.approx(np.log(100 / 40))
    # without a time halfway there is nothing to shift
    assert found["loss_shape_error"] == found["loss_error"] == pytest.approx(0.8)


def test_a_theory_that_starts_below_halfway_counts_as_there_at_the_first_step():
    simulated = for_all_runs(CELL, ramp(20, 60))
    found = of(scores(simulated, 0.1 + 0 * simulated, simulated), "exact")
    assert found["halfway_time_log_ratio"] == pytest.approx(np.log(40 / 1))
    assert found["initial_loss_error"] == pytest.approx(0.9)


def test_a_theory_that_equals_the_simulation_has_errors_of_zero():
    loss = abs(random_for_runs(CELL, len(TIME))) + 0.1
    modes = random_for_runs(CELL, len(TIME), 2)
    found = scores(
        loss,
        loss,
        loss,
        simulation={"mode_strength": modes},
        theory={"mode_strength": np.stack([modes, modes], axis=2)},
    )
    for name in (*OF_LOSS, "mode_error"):
        assert (found[name].sel(entry=["exact", "flow"]) == 0).all()


def test_what_is_not_predicted_has_no_score():
    loss, modes = for_all_runs(CELL, ramp(20, 60)), random_for_runs(CELL, len(TIME), 2)
    unknown = np.full_like(loss, np.nan)
    found = scores(
        loss,
        loss,
        unknown,
        simulation={"mode_strength": modes, "layer_norm": modes},
        theory={"mode_strength": np.stack([0 * modes + np.nan, modes], axis=2)},
    )
    assert set(found) == {"diverged_at", *OF_LOSS, "mode_error", "layer_norm_error"}
    assert found["layer_norm_error"].sel(entry=["exact", "flow"]).isnull().all()
    assert found["layer_norm_error"].sel(entry="other_seeds").notnull().all()
    for name in OF_LOSS:
        assert found[name].sel(entry="exact").notnull().all()
        assert found[name].sel(entry="flow").isnull().all()
    assert found["mode_error"].sel(entry="exact").isnull().all()
    assert (found["mode_error"].sel(entry="flow") == 0).all()


def test_a_theory_without_any_loss_is_scored_by_what_it_predicts():
    loss, modes = for_all_runs(CELL, ramp(20, 60)), random_for_runs(CELL, len(TIME), 2)
    found = scores(
        loss,
        simulation={"mode_strength": modes},
        theory={"mode_strength": np.stack([modes, modes], axis=2)},
    )
    assert found["entry"].values.tolist() == ["exact", "flow", "other_seeds"]
    assert found["loss_error"].sel(entry=["exact", "flow"]).isnull().all()
    assert (found["mode_error"].sel(entry="exact") == 0).all()


def test_a_diverged_run_has_no_scores_and_the_others_keep_theirs():
    loss = for_all_runs(CELL, ramp(20, 60))
    whole = scores(loss, 1.1 * loss, loss)
    loss[1, 2, 30:] = np.nan
    diverged = np.full((2, 3), -1)
    diverged[1, 2] = 30
    found = scores(
        loss, 1.1 * np.nan_to_num(loss, nan=1.0), loss, simulation={"diverged_at": diverged}
    )
    theories = ["exact", "flow"]
    for name in set(OF_LOSS) - {"initial_loss_error"}:
        assert found[name].isel(init_scale=1, seed=2).isnull().all(), name
        kept = found[name].where(found["diverged_at"] < 0).sel(entry=theories)
        expected = whole[name].where(found["diverged_at"] < 0).sel(entry=theories)
        np.testing.assert_array_equal(kept, expected)
        # the others are compared with one another
        others = found[name].sel(entry="other_seeds")
        np.testing.assert_array_equal(others.isnull(), diverged >= 0)
        np.testing.assert_array_equal(others[1, :2], 0)  # both learn the same


def test_a_theory_that_blows_up_has_no_finite_score():
    loss = for_all_runs(CELL, ramp(20, 60))
    beyond = loss.copy()
    beyond[..., 50:] = np.nan
    found = scores(loss, beyond, loss).sel(entry="exact")
    for name in ("loss_error", "loss_shape_error", "halfway_time_log_ratio", "final_loss_error"):
        assert found[name].isnull().all(), name


def test_one_seed_has_no_other_seeds():
    cell = build_cell(CELL.model_dump(), seeds=1)
    loss = for_all_runs(cell, ramp(20, 60))
    found = scores(loss, loss, loss, cell=cell)
    for name in OF_LOSS:
        assert found[name].sel(entry="other_seeds").isnull().all()
        assert (found[name].sel(entry="exact") == 0).all()


def test_other_seeds_predict_the_mean_over_all_but_the_own_one():
    loss = abs(random_for_runs(CELL, len(TIME))) + 1
    modes = random_for_runs(CELL, len(TIME), 2)
    mean = np.stack([(loss[:, b] + loss[:, c]) / 2 for b, c in ((1, 2), (0, 2), (0, 1))], axis=1)
    as_theory = scores(loss, mean, loss, simulation={"mode_strength": modes})
    for name in OF_LOSS:
        by_hand, found = (as_theory[name].sel(entry=each) for each in ("exact", "other_seeds"))
        np.testing.assert_allclose(found, by_hand, rtol=1e-9, atol=ROUNDING, err_msg=name)
    solved = np.stack([modes, modes], axis=2)
    own = scores(
        loss, mean, loss, simulation={"mode_strength": modes}, theory={"mode_strength": solved}
    )
    others = np.stack([(modes[:, b] + modes[:, c]) / 2 for b, c in ((1, 2), (0, 2), (0, 1))], 1)
    expected = abs(others - modes).max(axis=(2, 3)) / abs(modes).max(axis=(2, 3))
    np.testing.assert_allclose(own["mode_error"].sel(entry="other_seeds"), expected)


def test_strengths_and_norms_are_compared_with_the_largest_of_their_run():
    loss, modes = for_all_runs(CELL, ramp(20, 60)), random_for_runs(CELL, len(TIME), 2)
    norms = 5 * random_for_runs(CELL, len(TIME), 2)[::-1]
    off = random_for_runs(CELL, len(TIME), 2)[:, ::-1]
    found = scores(
        loss,
        simulation={"mode_strength": modes, "layer_norm": norms},
        theory={
            "mode_strength": np.stack([modes + off, modes], axis=2),
            "layer_norm": np.stack([np.full_like(norms, np.nan), norms + off], axis=2),
        },
    )
    largest = abs(off).max(axis=(2, 3))
    expected = largest / abs(modes).max(axis=(2, 3))
    np.testing.assert_allclose(found["mode_error"].sel(entry="exact"), expected)
    expected = largest / abs(norms).max(axis=(2, 3))
    np.testing.assert_allclose(found["layer_norm_error"].sel(entry="flow"), expected)
    assert found["layer_norm_error"].sel(entry="exact").isnull().all()
    assert found["layer_norm_error"].sel(entry="other_seeds").notnull().all()


def test_zero_shot_errors_have_a_scale_of_their_own():
    cell = build_cell(SHORT.model_dump())
    loss = for_all_runs(cell, np.linspace(1, 0, 5))
    trajectory = recorded_trajectory(cell, loss=loss, untrained_error=0.01 * loss)
    predicted = {"loss": loss[:, :, None], "untrained_error": (0.01 * loss + 0.25)[:, :, None]}
    theory = theory_in_memory(cell, cell.solutions, **predicted)
    found = metrics_of(cell, trajectory, theory)["zero_shot_error"]
    np.testing.assert_allclose(found.sel(entry="exact"), 0.25)


def test_receptive_fields_are_compared_at_the_end():
    cell = build_cell(
        MIXTURE,
        record={"every": 1, "snapshots": 2, "observables": ["weights"]},
        solutions=["exact"],
        metrics=["theory_scores"],
    )
    loss = for_all_runs(cell, np.linspace(1, 0, 13))
    first = random_for_runs(cell, 3, 4, 3)
    trajectory = recorded_trajectory(
        cell, loss=loss, weight_1=first, weight_2=random_for_runs(cell, 3, 2, 4)
    )
    final = first[:, :, -1]
    predicted = {"receptive_fields": (final + 0.1 * first[:, :, 0])[:, :, None]}
    theory = theory_in_memory(cell, cell.solutions, loss=loss[:, :, None], **predicted)
    found = metrics_of(cell, trajectory, theory)["receptive_field_error"]
    expected = 0.1 * np.sqrt((first[:, :, 0] ** 2).sum((2, 3)) / (final**2).sum((2, 3)))
    np.testing.assert_allclose(found.sel(entry="exact"), expected)


LOSSES = arrays(float, (2, 3, 5), elements=st.floats(0.1, 10))
"""Losses of all runs of `SHORT`."""


@settings(max_examples=10)
@given(LOSSES, LOSSES, st.permutations(range(3)))
def test_scores_are_distances_whatever_the_order_of_seeds(simulated, predicted, order):
    found = scores(simulated, predicted, cell=SHORT)
    same = scores(simulated, simulated, cell=SHORT).sel(entry="exact")
    permuted = scores(simulated[:, order], predicted[:, order], cell=SHORT)
    for name in OF_LOSS:
        values = found[name].values
        assert ((values >= 0) | np.isnan(values)).all()
        assert (same[name] == 0).all()
        moved = permuted[name].values
        np.testing.assert_allclose(moved, values[:, order], rtol=1e-9, atol=ROUNDING, err_msg=name)
    equal = (simulated == predicted).all(axis=2)
    np.testing.assert_array_equal(found["loss_error"].sel(entry="exact") == 0, equal)
    for name, at in (("initial_loss_error", 0), ("final_loss_error", -1)):
        equal = simulated[..., at] == predicted[..., at]
        np.testing.assert_array_equal(found[name].sel(entry="exact") == 0, equal)
