"""Each metric against its definition, computed anew from weights that obey a known path."""

from itertools import combinations, pairwise

import numpy as np
import pytest
import xarray as xr
from cells import complete, made, tabulated
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad, solve_ivp
from scipy.optimize import brentq

from neuralrace.config.cell import SolvedEnsemble
from neuralrace.config.requirements import unmet
from neuralrace.extensions.registry import METRICS
from neuralrace.metrics.describe import crossing_time
from neuralrace.metrics.measure import metrics_dataset
from neuralrace.results.axes import axes, provenance_attributes
from neuralrace.results.schema import COORDINATES, build
from neuralrace.results.theory import theory_dataset
from neuralrace.theory.gradient_flow import linear_flow
from neuralrace.theory.tied import tied_weights

SPEC = {
    "dataset": {"name": "modes", "singular_values": [3.0, 1.0], "inputs": 4, "outputs": 2},
    "network": {"name": "layered", "hidden": [5]},
    "init": {"name": "normal"},
    "init_scales": [0.2, 0.5],
    "seeds": 2,
    "training": {"learning_rate": 0.01, "steps": 200},
    "record": {"every": 1, "snapshots": 10},
}


def make_cell(*metrics, **parts):
    return complete(SPEC | {"metrics": metrics} | parts)


def start(cell):
    """Initial weights, (init_scale, seed, out, in)."""
    data = cell.dataset.load()
    widths = (data.x.shape[1], *cell.network.hidden, data.y.shape[1])
    draws = [cell.init.draw(seed, widths, data.modes) for seed in range(cell.seeds)]
    scales = np.array(cell.init_scales)[:, None, None, None]
    return [scales * np.stack(layer) for layer in zip(*draws, strict=True)]


def flow_time(cell):
    steps = np.arange(0, cell.training.steps + 1, cell.record.every)
    return steps * cell.training.learning_rate


def flow(cell):
    """Gradient flow from the cell's own start."""
    data = cell.dataset.load()
    return linear_flow(flow_time(cell), start(cell), data.sigma_yx, data.sigma_xx)


def wander(cell):
    """A smooth path that obeys nothing, so that every drift is large."""
    rng = np.random.default_rng(1)
    time = flow_time(cell)[:, None, None]
    return [w[..., None, :, :] + time * rng.normal(size=w.shape[-2:]) for w in start(cell)]


def frobenius(matrices):
    return np.stack([np.linalg.norm(m, axis=(-2, -1)) for m in matrices], axis=-1)


def product(path):
    total = path[0]
    for layer in path[1:]:
        total = layer @ total
    return total


def record(cell, arrays, observed=()):
    """A trajectory file of arrays, and of observables that the test gives beside them."""
    coords = axes(cell, len(cell.dataset.load().x))
    shape = (len(cell.init_scales), cell.seeds)
    arrays = {
        "loss": np.ones((*shape, len(coords["time"][1]))),
        "diverged_at": np.full(shape, -1),
    } | arrays
    attrs = provenance_attributes("paper/experiment/main", cell, "train", ("numpy",))
    return build("trajectory", arrays | dict(observed), coords, attrs)


def observe(cell, path):
    """All that is linear in the network, recorded along a path of weights, in plain numpy."""
    data = cell.dataset.load()
    total = product(path)
    imbalance = [b.mT @ b - a @ a.mT for a, b in pairwise(path)]
    drift = [c - c[..., :1, :, :] for c in imbalance]
    diagonal = [np.diagonal(c, axis1=-2, axis2=-1) for c in drift]
    outside = [c * (1 - np.eye(c.shape[-1])) for c in drift]
    every = (path[0].shape[2] - 1) // cell.record.snapshots
    arrays = {
        "layer_norm": frobenius(path),
        "linear_map": total,
        "mode_strength": np.einsum("ok,...oi,ik->...k", data.modes.u, total, data.modes.v),
        "imbalance_trace": np.stack([np.trace(c, axis1=-2, axis2=-1) for c in imbalance], -1),
        "imbalance_norm": frobenius(imbalance),
        "imbalance_drift": frobenius(drift),
        "neuron_imbalance_drift": np.stack([np.linalg.norm(c, axis=-1) for c in diagonal], -1),
        "offdiagonal_imbalance_drift": frobenius(outside),
    }
    arrays |= {f"weight_{n}": w[:, :, ::every] for n, w in enumerate(path, start=1)}
    if len(path) == 2:
        vectors = np.concatenate([path[0] @ data.modes.v, path[1].mT @ data.modes.u], axis=-1)
        arrays["gram"] = vectors.mT @ vectors
    return record(cell, arrays)


def measured(cell, trajectory, theory=None):
    return metrics_dataset(made(cell, trajectory, theory))


def close(actual, expected, **tolerance):
    expected = np.asarray(expected, dtype=float)
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual.values, expected, **({"rtol": 1e-9} | tolerance))


# Registry and files ----------------------------------------------------------------------------


def test_learning_times_are_measured_without_any_theory():
    cell = make_cell("learning_times")
    found = measured(cell, observe(cell, wander(cell)))
    assert "half_time" in found
    assert "half_time_over_predicted" not in found


def test_a_fit_needs_a_solution_that_gives_a_loss():
    absent = METRICS["analytic_fit"].declaration.absent
    assert absent((), ("flow",)) is None
    for solutions in ((), ("candidate_modes",)):
        error = absent((), solutions)
        assert error.problem == "needs a solution that gives loss"
        assert error.remedy == "add one to solutions"


@pytest.fixture(scope="module")
def all_metrics():
    plain = make_cell()
    fitting = {n for n, metric in METRICS.items() if not unmet(plain, metric.declaration.requires)}
    of_others = {"pathway_share", "receptive_field_fit", "receptive_fields", "zero_shot"}
    names = sorted(fitting - of_others)
    cell = make_cell(*names, solutions=["aligned_modes", "flow"])
    theory = theory_dataset("paper/experiment/main", cell.only(SolvedEnsemble))
    trajectory = observe(cell, wander(cell))
    for name in ("rate_gap", "relative_rate_gap", "relative_norm_rate_gap"):
        trajectory[name] = trajectory["imbalance_norm"]
    return measured(cell, trajectory, theory)


