"""Runs in groups and samples in blocks: the same numbers, at any sizes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuralrace.training import memory
from neuralrace.training.blocks import mean_over_blocks
from neuralrace.training.groups import Groups, groups
from neuralrace.training.trainer import Trainer, train

ROUNDING = 1e-12


@given(
    scales=st.integers(1, 5),
    seeds=st.integers(1, 12),
    run_bytes=st.integers(1, 2 * memory.CACHE),
    by_seed=st.booleans(),
)
def test_every_run_is_in_a_group_that_fits_the_cache(scales, seeds, run_bytes, by_seed):
    chosen = groups(scales, seeds, run_bytes, by_seed)
    assert set(chosen.runs.ravel()) == set(range(scales * seeds))
    smallest = scales if by_seed else 1
    assert chosen.size == smallest or chosen.size * run_bytes <= memory.CACHE
    repeated = chosen.runs.size - scales * seeds
    assert repeated < chosen.size, "no group is trained for nothing"
    if by_seed:  # all scales of each seed, scale by scale
        for group in chosen.runs:
            by_scale = np.sort(group).reshape(scales, -1)
            assert (by_scale % seeds == by_scale[0] % seeds).all()
            assert (by_scale // seeds == np.arange(scales)[:, None]).all()


@pytest.mark.parametrize(
    ("runs", "fit", "size"),
    [(12, 12, 12), (12, 11, 6), (12, 5, 4), (10, 4, 2), (5, 4, 1), (41, 40, 21), (3, 1, 1)],
)
def test_groups_are_large_and_repeat_few_runs(runs, fit, size):
    assert groups(1, runs, memory.CACHE // fit, False).size == size
    assert groups(1, runs, memory.CACHE // fit, True).size == size


def test_a_gpu_trains_more_runs_at_once(monkeypatch):
    assert groups(3, 4, memory.CACHE, False).size == 1
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert groups(3, 4, memory.CACHE, False).size == 12
    assert groups(3, 4, memory.GPU_PART, False).size == 1


def test_joining_is_the_inverse_of_dividing():
    runs = Groups(np.array([[0, 3], [1, 4], [2, 5], [0, 1]]))
    tree = {"a": jnp.arange(6.0), "b": [jnp.arange(12).reshape(6, 2)]}
    parts = runs.divide(tree)
    np.testing.assert_array_equal(parts[1]["a"], [1, 4])
    for joined, whole in zip(*map(jax.tree.leaves, (runs.join(parts), tree)), strict=True):
        np.testing.assert_array_equal(joined, whole)
    later = runs.join([part["b"][0].T for part in parts], axis=1)
    np.testing.assert_array_equal(later, tree["b"][0].T)


@pytest.mark.parametrize(
    ("count", "rows"),
    [(1, 1), (3, 50), (12, 12), (12, 4), (12, 1), (12, 5), (13, 12), (37, 6), (40, 23)],
)
def test_means_over_blocks_are_means_over_all_samples(count, rows):
    x = np.random.default_rng(count).normal(size=(count, 3))
    largest = 0

    def means(samples):
        nonlocal largest
        largest = max(largest, len(samples["x"]))
        return {"mean": jnp.mean(samples["x"], axis=0), "square": jnp.mean(samples["x"] ** 2)}

    with jax.enable_x64(True):
        chosen = mean_over_blocks(means, {"x": jnp.asarray(x)}, rows)
    assert largest <= rows
    np.testing.assert_allclose(chosen["mean"], x.mean(axis=0), atol=ROUNDING)
    np.testing.assert_allclose(chosen["square"], (x**2).mean(), rtol=ROUNDING)


KINDS = {
    "all samples": {"network": {"name": "layered", "hidden": [4], "activation": "relu"}},
    "second moments": {},
    "mini-batches": {"batch": {"name": "mini", "size": 5}},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cache", [1, 400, 2**40])
def test_sizes_of_groups_and_blocks_change_no_result(make_run, monkeypatch, kind, cache):
    parts = dict(KINDS[kind])
    training = {"learning_rate": 0.05, "steps": 12, "batch": parts.pop("batch", {"name": "full"})}
    ensemble = make_run(**parts, seeds=5, init_scales=[0.3, 0.6], training=training)
    monkeypatch.setattr(memory, "CACHE", 2**40)
    usual = train(ensemble)
    monkeypatch.setattr(memory, "CACHE", cache)
    with jax.enable_x64(True):
        sizes = Trainer(ensemble).groups.runs.shape
    assert (sizes == (1, 10)) == (cache == 2**40)
    again = train(ensemble)
    for name, values in usual.variables.items():
        np.testing.assert_allclose(again.variables[name], values, rtol=1e-9, atol=ROUNDING)


def test_a_run_that_diverges_ends_none_of_its_group_or_another(make_run, monkeypatch):
    monkeypatch.setattr(memory, "CACHE", 1)
    ensemble = make_run(
        init_scales=[0.1, 30.0],
        seeds=2,
        training={"learning_rate": 0.1, "steps": 40},
        record={"every": 1},
    )
    trajectory = train(ensemble)
    np.testing.assert_array_equal(trajectory.diverged_at[0], -1)
    assert (trajectory.diverged_at[1] >= 0).all()
    assert np.isfinite(trajectory.variables["loss"][0]).all()


def test_memory_of_waiting_runs_is_counted(make_run, monkeypatch):
    ensemble = make_run(
        seeds=8,
        init_scales=[0.01],
        network={"name": "layered", "hidden": [50_000]},
        record={"every": 12, "snapshots": 1},
    )

    monkeypatch.setattr(memory, "WORTH_A_LINE", 0)

    def arguments():
        lines = []
        train(ensemble, lines.append)
        (line,) = (line for line in lines if line.startswith("memory: "))
        assert "each of 8 runs" in line
        return float(line.split("(")[1].split(" GB")[0])

    weights = 8 * (3 + 2) * 50_000 / 1e9  # gigabytes of one run
    # the program does not use initial weights, but those of waiting runs are in memory
    assert arguments() == pytest.approx(weights + 7 * 2 * weights, abs=1e-3)
    monkeypatch.setattr(memory, "CACHE", 2**40)
    assert arguments() == pytest.approx(8 * weights, abs=1e-3)
