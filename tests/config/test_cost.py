"""Estimated cost of cells, and the device that trains them."""

import pytest

from builders import LINEAR, build_cell
from neuralrace.config.cost import GPU_COMPILE, estimate_cost
from neuralrace.config.settings import Plan

SPEC = {
    **LINEAR,
    "init": {"name": "aligned"},
    "training": {"learning_rate": 0.02, "steps": 400},
    "record": {"every": 10, "observables": ["mode_strength"]},
    "solutions": ["aligned_modes"],
    "metrics": ["analytic_fit", "learning_times"],
}
WIDE = {
    "dataset": {"name": "gaussian_mixture", "inputs": 500, "outputs": 100},
    "network": {"name": "layered", "hidden": [2000, 2000]},
    "init": {"name": "normal"},
    "record": {"every": 10},
    "solutions": [],
    "metrics": [],
}
"""A cell that trains faster on a GPU."""


def cell(**changes):
    return build_cell(SPEC, **changes)


@pytest.mark.parametrize(("gpus", "count"), [(None, 2), (0, 0), (1, 1)])
def test_gpus_are_those_of_this_machine_unless_they_are_configured(monkeypatch, gpus, count):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    assert Plan(cells={}, gpus=gpus).gpus_each == count


def test_only_large_cells_train_on_a_gpu():
    wide = cell(**WIDE)
    assert estimate_cost(wide, gpu=True).device == "gpu"
    assert estimate_cost(wide, gpu=False).device == "cpu"
    assert estimate_cost(wide, gpu=True).seconds() < estimate_cost(wide).seconds()
    assert estimate_cost(cell(), gpu=True) == estimate_cost(cell())
    assert estimate_cost(wide, gpu=True).compile == GPU_COMPILE
    assert estimate_cost(wide, gpu=False).compile != GPU_COMPILE


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ({"training": {"learning_rate": 0.02, "steps": 4000}}, "train"),
        ({"seeds": 200, "record": SPEC["record"]}, "train"),
        ({"metrics": [*SPEC["metrics"], "half_times"]}, "measure"),
        ({"solutions": ["aligned_modes", "flow"]}, "solve"),
    ],
)
def test_more_costs_more(more, key):
    assert getattr(estimate_cost(cell(**more)), key) > getattr(estimate_cost(cell()), key)


def test_cells_with_the_same_program_share_its_compilation():
    one, other = estimate_cost(cell()), estimate_cost(cell(init_scales=[0.2, 0.4]))
    assert one.program == other.program
    assert other.seconds({one.program}) == other.train + other.solve + other.measure
    assert estimate_cost(cell(network={"name": "layered", "hidden": [3]})).program != one.program


def test_estimated_memory_grows_with_the_data():
    small, large = (
        estimate_cost(
            cell(dataset={"name": "modes", "singular_values": [1.0], "inputs": n, "outputs": n})
        )
        for n in (3, 3000)
    )
    assert large.memory_mb > small.memory_mb


def test_estimated_disk_space_grows_with_the_records():
    few, many = (estimate_cost(cell(record=SPEC["record"] | {"every": n})) for n in (400, 1))
    assert many.disk_mb >= few.disk_mb >= 1
    lasting = estimate_cost(cell(seeds=2000, record=SPEC["record"] | {"every": 1}))
    assert lasting.disk_mb > 50 * many.disk_mb