def test_dataset_says_what_everything_is(all_metrics):
    for name, array in all_metrics.data_vars.items():
        assert set(array.attrs) == {"long_name", "units"}, name
        assert array.attrs["long_name"], name
        assert array.dims[:2] == ("init_scale", "seed") or "seed" not in array.dims, name
    assert set(all_metrics.dims) <= set(all_metrics.coords)
    for name, coordinate in all_metrics.coords.items():
        assert coordinate.attrs["long_name"] == COORDINATES[name]
        assert coordinate.attrs["units"] == ("epochs" if name == "time" else "1")
    assert all_metrics.attrs["kind"] == "metrics"
    assert all_metrics.attrs["cell"] == "main"


def test_table_has_a_row_for_every_number_and_no_curves(all_metrics):
    other = all_metrics.assign_attrs(cell="other")
    table = tabulated(all_metrics, other)
    numbers = {n: a for n, a in all_metrics.data_vars.items() if "time" not in a.dims}
    curves = set(all_metrics.data_vars) - set(numbers)
    assert {"strength_bound", "norm_product"} <= curves
    assert set(table["metric"]) == set(numbers)
    assert len(table) == 2 * sum(array.size for array in numbers.values())
    assert list(table.columns[:4]) == ["paper", "experiment", "cell", "metric"]
    assert list(table.columns[-2:]) == ["value", "units"]
    where = table["metric"].eq("final_cosine") & table["cell"].eq("other")
    row = table[where & table["init_scale"].eq(0.5) & table["seed"].eq(1) & table["mode"].eq(2)]
    expected = all_metrics["final_cosine"].sel(init_scale=0.5, seed=1, mode=2)
    assert row["value"].tolist() == [float(expected)]
    assert table.loc[table["metric"] == "diverged_at", "units"].unique().tolist() == ["steps"]


# Crossing times --------------------------------------------------------------------------------


@given(
    st.lists(st.floats(-3, 3, width=16), min_size=2, max_size=12), st.floats(-2.5, 2.5, width=16)
)
def test_crossing_time_is_the_first_on_the_interpolated_curve(values, level):
    clock = np.linspace(0, 5, len(values)) ** 1.5
    time = xr.DataArray(clock, dims="time")
    curve = xr.DataArray([values, values[::-1]], dims=("seed", "time"))
    crossed = crossing_time(curve, xr.DataArray([level, level], dims="seed"), time)
    assert crossed.dims == ("seed",)
    for own, found in zip(curve.values, crossed.values, strict=True):
        if own.max() < level:
            assert np.isnan(found)
        elif own[0] >= level:
            assert found == 0
        else:
            np.testing.assert_allclose(np.interp(found, clock, own), level, atol=1e-9)
            assert (own[clock < found * (1 - 1e-12)] < level).all()


def test_crossing_time_of_a_curve_that_breaks_off():
    curve = xr.DataArray([0.0, 1.0, np.nan, np.nan], dims="time")
    time = xr.DataArray([0.0, 1.0, 2.0, 3.0], dims="time")
    assert float(crossing_time(curve, xr.DataArray(0.25), time)) == 0.25
    assert np.isnan(float(crossing_time(curve, xr.DataArray(2.0), time)))


# Modes in time ---------------------------------------------------------------------------------


def logistic_cell(singular_values, **parts):
    return make_cell(
        "learning_times",
        **{
            "dataset": {
                "name": "modes",
                "singular_values": singular_values,
                "inputs": 4,
                "outputs": len(singular_values),
            },
            "init": {"name": "aligned"},
            "training": {"learning_rate": 0.002, "steps": 3000},
            "solutions": ["aligned_modes"],
        }
        | parts,
    )


def theory_of(cell):
    return theory_dataset("paper/experiment/main", cell.only(SolvedEnsemble))


def test_learning_times_of_logistic_modes():
    cell = logistic_cell([3.0, 1.0, 0.0])
    s = np.array([3.0, 1.0])
    eps = np.array(cell.init_scales)[:, None, None] ** 2 * np.ones((1, 2, 1))
    time = flow_time(cell)[:, None]
    strength = s / (1 + (s / eps[:, :, None] - 1) * np.exp(-2 * s * time))
    without_target = np.zeros((*strength.shape[:-1], 1))
    trajectory = record(cell, {"mode_strength": np.concatenate([strength, without_target], -1)})
    values = measured(cell, trajectory, theory_of(cell))
    half = np.log(s / eps - 1) / (2 * s)
    learned = values.isel(mode=slice(0, 2))
    close(learned["half_time"], half, rtol=1e-6)
    close(learned["half_time_over_predicted"], np.ones_like(half), rtol=1e-6)
    close(learned["half_time_over_theory"].isel(solution=0), np.ones_like(half), rtol=1e-6)
    close(learned["half_time_over_written"], half * s / np.log(s / eps), rtol=1e-6)
    close(learned["second_half_over_first"], np.ones_like(half), rtol=1e-4)
    close(learned["second_half_over_written"], half * s / np.log(s / eps), rtol=1e-4)
    close(learned["half_time_times_s"], half * s, rtol=1e-6)
    close(values["half_time_spread"], half.max(-1) / half.min(-1), rtol=1e-6)
    close(values["modes_in_order"], np.ones((2, 2)))
    close(learned["logistic_rate"], np.ones_like(half), rtol=1e-6)
    odds = eps[..., 0] / (s[1] - eps[..., 0]) * np.exp(2 * s[1] * half[..., 0])
    share = odds / (1 + odds)
    close(values["later_share"], share, rtol=5e-3)  # read at the next entry of the time axis
    for name in ("half_time", "half_time_over_predicted", "half_time_over_written"):
        assert values[name].sel(mode=3).isnull().all()


