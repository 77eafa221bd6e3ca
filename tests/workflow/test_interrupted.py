"""A stopped training continues from its checkpoint to the same result."""

import numpy as np
import pytest

from builders import MIXTURE, build_ensemble
from neuralrace.errors import UserError
from neuralrace.training import progress, trainer
from neuralrace.training.trainer import train
from neuralrace.workflow.checkpoints import FileCheckpoints
from neuralrace.workflow.shutdown import Shutdown, Stopped

MINI = {
    "learning_rate": 0.02,
    "steps": 40,
    "optimiser": {"name": "momentum", "momentum": 0.9},
    "batch": {"name": "mini", "size": 3},
}
LONG = {"learning_rate": 0.02, "steps": 240}
RECORD = {"every": 2, "snapshots": 4, "observables": ["weights", "layer_norm"]}
IMAGES = {
    "dataset": {
        "name": "transformed_images",
        "count": 3,
        "images": {"name": "digits", "samples": 1757},
    },
    "network": {
        "name": "routing",
        "hidden": [3, 3],
        "gates": {"name": "always_on"},
        "pairs": {"name": "random_regular", "partners": 2},
    },
    "record": {"every": 2, "snapshots": 4, "observables": ["pair_error", "pair_accuracy"]},
    "precision": "float32",
}
RUNS = {
    "mini-batches with momentum": {"training": MINI, "record": RECORD},
    "a run that diverges": {
        "training": {"learning_rate": 0.05, "steps": 40},
        "init_scales": [0.1, 9.0],
        "record": RECORD,
    },
    "images": IMAGES | {"training": MINI | {"batch": {"name": "mini", "size": 700}}},
    "moments of images": IMAGES | {"training": MINI | {"batch": {"name": "full"}}},
}


class KilledError(Exception):
    """An abrupt end of training."""


class EveryCall:
    """Checkpoints that are due after every call of the program."""

    def __init__(self):
        self.steps = []

    def restore(self, like, report):
        """Nothing has been saved."""

    def due(self):
        return True

    def save(self, state):
        self.steps.append(state.step)


def test_nothing_is_saved_after_the_last_step():
    checkpoints = EveryCall()
    train(build_ensemble(MIXTURE, training=LONG, record=RECORD), checkpoints=checkpoints)
    assert checkpoints.steps == sorted(set(checkpoints.steps))
    assert 0 < checkpoints.steps[-1] < LONG["steps"]


def stopping(after):
    """A report that ends training at the first line of progress beyond a step."""

    def report(line):
        if line.startswith("step ") and int(line.split()[1].split("/")[0]) >= after:
            raise KilledError

    return report


@pytest.mark.parametrize(
    ("name", "after"),
    [
        ("mini-batches with momentum", 4),
        ("mini-batches with momentum", 30),
        ("a run that diverges", 4),
        ("a run that diverges", 30),
        ("images", 30),
        ("moments of images", 4),
    ],
)
def test_a_killed_training_continues_to_the_same_result(tmp_path, monkeypatch, name, after):
    monkeypatch.setattr(progress, "INTERVAL", -1.0)
    ensemble = build_ensemble(MIXTURE, **RUNS[name])
    whole = train(ensemble)

    def checkpoints():
        return FileCheckpoints(tmp_path / "checkpoint.npz", "one", seconds=0.0)

    with pytest.raises(KilledError):
        train(ensemble, report=stopping(after), checkpoints=checkpoints())
    lines = []
    resumed = train(ensemble, report=lines.append, checkpoints=checkpoints())
    (line,) = [line for line in lines if line.startswith("continuing")]
    assert line.startswith(f"continuing at step {after - 1},")
    for variable, values in whole.variables.items():
        np.testing.assert_array_equal(resumed.variables[variable], values, err_msg=variable)
    np.testing.assert_array_equal(resumed.diverged_at, whole.diverged_at)


