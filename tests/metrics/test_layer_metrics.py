"""Metrics that compare layers, against definitions on arbitrary paths and on gradient flow."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp
from weight_paths import (
    TWO_MODES,
    arbitrary_path,
    frobenius,
    gradient_flow,
    linear_cell,
    linear_map,
    observe,
)

from builders import (
    assert_close,
    flow_time,
    metrics_of,
    random_for_runs,
)

THREE_LAYERS = {"network": {"name": "layered", "hidden": [5, 3]}}


# Norms and balance -------------------------------------------------------------------------------


def test_layer_norm_gaps_of_an_arbitrary_path():
    cell = linear_cell(["layer_norm_gaps"], **THREE_LAYERS)
    path = arbitrary_path(cell)
    norms = np.stack([np.sqrt(np.sum(w**2, axis=(-2, -1))) for w in path], axis=-1)
    gap = abs(np.diff(norms, axis=-1))
    total = norms[..., 1:] + norms[..., :-1]
    trace = np.diff(norms[:, :, 0] ** 2, axis=-1)
    bound = np.sqrt(abs(trace))[:, :, None]
    largest = norms[:, :, -1].max(axis=-1)[..., None]
    pairs = list(combinations(range(3), 2))
    any_gap = np.max([abs(norms[..., i] - norms[..., j]) for i, j in pairs], axis=0)
    any_bound = np.max([abs(norms[:, :, 0, i] ** 2 - norms[:, :, 0, j] ** 2) for i, j in pairs], 0)
    expected = {
        "initial_norm_gap": gap[:, :, 0],
        "final_norm_gap": gap[:, :, -1],
        "norm_gap_change": abs(gap[:, :, -1] / gap[:, :, 0] - 1),
        "norm_gap_over_bound": (gap / bound).max(axis=2),
        "norm_gap_identity_error": abs(gap - abs(trace)[:, :, None] / total).max(2) / largest,
        "any_pair_gap_over_bound": any_gap.max(axis=-1) / np.sqrt(any_bound),
        "final_relative_norm_gap": (gap / total)[:, :, -1],
        "initial_relative_norm_gap": (gap / total)[:, :, 0],
        "initial_squared_norm": norms[:, :, 0] ** 2,
        "norm_growth": norms[:, :, -1] - norms[:, :, 0],
        "norm_growth_deviation": abs(
            (norms[:, :, -1] - norms[:, :, 0])
            / np.mean(norms[:, :, -1] - norms[:, :, 0], axis=-1)[..., None]
            - 1
        ),
        "norm_gap_rise": gap.max(axis=2) / gap[:, :, 0],
        "largest_norm_gap": gap.max(axis=2),
        "initial_over_final_norm": norms[:, :, 0] / norms[:, :, -1],
    }
    metrics = metrics_of(cell, observe(cell, path))
    assert set(metrics) == set(expected) | {"diverged_at"}
    for name, numbers in expected.items():
        assert_close(metrics[name], numbers)


def test_layer_norm_gaps_of_gradient_flow_keep_identity_and_bounds():
    cell = linear_cell(["layer_norm_gaps"], **THREE_LAYERS)
    metrics = metrics_of(cell, observe(cell, gradient_flow(cell)))
    assert (metrics["norm_gap_identity_error"] < 1e-10).all()
    assert (metrics["norm_gap_over_bound"] <= 1).all()
    assert (metrics["any_pair_gap_over_bound"] <= 1).all()


def test_balanced_layers_have_no_relative_gap():
    cell = linear_cell(["layer_norm_gaps"], init={"name": "zero_balanced"})
    metrics = metrics_of(cell, observe(cell, gradient_flow(cell)))
    for name in ("norm_gap_change", "norm_gap_over_bound", "any_pair_gap_over_bound"):
        assert metrics[name].isnull().all(), name
    assert (metrics["final_norm_gap"] < 1e-10).all()


def test_balance_of_an_arbitrary_path():
    cell = linear_cell(["balance"], **THREE_LAYERS)
    path = arbitrary_path(cell)
    size = sum(np.sum(w[:, :, -1] ** 2, axis=(-2, -1)) for w in path)
    metrics = metrics_of(cell, observe(cell, path))
    flow_values = metrics_of(cell, observe(cell, gradient_flow(cell)))
    assert (flow_values["imbalance_drift"] < 1e-9).all()
    for pair, (below, above) in enumerate(pairwise(path)):
        c = np.einsum("...ij,...ik->...jk", above, above) - np.einsum(
            "...ij,...kj->...ik", below, below
        )
        change = c - c[:, :, :1]
        diagonal = np.einsum("...ii->...i", change)
        full = np.sqrt(np.sum(change**2, axis=(-2, -1)))
        on = np.sqrt(np.sum(diagonal**2, axis=-1))
        trace = abs(diagonal.sum(axis=-1))
        at = {"pair": pair}
        for name, drift in (
            ("imbalance_drift", full),
            ("neuron_drift", on),
            ("offdiagonal_drift", np.sqrt(full**2 - on**2)),
            ("norm_difference_drift", trace),
            ("bias_corrected_drift", trace),
        ):
            assert_close(metrics[name].isel(at), drift.max(axis=2) / size, atol=1e-12)
        square = np.sum(c[:, :, 0] ** 2, (-2, -1))
        assert_close(metrics["initial_imbalance_squared"].isel(at), square)
        assert_close(metrics["initial_imbalance"].isel(at), np.sqrt(square))
        top = [np.linalg.svd(w[:, :, ::20], compute_uv=False)[..., 0] for w in (below, above)]
        spectral = abs(np.linalg.eigvalsh(c[:, :, 0])).max(axis=-1)
        gap = abs(top[1] - top[0]).max(axis=-1)
        assert_close(metrics["spectral_gap_over_bound"].isel(at), gap / np.sqrt(spectral))
        assert_close(metrics["spectral_gap_over_written_bound"].isel(at), gap / spectral)
        sizes = frobenius([below[:, :, ::20], above[:, :, ::20]])
        wide = abs(sizes[..., 1] - sizes[..., 0]).max(axis=-1)
        assert_close(metrics["norm_gap_over_written_bound"].isel(at), wide / spectral)
        first = [w[:, :, 0] for w in (below, above)]
        terms = frobenius([first[0] @ first[0].mT, first[1].mT @ first[1]]).sum(axis=-1)
        assert_close(
            metrics["initial_relative_imbalance"].isel(at),
            frobenius([c[:, :, 0]])[..., 0] / terms,
        )
        left = frobenius([(-c - c[:, :, :1])[:, :, ::20]])[..., 0].max(axis=-1)
        assert_close(
            metrics["written_conservation_residual"].isel(at),
            left / frobenius([c[:, :, 0]])[..., 0],
        )
        assert_close(flow_values["written_conservation_residual"].isel(at), np.full((2, 2), 2.0))
    lost = observe(cell, path)
    for number in (1, 2, 3):
        lost[f"weight_{number}"][0, 1, 1:] = np.nan
    gaps = metrics_of(cell, lost)["spectral_gap_over_bound"]
    assert gaps[0, 1].isnull().all()
    assert_close(gaps[0, 0], metrics["spectral_gap_over_bound"][0, 0])


def test_bias_norms_correct_the_norm_difference():
    network = {"name": "layered", "hidden": [5, 3], "bias": True, "activation": "relu"}
    with pytest.raises(ValueError, match=r"network.bias: True: add bias_norm to record"):
        linear_cell(["balance"], network=network)
    record = TWO_MODES["record"] | {"observables": ["bias_norm"]}
    cell = linear_cell(["balance"], network=network, record=record)
    trajectory = observe(cell, arbitrary_path(cell))
    norms = np.random.default_rng(2).uniform(0.1, 2, size=trajectory["layer_norm"].shape)
    trajectory["bias_norm"] = (trajectory["layer_norm"].dims, norms)
    trace = trajectory["imbalance_trace"].values
    gained = norms[..., :-1] ** 2 - norms[:, :, :1, :-1] ** 2
    size = np.sum(trajectory["layer_norm"].values[:, :, -1] ** 2, axis=-1)
    metrics = metrics_of(cell, trajectory)
    expected = abs(trace - trace[:, :, :1] - gained).max(axis=2) / size[..., None]
    assert_close(metrics["bias_corrected_drift"], expected)


KINDS = {
    "routing": {},
    "graph": {
        "dataset": {"name": "xor"},
        "network": {
            "name": "graph",
            "nodes": {"x": 2, "a": 3, "y": 1},
            "edges": [["x", "a"], ["a", "y"], ["x", "y"]],
        },
    },
    "gated": {
        "dataset": {"name": "xor"},
        "network": {"name": "gated", "hidden": [3], "gates": {"name": "per_example"}},
    },
}


@pytest.mark.parametrize("kind", KINDS)
def test_balance_of_every_kind_of_network(kind):
    cell = linear_cell(["balance"], **KINDS[kind])
    times = len(flow_time(cell))
    names = ("imbalance_drift", "neuron_imbalance_drift", "offdiagonal_imbalance_drift")
    drifts = {name: (1 + k) * random_for_runs(cell, times, 2) for k, name in enumerate(names)}
    trace, norm, layers = (
        random_for_runs(cell, times, 2),
        random_for_runs(cell, times, 2),
        random_for_runs(cell, times, 3),
    )
    metrics = metrics_of(
        cell, **drifts, imbalance_trace=trace, imbalance_norm=norm, layer_norm=layers
    )
    size = np.sum(layers[:, :, -1] ** 2, axis=-1)[..., None]
    for name, short in zip(names, ("imbalance", "neuron", "offdiagonal"), strict=True):
        assert_close(metrics[f"{short}_drift"], drifts[name].max(axis=2) / size)
    change = abs(trace - trace[:, :, :1]).max(axis=2)
    assert_close(metrics["norm_difference_drift"], change / size)
    assert_close(metrics["bias_corrected_drift"], change / size)
    assert_close(metrics["initial_imbalance_squared"], norm[:, :, 0] ** 2)


# Growth ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hidden", [[5], [5, 3]])
def test_growth_bound_dominates_and_has_its_constants(hidden):
    cell = linear_cell(
        ["growth_bound"],
        network={"name": "layered", "hidden": hidden},
        init_scales=[0.2],
        training={"learning_rate": 0.005, "steps": 400},
    )
    path, time, depth = gradient_flow(cell), flow_time(cell), len(hidden) + 1
    metrics = metrics_of(cell, observe(cell, path)).isel(init_scale=0)
    target = np.sqrt(3.0**2 + 1.0**2)
    for seed in range(2):
        norms = np.array([[np.linalg.norm(w[0, seed, t]) for w in path] for t in range(len(time))])
        total = np.linalg.norm(linear_map(path)[0, seed], axis=(-2, -1))
        gap = (norms.max(axis=1) - norms.min(axis=1)).max()
        strength = (norms + gap).max(axis=1) ** depth
        kappa1, kappa2 = total.max() / target, (total / strength).min()
        limit = (2 * kappa1 + 1) * target
        ensemble = metrics.isel(seed=seed)
        assert_close(ensemble["norm_gap_delta"], gap)
        assert_close(ensemble["kappa1"], kappa1)
        assert_close(ensemble["kappa2"], kappa2)
        assert_close(ensemble["layer_strength"], strength)
        assert_close(ensemble["norm_product"], norms.prod(axis=1))
        assert_close(ensemble["product_norm"], total)
        assert_close(ensemble["kappa1_as_written"], 1 / kappa1)
        assert_close(ensemble["final_kappa2"], total[-1] / strength[-1])

        def curve(k1, k2, u0, n, time=time, target=target):
            return solve_ivp(
                lambda _, u: n * u ** (2 - 2 / n) * ((2 * k1 + 1) * target - k2 * u),
                (0, time[-1]),
                [u0],
                "Radau",
                t_eval=time,
                rtol=1e-9,
                atol=1e-12,
            ).y[0]

        bound = curve(kappa1, kappa2, strength[0], depth)
        quoted = curve(0.98, 0.65, strength[0], depth)
        assert_close(ensemble["strength_bound"], bound, rtol=1e-5)
        assert_close(ensemble["quoted_strength_bound"], quoted, rtol=1e-5)
        assert_close(ensemble["strength_over_bound"], (strength / bound).max(), rtol=1e-5)
        assert_close(ensemble["strength_over_quoted_bound"], (strength / quoted).max(), rtol=1e-5)
        assert_close(
            ensemble["norm_product_over_quoted_bound"],
            (norms.prod(axis=1) / quoted).max(),
            rtol=1e-5,
        )
        assert ensemble["strength_over_bound"] <= 1 + 1e-9
        residual = np.linalg.norm(
            cell.dataset.load().sigma_yx - linear_map(path)[0, seed], axis=(-2, -1)
        )
        for name, k1 in (("residual_slack", kappa1), ("written_residual_slack", 1 / kappa1)):
            slack = (2 * k1 + 1) * target - total - residual
            assert_close(ensemble[name], slack.min() / target, atol=1e-9)

        levels = strength[0] + (strength[-1] - strength[0]) * np.linspace(0.05, 0.95, 19)
        rising = np.maximum.accumulate(strength)
        reached = np.interp(levels, rising, time)

        def least(power, k2, until, u0=strength[0], limit=limit):
            rate = (lambda u: depth * u**power * (limit - k2 * u)) if until < limit / k2 else None
            return np.nan if rate is None else quad(lambda u: 1 / rate(u), u0, until)[0]

        finite = np.array([least(2 - 2 / depth, kappa2, level) for level in levels])
        deep = np.array([least(2, kappa2, level) for level in levels])
        with_unit = np.array([least(2, 1.0, level) for level in levels])
        assert_close(ensemble["least_time_over_measured"], np.nanmax(finite / reached), rtol=1e-6)
        assert_close(
            ensemble["deep_least_time_over_measured"], np.nanmax(deep / reached), rtol=1e-6
        )
        assert_close(
            ensemble["written_time_over_integral"], np.mean(kappa2 * with_unit / deep), rtol=1e-6
        )
        assert ensemble["least_time_over_measured"] <= 1
        assert_close(
            ensemble["quoted_bound_over_norm_product"],
            quoted[-1] / norms[-1].prod(),
            rtol=1e-5,
        )
        weakest, risen = norms[0].max() + gap, 0.9 * 2.96 * target / 0.65
        for n in (2, 3, 4):
            at = ensemble.sel(depth=n)

            def rate(u, n=n):
                return n * u ** (2 - 2 / n) * (2.96 * target - 0.65 * u)

            needed = quad(lambda u, rate=rate: 1 / rate(u), weakest**n, risen)[0]
            assert_close(at["bound_time"], needed, rtol=1e-6)
            fastest = rate(np.linspace(weakest**n, risen, 100001)).max()
            assert_close(at["bound_sharpness"], fastest * needed / (risen - weakest**n), rtol=1e-6)
    assert "norm_rate_over_bound" not in metrics  # needs singular values


def test_growth_rates_are_bounded_by_the_other_layers():
    cell = linear_cell(["growth_bound"], **THREE_LAYERS, init_scales=[0.5])
    path, time = gradient_flow(cell), flow_time(cell)
    trajectory = observe(cell, path)
    top = np.stack([np.linalg.norm(w, ord=2, axis=(-2, -1)) for w in path], axis=-1)
    padded = np.stack([np.full_like(top, np.nan), top, top / 2], axis=-1)
    dims = (*trajectory["layer_norm"].dims, "singular_mode")
    trajectory["singular_values"] = (dims, padded)
    metrics = metrics_of(cell, trajectory)
    residual = cell.dataset.load().sigma_yx - linear_map(path)
    for name, order in (("norm_rate_over_bound", "fro"), ("norm_rate_over_spectral_bound", 2)):
        worst = np.zeros((1, 2))
        left = np.linalg.norm(residual, ord=order, axis=(-2, -1))
        for layer in range(3):
            others = np.prod([top[..., k] for k in range(3) if k != layer], axis=0) * left
            rate = np.diff(np.linalg.norm(path[layer], axis=(-2, -1))) / np.diff(time)
            ratio = rate / np.maximum(others[..., 1:], others[..., :-1])
            worst = np.maximum(worst, ratio.max(axis=-1))
        assert_close(metrics[name], worst)
    assert (metrics["norm_rate_over_bound"] <= 1).all()
    for name in ("layer_norm", "linear_map", "singular_values"):
        trajectory[name][0, 1, 100:] = np.nan
    diverged = metrics_of(cell, trajectory)
    assert diverged["norm_rate_over_bound"].isel(seed=1).isnull().all()
    assert_close(
        diverged["norm_rate_over_bound"].isel(seed=0), metrics["norm_rate_over_bound"][:, 0]
    )


def test_rate_gaps_are_read_at_both_ends():
    cell = linear_cell(["rate_gaps"], **THREE_LAYERS)
    trajectory = observe(cell, arbitrary_path(cell))
    rng = np.random.default_rng(3)
    curves = {
        name: rng.uniform(0.1, 1, size=(2, 2, 201, 2))
        for name in ("rate_gap", "relative_rate_gap", "relative_norm_rate_gap")
    }
    for name, curve in curves.items():
        trajectory[name] = (trajectory["imbalance_norm"].dims, curve)
    metrics = metrics_of(cell, trajectory)
    for name, curve in curves.items():
        early, late = curve[:, :, :20].mean(axis=2), curve[:, :, 181:].mean(axis=2)
        assert_close(metrics[f"early_{name}"], early)
        assert_close(metrics[f"late_{name}"], late)
    gap = curves["rate_gap"]
    assert_close(metrics["late_over_peak_rate_gap"], gap[:, :, 181:].mean(axis=2) / gap.max(axis=2))
    norms = trajectory["layer_norm"].values
    assert_close(metrics["late_norm_growth"], norms[:, :, -1] - norms[:, :, 100])
    assert_close(metrics["early_norm_growth"], norms[:, :, 100] - norms[:, :, 0])
    for name in ("early", "late"):
        growth = metrics[f"{name}_norm_growth"].values
        mean = (growth[..., 0] + growth[..., 1])[..., None] / 2
        assert_close(metrics[f"{name}_growth_deviation"], abs(growth - mean) / abs(mean))
    assert_close(metrics["peak_rate_gap"], gap.max(axis=2))