@pytest.mark.parametrize(
    ("s", "half", "in_order", "later"),
    [
        ([3.0, 2.0, 1.0], [1.0, 2.0, 3.0], 1, 2 / 6),
        ([3.0, 2.0, 1.0], [1.0, 3.0, 2.0], 0, 3 / 4),
        ([2.0, 2.0, 1.0], [2.0, 1.0, 3.0], 1, 2 / 6),
        ([2.0, 1.0, 1.0], [1.0, 3.0, 2.0], 1, 1 / 4),
        ([2.0, 2.0, 1.0], [3.0, 1.0, 2.0], 0, 3 / 4),
        ([2.0, 1.0], [1.0, 50.0], 0, 1 / 100),
        ([2.0, 0.0, 0.0], [1.0, 1.0, 1.0], 0, np.nan),
    ],
    ids=[
        "in order",
        "swapped",
        "degenerate pair first",
        "degenerate pair last",
        "degenerate mode behind a weaker one",
        "one never learned",
        "nothing to compare",
    ],
)
def test_order_of_modes_is_that_of_different_strengths(s, half, in_order, later):
    cell = logistic_cell(s)
    ramp = np.array(s) * flow_time(cell)[:, None] / (2 * np.array(half))
    trajectory = record(cell, {"mode_strength": np.tile(ramp, (2, 2, 1, 1))})
    values = measured(cell, trajectory, theory_of(cell))
    close(values["modes_in_order"], np.full((2, 2), in_order))
    close(values["later_share"], np.full((2, 2), later), rtol=1e-3)


def test_half_times_of_a_shallow_network_follow_the_exponential():
    cell = logistic_cell(
        [3.0, 1.0],
        network={"name": "layered", "hidden": []},
        init={"name": "normal"},
        init_scales=[0.05],
        solutions=["shallow_modes"],
    )
    data, (w,) = cell.dataset.load(), start(cell)
    b0 = np.einsum("ok,...oi,ik->...k", data.modes.u, w, data.modes.v)
    s = np.array([3.0, 1.0])
    strength = s + (b0 - s)[..., None, :] * np.exp(-flow_time(cell)[:, None])
    values = measured(cell, record(cell, {"mode_strength": strength}), theory_of(cell))
    close(values["half_time"], np.log((s - b0) / (s / 2)), rtol=1e-5)
    close(values["half_time_over_predicted"], np.ones((1, 2, 2)), rtol=1e-5)
    # log(u/(s - u)) of 1 - exp(-t) between .1 and .9, by quadrature: far from the 2 s of a logistic
    ends = -np.log([0.9, 0.1])
    middle = ends.mean()
    logit = np.vectorize(lambda t: np.log(np.expm1(t)))
    slope = quad(lambda t: (t - middle) * logit(t), *ends)[0] / (np.diff(ends)[0] ** 3 / 12)
    found = values["logistic_rate"] * 2 * s
    close(found, np.full((1, 2, 2), slope), rtol=0.02)


# Encoders and decoders -------------------------------------------------------------------------


def test_alignment_at_both_ends_of_any_path():
    cell = make_cell(
        "alignment",
        dataset=SPEC["dataset"] | {"singular_values": [3.0, -1.0, 0.0], "outputs": 3},
    )
    path = wander(cell)
    values = measured(cell, observe(cell, path))
    modes = cell.dataset.load().modes
    for scale, seed in np.ndindex(2, 2):
        ensemble = {"init_scale": scale, "seed": seed}
        for at, name in ((0, "initial_overlap"), (-1, "final_overlap")):
            a = [path[0][scale, seed, at] @ modes.v[:, k] for k in range(2)]
            b = [path[1][scale, seed, at].T @ modes.u[:, k] for k in range(2)]
            a_unit, b_unit = ([x / np.linalg.norm(x) for x in side] for side in (a, b))
            largest = max(abs(a_unit[0] @ b_unit[1]), abs(a_unit[1] @ b_unit[0]))
            close(values[name].isel(ensemble), largest)
        cosine = [x @ y for x, y in zip(a_unit, b_unit, strict=True)]
        lengths = np.linalg.norm(a, axis=1) / np.sqrt([3.0, 1.0])
        close(values["final_cosine"].isel(ensemble), [*cosine, np.nan])
        close(values["final_encoder_length"].isel(ensemble), [*lengths, np.nan])
        decoders = np.linalg.norm(b, axis=1) / np.sqrt([3.0, 1.0])
        close(values["final_decoder_length"].isel(ensemble), [*decoders, np.nan])
        gap = [  # the second mode is negative
            np.linalg.norm(x - sign * y) / np.sqrt((x @ x + y @ y) / 2)
            for x, y, sign in zip(a, b, (1, -1), strict=True)
        ]
        close(values["final_gap"].isel(ensemble), [*gap, np.nan])
        first_a, first_b = (
            path[0][scale, seed, 0] @ modes.v[:, 0],
            path[1][scale, seed, 0].T @ modes.u[:, 0],
        )
        sizes = np.linalg.norm(first_a), np.linalg.norm(first_b)
        close(values["initial_length_ratio"].isel(ensemble)[0], min(sizes) / max(sizes))
        close(values["initial_cosine"].isel(ensemble)[0], first_a @ first_b / np.prod(sizes))
        first_gap = np.linalg.norm(first_a - first_b) / np.sqrt(np.sum(np.square(sizes)) / 2)
        close(values["initial_gap"].isel(ensemble)[0], first_gap)
    assert (values["largest_gap"] >= values["final_gap"]).sel(mode=[1, 2]).all()
    assert (values["largest_overlap"] >= values["initial_overlap"]).all()