def test_a_checkpoint_of_another_training_is_not_used(tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "INTERVAL", -1.0)
    ensemble = build_ensemble(MIXTURE, training=MINI, record=RECORD)
    path, lines = tmp_path / "checkpoint.npz", []
    with pytest.raises(KilledError):
        train(ensemble, report=stopping(30), checkpoints=FileCheckpoints(path, "one", 0.0))
    again = train(ensemble, lines.append, FileCheckpoints(path, "two", 1e9))
    assert any("another configuration" in line for line in lines)
    np.testing.assert_array_equal(again.variables["loss"], train(ensemble).variables["loss"])


def test_the_clock_changes_the_length_of_calls_and_no_result(monkeypatch):
    ensemble = build_ensemble(MIXTURE, training=LONG, record={"every": 1})
    monkeypatch.setattr(trainer, "_PROGRAMS", {})
    usual, programs = train(ensemble), len(trainer._PROGRAMS)
    lengths = []
    update = progress.Progress.update
    monkeypatch.setattr(
        progress.Progress, "update", lambda *args: lengths.append(args[-1]) or update(*args)
    )
    clock = iter(np.arange(0.0, 1e4, progress.INTERVAL / 10))
    monkeypatch.setattr(progress.time, "monotonic", lambda: float(next(clock)))
    quick = train(ensemble)
    assert lengths == [1, 10, *[trainer.ROWS] * 3, 240 - 11 - 3 * trainer.ROWS]
    lengths.clear()
    clock = iter(np.arange(0.0, 1e4, 4 * progress.INTERVAL))
    slow = train(ensemble)
    assert lengths == [1] * 240
    assert len(trainer._PROGRAMS) == programs
    for other in (quick, slow):
        np.testing.assert_array_equal(other.variables["loss"], usual.variables["loss"])


def test_slow_steps_between_records_are_split_into_several_calls(monkeypatch):
    ensemble = build_ensemble(MIXTURE, training=LONG, record={"every": 60})
    usual = train(ensemble)
    lengths = []
    update = progress.Progress.update
    monkeypatch.setattr(
        progress.Progress, "update", lambda *args: lengths.append(args[-1]) or update(*args)
    )
    clock = iter(np.arange(0.0, 1e4, 20.0))
    monkeypatch.setattr(progress, "INTERVAL", 800.0)  # 40 times as many steps fit, then 1
    monkeypatch.setattr(progress.time, "monotonic", lambda: float(next(clock)))
    several = train(ensemble)
    assert lengths == [1, 40, 19, 180]
    lengths.clear()
    clock = iter(np.arange(0.0, 1e6, 800.0))
    slow = train(ensemble)
    assert lengths == [1] * 240
    for other in (several, slow):
        np.testing.assert_array_equal(other.variables["loss"], usual.variables["loss"])


def test_a_shutdown_request_is_answered_after_a_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "INTERVAL", -1.0)
    ensemble, shutdown = build_ensemble(MIXTURE, **RUNS["mini-batches with momentum"]), Shutdown()

    def checkpoints(*shutdown):
        return FileCheckpoints(tmp_path / "checkpoint.npz", "one", 1e9, *shutdown)

    def request(line):
        if line.startswith("step 5/"):
            shutdown.requested = "SIGTERM"

    with pytest.raises(Stopped, match=r"SIGTERM at step 5; the same .*/checkpoint\.npz$"):
        train(ensemble, report=request, checkpoints=checkpoints(shutdown))
    lines = []
    resumed = train(ensemble, report=lines.append, checkpoints=checkpoints())
    assert any(line.startswith("continuing at step 5,") for line in lines)
    for variable, values in train(ensemble).variables.items():
        np.testing.assert_array_equal(resumed.variables[variable], values, err_msg=variable)


def test_a_run_that_exceeds_the_memory_is_refused_before_allocation(monkeypatch):
    monkeypatch.setattr(trainer.memory, "available_on_device", lambda device: 1000)
    monkeypatch.setattr(trainer.Trainer, "start", lambda *_: pytest.fail("allocated first"))
    with pytest.raises(UserError, match=r"device has 0\.000 GB left.*seeds"):
        train(build_ensemble(MIXTURE))
