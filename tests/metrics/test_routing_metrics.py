"""Metrics of routing networks, against loops over domains and curves in closed form."""

from functools import partial
from itertools import permutations, product

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
    results_in_memory,
    theory_in_memory,
)
from neuralrace.datasets.routing import Routing
from neuralrace.errors import UserError
from neuralrace.theory.routing import routing_mode

S = np.sqrt([185, 41, 9, 9]) / 4
"""Singular values of one pair's sigma_yx, averaged over its four items; sigma_xx is I/4."""
TARGET = np.sqrt([185, 41, 9, 9])
ROUTING = {
    "dataset": {"name": "routing", "count": 4},
    "network": {
        "name": "routing",
        "hidden": [6, 6],
        "gates": {"name": "always_on"},
        "pairs": {"name": "random_regular", "partners": 2},
    },
    "init": {"name": "orthogonal"},
    "init_scales": [0.2, 0.5],
    "seeds": 3,
    "training": {"learning_rate": 0.01, "steps": 4000},
    "record": {"every": 4, "snapshots": 2},
}
LONG = {
    "training": {"learning_rate": 0.04, "steps": 4000},
    "record": {"every": 1},
}
routing_cell = partial(cell_with_requirements, base=ROUTING)


def cell_with_pairs(metric, count, pairs, **network):
    return routing_cell(
        [metric],
        dataset={"name": "routing", "count": count},
        network=ROUTING["network"] | {"pairs": pairs} | network,
    )


def positive(cell, *shape):
    """Positive numbers, others for every run."""
    return 0.1 + abs(random_for_runs(cell, *shape))


# Task --------------------------------------------------------------------------------------------


def test_modes_are_those_of_one_pair(monkeypatch):
    def load(_):
        raise AssertionError("samples of all pairs side by side")

    monkeypatch.setattr(Routing, "load", load)
    cell = routing_cell([])
    results = results_in_memory(cell, recorded_trajectory(cell, samples=4))
    assert_close(results.target, TARGET)
    np.testing.assert_array_equal(results.modes, [1, 2, 3, 4])
    np.testing.assert_allclose(results.data.modes.s, S)
    np.testing.assert_allclose(results.data.modes.d, 1 / 4)
    assert results.data.modes.joint


def test_trained_pairs_depend_on_the_seed():
    cell = routing_cell([])
    trajectory = recorded_trajectory(cell).isel(seed=[2, 0])
    pairs = results_in_memory(cell, trajectory).trained_pairs
    for row, seed in enumerate((2, 0)):
        np.testing.assert_array_equal(pairs[row], cell.network.mask(cell.dataset.count, seed))
    assert (pairs[0] != pairs[1]).any()


def test_layered_networks_keep_their_whole_dataset():
    cell = routing_cell([], network={"name": "layered", "hidden": [6]})
    results = results_in_memory(cell, recorded_trajectory(cell))
    assert results.data.x.shape == (4 * 16, 4 * 4)
    with pytest.raises(UserError, match=r"network.name: 'layered': .*routing networks"):
        _ = results.trained_pairs
    cell = routing_cell([], dataset={"name": "xor"}, network={"name": "layered", "hidden": [6]})
    with pytest.raises(UserError, match=r"dataset.name: 'xor': has no domains"):
        _ = results_in_memory(cell, recorded_trajectory(cell)).domains


# Zero-shot error ---------------------------------------------------------------------------------


def zero_shot(trained, untrained):
    cell = routing_cell(["zero_shot"], init_scales=[1.0], seeds=1)
    errors = {"trained_error": trained, "untrained_error": untrained}
    curves = {name: for_all_runs(cell, error(flow_time(cell))) for name, error in errors.items()}
    return metrics_of(cell, **curves).isel(init_scale=0, seed=0)