def test_vectors_when_modes_grow():
    """Hand-made path: the second mode is learned first, its vectors then leave the third's."""
    cell = make_cell(
        "alignment",
        dataset={"name": "modes", "singular_values": [4.0, -1.0, 1.0], "inputs": 3, "outputs": 3},
        network={"name": "layered", "hidden": [3]},
        init_scales=[1.0],
        seeds=1,
        training={"learning_rate": 1.0, "steps": 3},
        record={"every": 1},
    )
    e = np.eye(3)
    start = [0.1 * e[0], 0.1 * (e[1] + e[0]), 0.1 * e[2]]
    learned = [0.1 * e[0], 1.0 * e[1], 0.1 * (e[2] + 3**0.5 * e[1])]
    end = [2.0 * e[0], 1.0 * e[1], 1.0 * e[2]]
    encoder = np.array([start, start, learned, end])  # (time, mode, hidden)
    decoder = encoder * np.array([1.0, -1.0, 1.0])[:, None]
    decoder[:2, 0] = 0.05 * e[0]
    decoder[2, 2] = 0.1 * e[2]  # so that only an encoder overlaps with the learned decoder
    path = [encoder.swapaxes(-2, -1)[None, None], decoder[None, None]]
    values = measured(cell, observe(cell, path)).isel(init_scale=0, seed=0)
    # strengths of mode 2 are .02 and then 1: half at .48/.98 of the way from step 1 to step 2
    between = 1 + (0.5 - 0.02) / (1 - 0.02)
    close(values["growth_time"], [2 + 1.99 / 3.99, between, 2 + (0.5 - 0.01) / 0.99])
    close(values["overlap_with_learned"], 3**0.5 / 2)
    close(values["overlap_of_others"], 0.0, atol=1e-12)
    close(values["initial_length_ratio"], [0.5, 1.0, 1.0])
    close(values["grown_length_ratio"], [1.0, 1.0, 1.0])
    gaps = [0.05 / np.sqrt(0.0125 / 2), 0.0, 0.1 * 3**0.5 / np.sqrt(0.05 / 2)]
    close(values["largest_gap"], gaps, atol=1e-7)


def test_first_weights_in_the_singular_basis():
    cell = make_cell(
        "gaussian_start",
        dataset={
            "name": "modes", "singular_values": [3.0, 1.0], "inputs": 2, "outputs": 2,
            "basis": "random",
        },
        network={"name": "layered", "hidden": [4]},
        init_scales=[0.5],
        seeds=1,
    )  # fmt: skip
    modes = cell.dataset.load().modes
    # in the singular basis: signs, whose columns are orthogonal, but for a last one that repeats
    encoder = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1]])
    for last, correlation in (([1.0, 1, 1, 1], 0.0), ([1.0, -1, -1, 1], 1.0)):
        decoder = np.stack([[1.0, -1, -1, 1], last], axis=1)
        weights = [encoder @ modes.input_basis.T, modes.output_basis @ decoder.T]
        path = [w[None, None, None].repeat(201, axis=2) for w in weights]
        values = measured(cell, observe(cell, path))
        close(values["start_kurtosis"], [[1 / 3]])  # signs have a kurtosis of 1
        close(values["start_correlation"], [[correlation]], atol=1e-12)


DECOUPLED = {
    "dataset": {"name": "modes", "singular_values": [3.0, -1.5], "inputs": 2, "outputs": 2},
    "network": {"name": "layered", "hidden": [6]},
    "init": {"name": "decoupled"},
    "training": {"learning_rate": 0.005, "steps": 1200},
}


def halves(cell, path):
    """|p| and |m| of each mode along a path."""
    modes = cell.dataset.load().modes
    a, b = (path[0] @ modes.v).mT, (path[1].mT @ modes.u).mT
    return np.linalg.norm(a + b, axis=-1), np.linalg.norm(a - b, axis=-1)


def test_alignment_comes_before_growth():
    training = {"learning_rate": 0.001, "steps": 6000}
    cell = make_cell("alignment", init_scales=[0.05], **DECOUPLED | {"training": training})
    path, modes = flow(cell), cell.dataset.load().modes
    a, b = (path[0][:, :, 0] @ modes.v).mT[0], (path[1][:, :, 0].mT @ modes.u).mT[0]
    found = measured(cell, observe(cell, path))["alignment_over_growth"].values[0]
    for (seed, mode), s in zip(np.ndindex(2, 2), [3.0, -1.5] * 2, strict=True):
        start_a, start_b = a[seed, mode], b[seed, mode]
        skew = start_a @ start_a - start_b @ start_b  # conserved
        # of |p|^2 and |m|^2 alone: a.b = (P - M)/4 and |a|^2 + |b|^2 = (P + M)/2
        squares = solve_ivp(
            lambda _, y, s=s: 2 * (s - (y[0] - y[1]) / 4) * np.array([y[0], -y[1]]),
            (0, 6),
            [np.sum((start_a + start_b) ** 2), np.sum((start_a - start_b) ** 2)],
            "DOP853",
            rtol=1e-11,
            atol=1e-14,
            dense_output=True,
        ).sol
        grid = np.linspace(0, 6, 2001)

        def first(curve, squares=squares, grid=grid):
            """When a curve of P and M first rises through zero."""
            after = int(np.argmax(curve(*squares(grid)) >= 0))
            if after == 0:
                return 0.0
            return brentq(lambda t: curve(*squares(t)), grid[after - 1], grid[after])

        grown = first(lambda P, M, s=s: np.sign(s) * (P - M) / 4 - abs(s) / 2)
        aligned = first(
            lambda P, M, skew=skew: abs(P - M) / 4 - 0.9 * np.sqrt(((P + M) / 2) ** 2 - skew**2) / 2
        )
        assert 0 < aligned < grown
        np.testing.assert_allclose(found[seed, mode], aligned / grown, rtol=1e-4)


def test_unaligned_growth_of_decoupled_flow():
    cell = make_cell("unaligned_growth", **DECOUPLED)
    trajectory = observe(cell, flow(cell))
    values = measured(cell, trajectory)
    close(values["log_ratio_slope"], np.full((2, 2, 2), 2.0), rtol=1e-6)
    assert (values["product_drift"] < 1e-4).all()  # |m| of the order of 1e-8 from a difference
    # the law is about the clock: on one twice as fast, half the fall is left
    fast = trajectory.assign_coords(flow_time=2 * trajectory["flow_time"])
    close(measured(cell, fast)["log_ratio_slope"], np.ones((2, 2, 2)), rtol=1e-6)


