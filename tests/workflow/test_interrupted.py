"""Training that was stopped goes on from its checkpoint, to what it would have come to."""

import numpy as np
import pytest

from neuralrace.errors import UserError
from neuralrace.training import progress, trainer
from neuralrace.training.trainer import train
from neuralrace.workflow.checkpoints import Checkpoints
from neuralrace.workflow.stopping import Requests, Stopped

MINI = {
    "learning_rate": 0.02,
    "steps": 40,
    "optimiser": {"name": "momentum", "momentum": 0.9},
    "batch": {"name": "mini", "size": 3},
}
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


class StoppedError(Exception):
    """Somebody pulled the plug."""


def stopping(after):
    """A report that stops training at the first line of progress beyond a step."""

    def report(line):
        if line.startswith("step ") and int(line.split()[1].split("/")[0]) >= after:
            raise StoppedError

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
def test_goes_on_to_the_same_result(make_run, tmp_path, monkeypatch, name, after):
    monkeypatch.setattr(progress, "INTERVAL", -1.0)
    ensemble = make_run(**RUNS[name])
    whole = train(ensemble)

    def kept(key="one"):
        return Checkpoints(tmp_path / "checkpoint.npz", key, seconds=0.0)

    with pytest.raises(StoppedError):
        train(ensemble, report=stopping(after), checkpoints=kept())
    lines = []
    resumed = train(ensemble, report=lines.append, checkpoints=kept())
    (told,) = [line for line in lines if line.startswith("continuing")]
    assert told.startswith(f"continuing at step {after - 1},")
    for variable, values in whole.variables.items():
        np.testing.assert_array_equal(resumed.variables[variable], values, err_msg=variable)
    np.testing.assert_array_equal(resumed.diverged_at, whole.diverged_at)


def test_a_checkpoint_of_something_else_is_not_used(make_run, tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "INTERVAL", -1.0)
    ensemble = make_run(training=MINI, record=RECORD)
    with pytest.raises(StoppedError):
        train(
            ensemble, report=stopping(30), checkpoints=Checkpoints(tmp_path / "c.npz", "one", 0.0)
        )
    lines = []
    again = train(
        ensemble, report=lines.append, checkpoints=Checkpoints(tmp_path / "c.npz", "two", 1e9)
    )
    assert any("another configuration" in line for line in lines)
    np.testing.assert_array_equal(again.variables["loss"], train(ensemble).variables["loss"])


def test_the_clock_sets_the_length_of_calls_and_no_number(make_run, monkeypatch):
    ensemble = make_run(training={"learning_rate": 0.02, "steps": 240}, record={"every": 1})
    monkeypatch.setattr(trainer, "_PROGRAMS", {})
    usual, programs = train(ensemble), len(trainer._PROGRAMS)
    lengths = []
    update = progress.Progress.update
    monkeypatch.setattr(
        progress.Progress, "update", lambda *given: lengths.append(given[-1]) or update(*given)
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


def test_steps_to_a_record_that_take_too_long_are_made_in_several_calls(make_run, monkeypatch):
    ensemble = make_run(training={"learning_rate": 0.02, "steps": 240}, record={"every": 60})
    usual = train(ensemble)
    made = []
    update = progress.Progress.update
    monkeypatch.setattr(
        progress.Progress, "update", lambda *given: made.append(given[-1]) or update(*given)
    )
    clock = iter(np.arange(0.0, 1e4, 20.0))
    monkeypatch.setattr(progress, "INTERVAL", 800.0)  # 40 times as much can be made in time, then 1
    monkeypatch.setattr(progress.time, "monotonic", lambda: float(next(clock)))
    several = train(ensemble)
    assert made == [1, 40, 19, 180]
    made.clear()
    clock = iter(np.arange(0.0, 1e6, 800.0))
    slow = train(ensemble)
    assert made == [1] * 240
    for other in (several, slow):
        np.testing.assert_array_equal(other.variables["loss"], usual.variables["loss"])


def test_a_request_to_end_is_answered_by_a_checkpoint(make_run, tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "INTERVAL", -1.0)
    ensemble, requests = make_run(**RUNS["mini-batches with momentum"]), Requests()

    def kept(*asked):
        return Checkpoints(tmp_path / "checkpoint.npz", "one", 1e9, *asked)

    def ask(line):
        if line.startswith("step 5/"):
            requests.asked = "SIGTERM"

    with pytest.raises(Stopped, match=r"SIGTERM at step 5; the same .*/checkpoint\.npz$"):
        train(ensemble, report=ask, checkpoints=kept(requests))
    lines = []
    resumed = train(ensemble, report=lines.append, checkpoints=kept())
    assert any(line.startswith("continuing at step 5,") for line in lines)
    for variable, values in train(ensemble).variables.items():
        np.testing.assert_array_equal(resumed.variables[variable], values, err_msg=variable)


def test_what_does_not_fit_into_memory_is_refused_before_it_is_made(make_run, monkeypatch):
    monkeypatch.setattr(trainer.memory, "available_on", lambda device: 1000)
    monkeypatch.setattr(trainer.Trainer, "start", lambda *_: pytest.fail("memory was taken first"))
    lines = []
    with pytest.raises(UserError, match=r"device has 0\.000 GB left.*seeds"):
        train(make_run(), report=lines.append)
    assert lines[0].startswith("memory: ")