def test_zero_shot_of_exponential_errors():
    metrics = zero_shot(lambda t: np.exp(-t), lambda t: 0.02 + 0.98 * np.exp(-t / 3))
    assert_close(metrics["final_trained_error"], np.exp(-40.0))
    assert_close(metrics["final_untrained_error"], 0.02, rtol=1e-3)
    assert_close(metrics["zero_shot_gap"], 0.02, rtol=1e-3)
    assert_close(metrics["zero_shot_ratio"], 0.98, rtol=1e-3)
    assert_close(metrics["untrained_delay"], 3 * np.log(0.98 / 0.08) / np.log(10), rtol=1e-3)


def test_nothing_transfers_if_the_untrained_error_stays():
    metrics = zero_shot(lambda t: np.exp(-t), np.ones_like)
    assert_close(metrics["zero_shot_ratio"], 0.0)
    assert_close(metrics["zero_shot_gap"], 1.0)
    assert metrics["untrained_delay"].isnull()


def test_zero_shot_ratio_is_undefined_if_nothing_is_learned():
    assert zero_shot(lambda t: 1 + t, lambda t: 1 + 2 * t)["zero_shot_ratio"].isnull()


def test_zero_shot_is_undefined_without_untrained_pairs():
    metrics = zero_shot(lambda t: np.exp(-t), lambda t: np.full_like(t, np.nan))
    for name in ("final_untrained_error", "zero_shot_gap", "zero_shot_ratio", "untrained_delay"):
        assert metrics[name].isnull()
    assert_close(metrics["final_trained_error"], np.exp(-40.0))


# Representations ---------------------------------------------------------------------------------


def similarity(cell, hidden):
    """Inner products of hidden vectors (init_scale, seed, snapshot, domain, item, unit)."""
    flat = hidden.reshape(*hidden.shape[:3], -1, hidden.shape[-1])
    return recorded_trajectory(cell, similarity=flat @ flat.mT)


def hidden_vectors(cell, count):
    shape = (len(cell.init_scales), cell.seeds, 3, count, 4, 6)
    return np.random.default_rng(5).normal(size=shape)


@pytest.mark.parametrize(
    ("count", "pairs"),
    [
        (6, {"name": "random_regular", "partners": 2}),
        (10, {"name": "band", "partners": 4}),
        (7, {"name": "band", "partners": 4}),
        (3, {"name": "all"}),
        (3, {"name": "band", "partners": 1}),
    ],
    ids=["random", "band of 10", "band of 7", "all", "dedicated"],
)
def test_similarities_pair_by_pair(count, pairs):
    cell = cell_with_pairs("shared_representation", count, pairs)
    hidden = hidden_vectors(cell, count)
    metrics = metrics_of(cell, similarity(cell, hidden))
    expected: dict[str, np.ndarray] = {}
    for scale, seed, (when, at) in product(range(2), range(3), (("initial", 0), ("final", 2))):
        h = hidden[scale, seed, at]
        unit = h / np.linalg.norm(h, axis=-1, keepdims=True)
        mask = cell.network.mask(cell.dataset.count, seed)
        groups: dict[str, list[float]] = {"across": [], "together": [], "never_together": []}
        for i, j in permutations(range(count), 2):
            same = [float(unit[i, item] @ unit[j, item]) for item in range(4)]
            together = any(mask[i, output] and mask[j, output] for output in range(count))
            groups["across"] += same
            groups["together" if together else "never_together"] += same
        groups["within"] = [
            float(unit[i, a] @ unit[i, b])
            for i in range(count)
            for a, b in permutations(range(4), 2)
        ]
        for name, values in groups.items():
            mean = np.mean(values) if values else np.nan
            expected.setdefault(f"{when}_similarity_{name}", np.zeros((2, 3)))[scale, seed] = mean
    for name, values in expected.items():
        assert_close(metrics[name], values)
    nowhere = [name for name, values in expected.items() if np.isnan(values).all()]
    assert len(nowhere) == (0 if count in (6, 10) else 2)