def test_product_drift_of_any_path():
    cell = make_cell("unaligned_growth", **DECOUPLED)
    path = wander(cell)
    p, m = halves(cell, path)
    change = p * m / (p * m)[:, :, :1] - 1
    values = measured(cell, observe(cell, path))
    close(values["product_drift"], abs(change).max(axis=2))


def test_interference_of_two_tied_modes():
    cell = make_cell(
        "interference",
        dataset={"name": "modes", "singular_values": [2.0, 1.0], "inputs": 2, "outputs": 2},
        network={"name": "layered", "hidden": [10]},
        init={"name": "tied"},
        init_scales=[0.1],
        seeds=4,
        training={"learning_rate": 0.002, "steps": 3000},
    )
    time = flow_time(cell)
    rows = tied_weights(time, start(cell)[0].mT, np.diag([2.0, 1.0]))
    values = measured(cell, observe(cell, [rows.mT, rows]))
    assert values["mode_pair"].values.tolist() == ["1-2"]
    one, other = (np.sum(rows[..., k, :] ** 2, axis=-1) for k in range(2))
    cosine = np.sum(rows[..., 0, :] * rows[..., 1, :], axis=-1) / np.sqrt(one * other)
    close(values["initial_cosine_between_modes"], abs(cosine[:, :, :1]))
    close(values["final_cosine_between_modes"], abs(cosine[:, :, -1:]), atol=1e-14)
    # exactly, d log|cos|/dt = -(|W_1|^2 + |W_2|^2)(1 - cos^2): both integrals by the trapezoid rule
    for seed in range(4):
        share = cosine[0, seed] / cosine[0, seed, 0]
        until = int(np.argmax(share <= np.exp(-2))) + 1
        total, larger = (one + other)[0, seed], np.maximum(one, other)[0, seed]
        over = {
            name: np.trapezoid(rate[:until], time[:until])
            for name, rate in (("sum", total), ("larger", larger), ("smaller", total - larger))
        }
        decay = np.trapezoid((total * (1 - cosine[0, seed] ** 2))[:until], time[:until])
        ensemble = {"seed": seed, "init_scale": 0, "mode_pair": 0}
        close(values["decay_over_sum"].isel(ensemble), decay / over["sum"], rtol=1e-5)
        close(values["decay_over_larger"].isel(ensemble), decay / over["larger"], rtol=1e-5)
        close(values["decay_over_smaller"].isel(ensemble), decay / over["smaller"], rtol=1e-5)
        assert decay < over["sum"]
        assert decay > over["larger"]
        grown = int(np.argmax(larger >= larger[-1] / 2))
        log_share = np.log(share)
        close(values["fall_before_growth"].isel(ensemble), -log_share[grown])
        fall_after = log_share[grown] - log_share[2 * grown]
        close(values["fall_after_growth"].isel(ensemble), fall_after)
        steps = np.diff(time) * (total[1:] + total[:-1]) / 2
        first_order = np.exp(-np.concatenate([[0.0], np.cumsum(steps)]))
        error = abs(share - first_order).max()
        close(values["first_order_error"].isel(ensemble), error, atol=1e-5)


def test_modes_of_no_common_direction_have_no_decay():
    cell = make_cell(
        "interference", network={"name": "layered", "hidden": [5]}, training=SPEC["training"]
    )
    path = [layer[:, :, :1].repeat(201, axis=2) for layer in wander(cell)]
    values = measured(cell, observe(cell, path))
    assert values["decay_over_sum"].isnull().all()  # nothing moves, so nothing has decayed


def test_layer_ratio_reaches_its_limit():
    cell = make_cell(
        "layer_ratio",
        dataset=DECOUPLED["dataset"] | {"singular_values": [3.0, 1.0]},
        init={"name": "aligned", "layer_strengths": [0.2, 3.0]},
        training={"learning_rate": 0.02, "steps": 1200},
    )
    path = flow(cell)
    values = measured(cell, observe(cell, path))
    scale = np.array(cell.init_scales)[:, None, None] * np.ones((1, 2, 2))
    # a b = s and b^2 - a^2 = delta at the end
    delta, s = scale**2 * (9 - 0.04), np.array([3.0, 1.0])
    smaller = np.sqrt((-delta + np.sqrt(delta**2 + 4 * s**2)) / 2)
    close(values["initial_layer_ratio"], np.full((2, 2, 2), 15.0))
    close(values["final_layer_ratio"], s / smaller**2, rtol=1e-6)
    close(values["final_layer_ratio_over_limit"], np.ones((2, 2, 2)), rtol=1e-6)
    close(values["layer_ratio_growth"], np.ones((2, 2, 2)))


# Layers ----------------------------------------------------------------------------------------

THREE = {"network": {"name": "layered", "hidden": [5, 3]}}


def test_layer_norm_gaps_of_any_path():
    cell = make_cell("layer_norm_gaps", **THREE)
    path = wander(cell)
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
    values = measured(cell, observe(cell, path))
    assert set(values) == set(expected) | {"diverged_at"}
    for name, numbers in expected.items():
        close(values[name], numbers)


def test_layer_norm_gaps_of_flow_keep_their_identity_and_bounds():
    cell = make_cell("layer_norm_gaps", **THREE)
    values = measured(cell, observe(cell, flow(cell)))
    assert (values["norm_gap_identity_error"] < 1e-10).all()
    assert (values["norm_gap_over_bound"] <= 1).all()
    assert (values["any_pair_gap_over_bound"] <= 1).all()


def test_balanced_layers_have_no_gap_to_compare_with():
    cell = make_cell("layer_norm_gaps", init={"name": "zero_balanced"})
    values = measured(cell, observe(cell, flow(cell)))
    for name in ("norm_gap_change", "norm_gap_over_bound", "any_pair_gap_over_bound"):
        assert values[name].isnull().all(), name
    assert (values["final_norm_gap"] < 1e-10).all()


def test_balance_of_any_path():
    cell = make_cell("balance", **THREE)
    path = wander(cell)
    size = sum(np.sum(w[:, :, -1] ** 2, axis=(-2, -1)) for w in path)
    values = measured(cell, observe(cell, path))
    flow_values = measured(cell, observe(cell, flow(cell)))
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
            close(values[name].isel(at), drift.max(axis=2) / size, atol=1e-12)
        close(values["initial_imbalance_squared"].isel(at), np.sum(c[:, :, 0] ** 2, (-2, -1)))
        top = [np.linalg.svd(w[:, :, ::20], compute_uv=False)[..., 0] for w in (below, above)]
        spectral = abs(np.linalg.eigvalsh(c[:, :, 0])).max(axis=-1)
        gap = abs(top[1] - top[0]).max(axis=-1)
        close(values["spectral_gap_over_bound"].isel(at), gap / np.sqrt(spectral))
        close(values["spectral_gap_over_written_bound"].isel(at), gap / spectral)
        sizes = frobenius([below[:, :, ::20], above[:, :, ::20]])
        wide = abs(sizes[..., 1] - sizes[..., 0]).max(axis=-1)
        close(values["norm_gap_over_written_bound"].isel(at), wide / spectral)
        first = [w[:, :, 0] for w in (below, above)]
        terms = frobenius([first[0] @ first[0].mT, first[1].mT @ first[1]]).sum(axis=-1)
        close(
            values["initial_relative_imbalance"].isel(at),
            frobenius([c[:, :, 0]])[..., 0] / terms,
        )
        left = frobenius([(-c - c[:, :, :1])[:, :, ::20]])[..., 0].max(axis=-1)
        close(
            values["written_conservation_residual"].isel(at), left / frobenius([c[:, :, 0]])[..., 0]
        )
        close(flow_values["written_conservation_residual"].isel(at), np.full((2, 2), 2.0))
    lost = observe(cell, path)
    for number in (1, 2, 3):
        lost[f"weight_{number}"][0, 1, 1:] = np.nan
    gaps = measured(cell, lost)["spectral_gap_over_bound"]
    assert gaps[0, 1].isnull().all()
    close(gaps[0, 0], values["spectral_gap_over_bound"][0, 0])


def test_biases_take_their_share_of_the_norms():
    network = {"name": "layered", "hidden": [5, 3], "bias": True, "activation": "relu"}
    with pytest.raises(ValueError, match=r"network.bias: True: add bias_norm to record"):
        make_cell("balance", network=network)
    record = SPEC["record"] | {"observables": ["bias_norm"]}
    cell = make_cell("balance", network=network, record=record)
    trajectory = observe(cell, wander(cell))
    norms = np.random.default_rng(2).uniform(0.1, 2, size=trajectory["layer_norm"].shape)
    trajectory["bias_norm"] = (trajectory["layer_norm"].dims, norms)
    trace = trajectory["imbalance_trace"].values
    gained = norms[..., :-1] ** 2 - norms[:, :, :1, :-1] ** 2
    size = np.sum(trajectory["layer_norm"].values[:, :, -1] ** 2, axis=-1)
    values = measured(cell, trajectory)
    expected = abs(trace - trace[:, :, :1] - gained).max(axis=2) / size[..., None]
    close(values["bias_corrected_drift"], expected)