def test_identical_encoders_are_fully_shared():
    cell = cell_with_pairs("shared_representation", 3, {"name": "band", "partners": 2})
    shared = np.repeat(hidden_vectors(cell, 1), 3, axis=3)
    lengths = np.random.default_rng(6).uniform(0.1, 9, size=(3, 4, 1))
    metrics = metrics_of(cell, similarity(cell, shared * lengths))
    assert_close(metrics["final_similarity_across"], np.ones((2, 3)))
    assert_close(metrics["final_similarity_together"], np.ones((2, 3)))
    assert (metrics["final_similarity_within"] < 0.9).all()


def test_dimension_of_representations():
    """Compared with singular values of the hidden vectors."""
    cell = cell_with_pairs("shared_representation", 3, {"name": "band", "partners": 2})
    hidden = hidden_vectors(cell, 3)
    metrics = metrics_of(cell, similarity(cell, hidden))
    power = np.linalg.svd(hidden.reshape(2, 3, 3, 12, 6), compute_uv=False) ** 2
    dimension = power.sum(-1) ** 2 / (power**2).sum(-1)
    assert_close(metrics["initial_dimension"], dimension[:, :, 0])
    assert_close(metrics["final_dimension"], dimension[:, :, 2])
    assert "final_weight_cosine" not in metrics


# Singular values of layers -----------------------------------------------------------------------


def singular_values(cell, *layers):
    """Recorded singular values: those of the layers at the end, random ones before."""
    width = max(len(layer) for layer in layers)
    last = np.full((len(layers), width), np.nan)
    for row, layer in zip(last, layers, strict=True):
        row[: len(layer)] = layer
    values = for_all_runs(cell, np.tile(last, (len(flow_time(cell)), 1, 1)))
    values[:, :, :-1] *= 0.5 + positive(cell, values.shape[2] - 1, len(layers), 1)
    return recorded_trajectory(cell, singular_values=values)


def test_ratios_of_shared_layers():
    cell = routing_cell(["value_ratio"])
    b_in, b_hidden, b_out = [4.0, 2, 1, 1], [10.0, 6, 4, 3, 0.2, 0.2], [5.0, 2, 2, 1]
    metrics = metrics_of(cell, singular_values(cell, b_in, b_hidden, b_out))
    by_input, by_output = np.array([2.5, 3, 4, 3]), np.array([2.0, 3, 2, 3])
    assert_close(metrics["hidden_over_input_over_sqrt_m"], for_all_runs(cell, by_input / 2))
    assert_close(
        metrics["hidden_over_input_over_sqrt_k"], for_all_runs(cell, by_input / np.sqrt(2))
    )
    assert_close(metrics["hidden_over_output_over_sqrt_m"], for_all_runs(cell, by_output / 2))
    assert_close(
        metrics["hidden_over_output_over_sqrt_k"], for_all_runs(cell, by_output / np.sqrt(2))
    )


def test_ratios_in_groups_count_the_domains_of_a_block():
    gates = {"name": "groups", "size": 2}
    cell = cell_with_pairs("value_ratio", 4, {"name": "band", "partners": 1}, gates=gates)
    metrics = metrics_of(cell, singular_values(cell, [1.0] * 4, [3.0] * 6, [1.0] * 4))
    assert_close(
        metrics["hidden_over_input_over_sqrt_m"], for_all_runs(cell, np.full(4, 3 / np.sqrt(2)))
    )
    assert_close(metrics["hidden_over_input_over_sqrt_k"], for_all_runs(cell, np.full(4, 3.0)))


def test_ratios_average_hidden_layers_and_leave_out_missing_modes():
    cell = cell_with_pairs("value_ratio", 4, {"name": "all"}, hidden=[3, 3, 3])
    metrics = metrics_of(cell, singular_values(cell, [1.0] * 3, [1.0] * 3, [3.0] * 3, [1.0] * 3))
    assert_close(metrics["hidden_over_input_over_sqrt_m"], for_all_runs(cell, [1.0, 1, 1, np.nan]))


def routing_path(cell, start, slower=1.0):
    """Strengths (time, layer, mode) of a routing network on all pairs, from an aligned start."""
    start = np.tile(np.array(start)[:, None], 4)
    return routing_mode(flow_time(cell) / slower, S, np.full(4, 0.25), start, 4, 1 / 4)


def test_final_ratio_follows_from_the_conserved_quantity():
    cell = routing_cell(["value_ratio"], **LONG)
    path = routing_path(cell, [0.05, 0.02, 0.05])
    metrics = metrics_of(cell, singular_values=for_all_runs(cell, path))
    c = 4 * 0.05**2 - 0.02**2
    hidden = path[-1, 1]
    assert_close(
        metrics["hidden_over_input_over_sqrt_m"],
        for_all_runs(cell, np.sqrt(hidden**2 / (hidden**2 + c))),
    )
    assert (abs(metrics["hidden_over_input_over_sqrt_m"] - 1) < 1e-2).all()


def test_hidden_layer_grows_faster_and_is_half_way_at_the_same_time():
    """From a start with q b_in^2 = b_h^2, b_h = sqrt(q) b_in at all times."""
    cell = routing_cell(["value_ratio"], **LONG)
    path = routing_path(cell, [0.01, 0.02, 0.01])
    metrics = metrics_of(cell, singular_values=for_all_runs(cell, path))
    assert_close(metrics["hidden_over_input_speed"], np.full((2, 3, 4), 2.0), rtol=1e-6)
    assert_close(metrics["hidden_over_input_own_time"], np.ones((2, 3, 4)), rtol=1e-6)
    time, level = flow_time(cell), path[-1, 0] / 2
    hidden, outer = (
        [np.interp(level[mode], path[:, layer, mode], time) for mode in range(4)]
        for layer in (1, 0)
    )
    assert_close(
        metrics["hidden_over_input_time"], for_all_runs(cell, np.divide(hidden, outer)), rtol=1e-6
    )
    assert (metrics["hidden_over_input_time"] < 1).all()
    assert "value_error_mean" not in metrics


def test_distance_of_singular_values_from_theory():
    cell = routing_cell(["value_ratio"], **LONG)
    path = routing_path(cell, [0.05, 0.02, 0.05])
    wide = np.concatenate([path, np.full((*path.shape[:2], 2), 0.02)], axis=-1)
    late = routing_path(cell, [0.05, 0.02, 0.05], 1.5)
    predicted = theory_in_memory(
        cell,
        ("routing_race", "reduction"),
        singular_values=for_all_runs(cell, np.stack([path, late])),
    )
    metrics = metrics_of(cell, theory=predicted, singular_values=for_all_runs(cell, wide))
    off = metrics["value_error_mean"].transpose("init_scale", "seed", "solution", "layer", "mode")
    expected = abs(late - path).mean(axis=0) / late[-1]
    assert_close(off, for_all_runs(cell, np.stack([0 * expected, expected])), atol=1e-12)


def test_ratios_need_a_shared_hidden_matrix():
    with pytest.raises(ValueError, match=r"network.hidden: \[6\].* give two layers or more"):
        cell_with_pairs("value_ratio", 4, {"name": "all"}, hidden=[6])
    with pytest.raises(ValueError, match=r"network.name: 'layered'.* use routing"):
        routing_cell(["value_ratio"], network={"name": "layered", "hidden": [6]})


# Modes and theory --------------------------------------------------------------------------------