@pytest.mark.parametrize("hidden", [[5], [5, 3]])
def test_growth_bound_dominates_and_has_its_constants(hidden):
    cell = make_cell(
        "growth_bound",
        network={"name": "layered", "hidden": hidden},
        init_scales=[0.2],
        training={"learning_rate": 0.005, "steps": 400},
    )
    path, time, depth = flow(cell), flow_time(cell), len(hidden) + 1
    values = measured(cell, observe(cell, path)).isel(init_scale=0)
    target = np.sqrt(3.0**2 + 1.0**2)
    for seed in range(2):
        norms = np.array([[np.linalg.norm(w[0, seed, t]) for w in path] for t in range(len(time))])
        total = np.linalg.norm(product(path)[0, seed], axis=(-2, -1))
        gap = (norms.max(axis=1) - norms.min(axis=1)).max()
        strength = (norms + gap).max(axis=1) ** depth
        kappa1, kappa2 = total.max() / target, (total / strength).min()
        limit = (2 * kappa1 + 1) * target
        ensemble = values.isel(seed=seed)
        close(ensemble["norm_gap_delta"], gap)
        close(ensemble["kappa1"], kappa1)
        close(ensemble["kappa2"], kappa2)
        close(ensemble["layer_strength"], strength)
        close(ensemble["norm_product"], norms.prod(axis=1))
        close(ensemble["product_norm"], total)
        close(ensemble["kappa1_as_written"], 1 / kappa1)
        close(ensemble["final_kappa2"], total[-1] / strength[-1])

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
        close(ensemble["strength_bound"], bound, rtol=1e-5)
        close(ensemble["quoted_strength_bound"], quoted, rtol=1e-5)
        close(ensemble["strength_over_bound"], (strength / bound).max(), rtol=1e-5)
        close(ensemble["strength_over_quoted_bound"], (strength / quoted).max(), rtol=1e-5)
        close(
            ensemble["norm_product_over_quoted_bound"],
            (norms.prod(axis=1) / quoted).max(),
            rtol=1e-5,
        )
        assert ensemble["strength_over_bound"] <= 1 + 1e-9
        residual = np.linalg.norm(
            cell.dataset.load().sigma_yx - product(path)[0, seed], axis=(-2, -1)
        )
        for name, k1 in (("residual_slack", kappa1), ("written_residual_slack", 1 / kappa1)):
            slack = (2 * k1 + 1) * target - total - residual
            close(ensemble[name], slack.min() / target, atol=1e-9)

        levels = strength[0] + (strength[-1] - strength[0]) * np.linspace(0.05, 0.95, 19)
        rising = np.maximum.accumulate(strength)
        reached = np.interp(levels, rising, time)

        def least(power, k2, until, u0=strength[0], limit=limit):
            rate = (lambda u: depth * u**power * (limit - k2 * u)) if until < limit / k2 else None
            return np.nan if rate is None else quad(lambda u: 1 / rate(u), u0, until)[0]

        finite = np.array([least(2 - 2 / depth, kappa2, level) for level in levels])
        deep = np.array([least(2, kappa2, level) for level in levels])
        with_unit = np.array([least(2, 1.0, level) for level in levels])
        close(ensemble["least_time_over_measured"], np.nanmax(finite / reached), rtol=1e-6)
        close(ensemble["deep_least_time_over_measured"], np.nanmax(deep / reached), rtol=1e-6)
        close(ensemble["written_time_over_integral"], np.mean(kappa2 * with_unit / deep), rtol=1e-6)
        assert ensemble["least_time_over_measured"] <= 1
        close(
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
            close(at["bound_time"], needed, rtol=1e-6)
            fastest = rate(np.linspace(weakest**n, risen, 100001)).max()
            close(at["bound_sharpness"], fastest * needed / (risen - weakest**n), rtol=1e-6)
    assert "norm_rate_over_bound" not in values  # it needs singular values


def test_growth_rates_are_bounded_by_the_other_layers():
    cell = make_cell("growth_bound", **THREE, init_scales=[0.5])
    path, time = flow(cell), flow_time(cell)
    trajectory = observe(cell, path)
    top = np.stack([np.linalg.norm(w, ord=2, axis=(-2, -1)) for w in path], axis=-1)
    padded = np.stack([np.full_like(top, np.nan), top, top / 2], axis=-1)
    dims = (*trajectory["layer_norm"].dims, "singular_mode")
    trajectory["singular_values"] = (dims, padded)
    values = measured(cell, trajectory)
    residual = cell.dataset.load().sigma_yx - product(path)
    for name, order in (("norm_rate_over_bound", "fro"), ("norm_rate_over_spectral_bound", 2)):
        worst = np.zeros((1, 2))
        left = np.linalg.norm(residual, ord=order, axis=(-2, -1))
        for layer in range(3):
            others = np.prod([top[..., k] for k in range(3) if k != layer], axis=0) * left
            rate = np.diff(np.linalg.norm(path[layer], axis=(-2, -1))) / np.diff(time)
            ratio = rate / np.maximum(others[..., 1:], others[..., :-1])
            worst = np.maximum(worst, ratio.max(axis=-1))
        close(values[name], worst)
    assert (values["norm_rate_over_bound"] <= 1).all()
    for name in ("layer_norm", "linear_map", "singular_values"):
        trajectory[name][0, 1, 100:] = np.nan
    diverged = measured(cell, trajectory)
    assert diverged["norm_rate_over_bound"].isel(seed=1).isnull().all()
    close(diverged["norm_rate_over_bound"].isel(seed=0), values["norm_rate_over_bound"][:, 0])


def test_convergence_of_a_known_curve():
    """A map that goes straight to twice a whitened target and back: times by hand."""
    data = {"name": "table", "x": [[2.0, 0.0], [0.0, 2.0]], "y": [[3.0], [1.0]]}
    cell = make_cell("convergence", dataset=data, training={"learning_rate": 0.01, "steps": 200})
    target = np.array([[1.5, 0.5]])
    time = np.linspace(0, 2, 201)
    share = np.where(time < 1, time**2, 1.0)
    path = np.broadcast_to(share[:, None, None] * target, (2, 2, 201, 1, 2))
    values = measured(cell, record(cell, {"linear_map": path}))
    everywhere = np.ones((2, 2))
    close(values["final_residual"], 0 * everywhere, atol=1e-12)
    close(values["convergence_time"], np.sqrt(0.9) * everywhere, rtol=1e-4)
    close(values["plateau_share"], everywhere / 3, rtol=1e-3)
    close(values["peak_growth"], 1.99 * everywhere)
    close(values["mean_growth"], np.sqrt(0.9) * everywhere, rtol=1e-4)
    late = measured(cell, record(cell, {"linear_map": (path + target) / 2}))
    assert (late["plateau_share"] == 0).all()
    half = measured(cell, record(cell, {"linear_map": path / 2}))
    assert half["convergence_time"].isnull().all()
    assert half["mean_growth"].isnull().all()
    close(half["final_residual"], everywhere / 2)


@pytest.mark.parametrize("bias", [False, True])
def test_gate_sharing_pair_by_pair(bias):
    labels = np.arange(9) % 3
    x = np.random.default_rng(5).normal(size=(9, 4))
    cell = make_cell(
        "gate_sharing",
        dataset={"name": "table", "x": x.tolist(), "y": np.eye(3)[labels].tolist()},
        network={"name": "layered", "hidden": [3, 2], "activation": "relu", "bias": bias},
        init_scales=[1.0],
    )
    path = wander(cell)
    trajectory = observe(cell, path)
    offsets = [np.zeros(n) for n in (3, 2, 3)]
    if bias:
        rng = np.random.default_rng(6)
        offsets = [rng.normal(size=n) for n in (3, 2, 3)]
        for number, b in enumerate(offsets, start=1):
            like = trajectory[f"weight_{number}"].isel({f"unit_{number - 1}": 0}, drop=True)
            trajectory[f"bias_{number}"] = like.copy(data=np.broadcast_to(b, like.shape))
    values = measured(cell, trajectory).isel(init_scale=0)
    trajectory["diverged_at"][0, 1] = 7
    assert measured(cell, trajectory)["final_same_label_gate_identity"].isnull().any("seed").all()
    for seed in range(2):
        for when, at in (("initial", 0), ("final", -1)):
            hidden = x
            for layer in range(2):
                before = hidden @ path[layer][0, seed, at].T + offsets[layer]
                hidden = np.maximum(before, 0)
                same, other = [], []
                for i, j in combinations(range(9), 2):
                    alike = (before[i] > 0) == (before[j] > 0)
                    (same if labels[i] == labels[j] else other).append(alike)
                ensemble = values.isel(seed=seed, hidden_layer=layer)
                close(ensemble[f"{when}_same_label_gate_difference"], 1 - np.mean(same), atol=1e-12)
                close(ensemble[f"{when}_other_label_gate_difference"], 1 - np.mean(other))
                close(ensemble[f"{when}_same_label_gate_identity"], np.mean(np.all(same, axis=1)))


def test_linearisation_sample_by_sample():
    cell = make_cell(
        "linearisation",
        dataset={
            "name": "gaussian_mixture",
            "components": 2,
            "samples_per_component": 6,
            "inputs": 3,
            "outputs": 2,
        },
        network={"name": "layered", "hidden": [4, 3], "activation": "relu"},
        init_scales=[1.0],
        record={"every": 100, "snapshots": 2},
    )
    path = wander(cell)
    values = measured(cell, observe(cell, path)).isel(init_scale=0)
    data = cell.dataset.load()
    for seed in range(2):
        worst, means = np.zeros(2), np.zeros((3, 3))
        for snapshot in range(3):
            weights = [w[0, seed, snapshot] for w in path]
            left, right, closed = [[], []], [[], []], [[], []]
            for x, y in zip(data.x, data.y, strict=True):
                hidden, slopes = [x], []
                for w in weights[:-1]:
                    slopes.append((w @ hidden[-1] > 0).astype(float))
                    hidden.append(slopes[-1] * (w @ hidden[-1]))
                error = y - weights[-1] @ hidden[-1]
                rates = [np.outer(error, hidden[-1])]
                for layer in (1, 0):
                    error = slopes[layer] * (weights[layer + 1].T @ error)
                    rates.insert(0, np.outer(error, hidden[layer]))
                gates = [*slopes, np.ones(2)]
                for k in range(2):
                    grown = weights[k + 1].T @ np.diag(gates[k + 1]) @ rates[k + 1]
                    below = rates[k] @ weights[k].T
                    gate = np.diag(gates[k])
                    left[k].append(grown + grown.T)
                    right[k].append(gate @ (below + below.T) @ gate)
                    closed[k].append(gates[k])
            for k in range(2):
                off = frobenius([np.array(left[k]) - np.array(right[k])])[:, 0]
                scale = frobenius([np.array(left[k])])[:, 0] + frobenius([np.array(right[k])])[:, 0]
                worst[k] = max(worst[k], off.max() / scale.max())
                lost = (np.mean(closed[k], axis=0) - 1)[:, None] * weights[k]
                means[snapshot, k] = np.linalg.norm(lost) / np.linalg.norm(weights[k])
        ensemble = values.isel(seed=seed)
        close(ensemble["sample_residual_as_written"], worst)
        close(ensemble["averaging_residual"], means.mean(axis=0), atol=1e-12)
        assert (worst > 0.01).all()
    for name in ("sample_residual_sandwiched", "sample_residual_trace"):
        assert (values[name] < 1e-12).all()


def test_rate_gaps_are_read_at_both_ends():
    cell = make_cell("rate_gaps", **THREE)
    trajectory = observe(cell, wander(cell))
    rng = np.random.default_rng(3)
    curves = {
        name: rng.uniform(0.1, 1, size=(2, 2, 201, 2))
        for name in ("rate_gap", "relative_rate_gap", "relative_norm_rate_gap")
    }
    for name, curve in curves.items():
        trajectory[name] = (trajectory["imbalance_norm"].dims, curve)
    values = measured(cell, trajectory)
    for name, curve in curves.items():
        early, late = curve[:, :, :20].mean(axis=2), curve[:, :, 181:].mean(axis=2)
        close(values[f"early_{name}"], early)
        close(values[f"late_{name}"], late)
    gap = curves["rate_gap"]
    close(values["late_over_peak_rate_gap"], gap[:, :, 181:].mean(axis=2) / gap.max(axis=2))
    norms = trajectory["layer_norm"].values
    close(values["late_norm_growth"], norms[:, :, -1] - norms[:, :, 100])
    close(values["early_norm_growth"], norms[:, :, 100] - norms[:, :, 0])
    for name in ("early", "late"):
        growth = values[f"{name}_norm_growth"].values
        mean = (growth[..., 0] + growth[..., 1])[..., None] / 2
        close(values[f"{name}_growth_deviation"], abs(growth - mean) / abs(mean))
    close(values["peak_rate_gap"], gap.max(axis=2))


# Theory and simulation -------------------------------------------------------------------------


def test_analytic_fit_splits_the_distance():
    cell = make_cell("analytic_fit", solutions=["aligned_modes", "flow"])
    theory = theory_of(cell)
    rng = np.random.default_rng(4)
    loss = rng.uniform(1, 2, size=(2, 2, 201))
    strength = rng.normal(size=(2, 2, 201, 2))
    trajectory = record(cell, {"loss": loss, "mode_strength": strength})
    values = measured(cell, trajectory, theory)
    first = loss[:, :, 0]
    simulated, modes = theory["loss"].values, theory["mode_strength"].values
    for row, name in enumerate(cell.solutions):
        one = values.sel(solution=name)
        off = abs(simulated[:, :, row] - loss)
        close(one["loss_error_sup"], off.max(axis=-1) / first)
        close(one["loss_error_mean"], off.mean(axis=-1) / first)
        split = abs(simulated[:, :, row] - simulated[:, :, 1])
        close(one["approximation_error"], split.max(axis=-1) / first)
        close(one["mode_error_sup"], abs(modes[:, :, row] - strength).max(axis=(-2, -1)) / 3.0)
    off = abs(simulated[:, :, 1] - loss)
    close(values["discretisation_error"], off.max(axis=-1) / first)


def test_a_diverged_run_has_no_fit():
    cell = make_cell("analytic_fit", solutions=["aligned_modes"])
    loss = np.ones((2, 2, 201))
    loss[1, 0, 50:] = np.nan
    values = measured(cell, record(cell, {"loss": loss}), theory_of(cell))
    lost = values["loss_error_sup"].isnull().values[:, :, 0]
    np.testing.assert_array_equal(lost, [[False, False], [True, False]])