def test_learning_times_of_a_routing_network():
    cell = routing_cell(["learning_times"], **LONG)
    start = np.array([0.05, 0.02, 0.05])
    path, late = (routing_path(cell, start, slower).prod(axis=1) for slower in (1, 1.5))
    half = np.array([np.interp(TARGET[k] / 2, path[:, k], flow_time(cell)) for k in range(4)])
    predicted = theory_in_memory(
        cell, ("routing_race", "reduction"), mode_strength=for_all_runs(cell, [path, late])
    )
    metrics = metrics_of(cell, theory=predicted, mode_strength=for_all_runs(cell, path))
    assert_close(metrics["half_time"], for_all_runs(cell, half), rtol=1e-4)
    assert_close(metrics["half_time_times_s"], for_all_runs(cell, half * S), rtol=1e-4)
    assert_close(
        metrics["half_time_spread"], for_all_runs(cell, half.max() / half.min()), rtol=1e-4
    )
    assert_close(metrics["modes_in_order"], np.ones((2, 3)))
    off = metrics["half_time_error"]
    assert_close(off.sel(solution="routing_race"), np.zeros((2, 3, 4)), atol=1e-12)
    assert_close(off.sel(solution="reduction"), np.full((2, 3, 4), 1 / 3), rtol=1e-4)
    assert_close(metrics["final_strength_over_target"], for_all_runs(cell, path[-1] / TARGET))
    over = metrics["half_time_over_theory"]
    assert_close(over.sel(solution="routing_race"), np.ones((2, 3, 4)))
    assert_close(over.sel(solution="reduction"), np.full((2, 3, 4), 1 / 1.5), rtol=1e-4)
    assert not {"half_time_over_predicted", "half_time_over_written"} & set(metrics)
    alone = metrics_of(cell, mode_strength=for_all_runs(cell, path))
    assert "half_time_over_theory" not in alone
    xr.testing.assert_identical(alone["half_time"], metrics["half_time"])


def test_analytic_fit_of_a_routing_network():
    cell = routing_cell(["analytic_fit"], solutions=["routing_race"])
    times = len(flow_time(cell))
    simulated, theory = positive(cell, times, 4), 2 * positive(cell, 1, times, 4)
    predicted = theory_in_memory(cell, ("routing_race",), loss=theory.sum(-1), mode_strength=theory)
    trajectory = recorded_trajectory(cell, loss=simulated.sum(-1), mode_strength=simulated)
    metrics = metrics_of(cell, trajectory, predicted).isel(solution=0)
    off = abs(theory[:, :, 0] - simulated).max(axis=(-2, -1))
    assert_close(metrics["mode_error_sup"], off / np.sqrt(185))
    loss = abs(theory[:, :, 0] - simulated).sum(-1).max(-1)
    assert_close(metrics["loss_error_sup"], loss / simulated[:, :, 0].sum(-1))


# Pathway families --------------------------------------------------------------------------------


def test_shares_of_pathway_families_add_up_to_one():
    cell = routing_cell(["pathway_share"])
    shape = (len(flow_time(cell)), 2)
    trained, untrained = positive(cell, *shape), 3 * positive(cell, *shape) ** 2

    def shares(order):
        powers = {"trained_power": trained[..., order], "untrained_power": untrained[..., order]}
        return metrics_of(cell, **powers)

    first, second = shares([0, 1]), shares([1, 0])
    for name, power in (("trained", trained), ("untrained", untrained)):
        at_end = power[:, :, -1]
        assert_close(
            first[f"{name}_pathway_share"], at_end[..., 0] / (at_end[..., 0] + at_end[..., 1])
        )
        both = first[f"{name}_pathway_share"] + second[f"{name}_pathway_share"]
        assert_close(both, np.ones((2, 3)))


def test_untrained_share_is_undefined_without_untrained_pairs():
    cell = routing_cell(["pathway_share"])
    power = positive(cell, len(flow_time(cell)), 2)
    metrics = metrics_of(cell, trained_power=power, untrained_power=np.nan * power)
    assert metrics["untrained_pathway_share"].isnull().all()
    assert metrics["trained_pathway_share"].notnull().all()
