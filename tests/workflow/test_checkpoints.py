"""Checkpoints are restored bit by bit or not at all."""

import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from neuralrace.errors import UserError
from neuralrace.training.checkpointing import State
from neuralrace.workflow.checkpoints import FileCheckpoints
from warm_python import PYTHON

DTYPES = ["float32", "float64", "bool", "int32", "int64", "uint8"]


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


@pytest.fixture
def path(tmp_path):
    return tmp_path / "checkpoints" / "part.npz"


@pytest.fixture
def checkpoints(path):
    return FileCheckpoints(path, "key", 60.0)


class Network(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Linear(3, 4, param_dtype=jnp.float64, rngs=rngs)
        self.second = nnx.Linear(4, 2, use_bias=False, param_dtype=jnp.float32, rngs=rngs)


def members(seed=0):
    """Members as in training: parameters of a network, momentum, and integers."""
    _, params, _ = nnx.split(Network(nnx.Rngs(seed)), nnx.Param, ...)
    momentum = optax.sgd(1.0, 0.9).init(params)
    return {
        "params": params,
        "optimiser": jax.tree.map(lambda value: value + seed, momentum),
        "diverged_at": jnp.array([-1, seed]),
        "order": jnp.arange(5) * seed,
        "open": jnp.array([True, False]),
    }


def state(step=20, seed=1):
    rng = np.random.default_rng(seed)
    seen = [{"loss": rng.normal(size=(n, 2)), "steps": np.full(n, step)} for n in (1, 3, 2)]
    return State(step, members(seed), seen, [{"weights": rng.normal(size=(2, 3, 4))}])


def same_bits(one, other):
    one, other = np.asarray(one), np.asarray(other)
    assert (one.dtype, one.shape) == (other.dtype, other.shape)
    assert one.tobytes() == other.tobytes()


def assert_is(restored, saved):
    assert restored.step == saved.step
    assert jax.tree.structure(restored.members) == jax.tree.structure(saved.members)
    jax.tree.map(same_bits, restored.members, saved.members)
    for back, parts in ((restored.series, saved.series), (restored.snapshots, saved.snapshots)):
        assert len(back) == min(len(parts), 1)
        for part in back:
            assert list(part) == list(parts[0])
            for name, value in part.items():
                same_bits(value, np.concatenate([part[name] for part in parts]))


def restored(path, key="key", like=None):
    """The state that a new process restores, and the lines that it reports."""
    lines = []
    like = members() if like is None else like
    return FileCheckpoints(path, key, 60.0).restore(like, lines.append), lines


def test_round_trip(checkpoints, path):
    saved = state()
    checkpoints.save(saved)
    back, lines = restored(path)
    assert_is(back, saved)
    assert lines == [f"continuing at step 20, from the checkpoint {path}"]


def test_shapes_are_enough_to_restore_into(checkpoints, path):
    checkpoints.save(state())
    assert_is(restored(path, like=jax.eval_shape(members))[0], state())


def test_a_relative_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    FileCheckpoints(Path("here.npz"), "key", 60.0).save(state())
    assert_is(restored(tmp_path / "here.npz")[0], state())


def test_without_snapshots(checkpoints, path):
    saved = State(3, members(1), state().series, [])
    checkpoints.save(saved)
    assert_is(restored(path)[0], saved)


any_array = st.sampled_from(DTYPES).flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, min_side=0, max_side=3))
)


@settings(max_examples=15)
@given(
    leaves=st.lists(any_array, max_size=3),
    seen=hnp.arrays(np.uint64, (4, 2)).map(lambda bits: bits.view(np.float64)),
)
def test_every_bit_survives(leaves, seen):
    # signed zeros, NaN with a payload, empty arrays, scalars; the first leaf is never empty
    tree = {"a": jnp.array([-0.0, 0.0]), "rest": tuple(jnp.array(leaf) for leaf in leaves)}
    with tempfile.TemporaryDirectory() as folder:
        checkpoints = FileCheckpoints(Path(folder) / "part.npz", "key", 60.0)
        saved = State(7, tree, [{"a/b.c": seen[:1]}, {"a/b.c": seen[1:]}], [])
        checkpoints.save(saved)
        assert_is(checkpoints.restore(jax.tree.map(jnp.zeros_like, tree), lambda line: None), saved)


def test_training_may_donate_what_it_restored(checkpoints, path):
    saved = state()
    checkpoints.save(saved)
    back, _ = restored(path)
    turned = jax.jit(partial(jax.tree.map, lambda value: value[::-1]), donate_argnums=0)
    after = turned(back.members)
    assert back.members["order"].is_deleted()
    same_bits(after["order"], np.arange(5)[::-1])
    assert_is(restored(path)[0], saved)


def test_only_the_newest_is_kept(checkpoints, path):
    for step in (1, 2, 3):
        checkpoints.save(state(step, seed=step))
        assert list(path.parent.iterdir()) == [path]
    assert_is(restored(path)[0], state(3, seed=3))


def test_same_step_again(checkpoints, path):
    checkpoints.save(state(5, seed=1))
    checkpoints.save(state(5, seed=2))
    assert_is(restored(path)[0], state(5, seed=2))


def test_nothing_to_restore(path):
    assert restored(path) == (None, [])
    assert not path.exists()


def test_clear(checkpoints, path):
    checkpoints.save(state())
    checkpoints.clear()
    assert not path.exists()
    checkpoints.clear()
    assert restored(path) == (None, [])


def test_another_key_is_not_used(checkpoints, path):
    checkpoints.save(state())
    back, lines = restored(path, key="other")
    assert back is None
    assert lines == [
        f"{path}: the checkpoint is not used (it belongs to another configuration or other code); "
        "training starts anew"
    ]
    assert not path.exists()


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m | {"order": jnp.arange(6)},
        lambda m: m | {"order": jnp.arange(5, dtype=jnp.int32)},
        lambda m: {k: v for k, v in m.items() if k != "order"},
        lambda m: {("order2" if k == "order" else k): v for k, v in m.items()},
        lambda m: m | {"more": jnp.zeros(2)},
        lambda m: m | {"zzz": jnp.zeros(2)},
        lambda m: {k: v for k, v in m.items() if k != "params"},
    ],
    ids=["shape", "dtype", "fewer", "renamed", "more", "more at the end", "fewer at the end"],
)
def test_members_of_another_network_are_not_restored(checkpoints, path, change):
    checkpoints.save(state())
    back, lines = restored(path, like=change(members()))
    assert back is None
    assert len(lines) == 1
    assert "does not fit the network" in lines[0]


# Damage --------------------------------------------------------------------------------------


def test_a_flipped_bit_anywhere_is_noticed_or_harmless(checkpoints, path):
    """A ZIP archive holds some numbers twice, and some that no reader uses."""
    saved = state()
    checkpoints.save(saved)
    whole, noticed = path.read_bytes(), 0
    for place in random.Random(0).sample(range(len(whole)), 300):
        damaged = bytearray(whole)
        damaged[place] ^= 1
        path.write_bytes(damaged)
        back, lines = restored(path)
        if back is None:
            noticed += 1
            assert len(lines) == 1
            assert "training starts anew" in lines[0]
            assert not path.exists()
        else:
            assert_is(back, saved)
    assert noticed > 150


@pytest.mark.parametrize("left", [0, 1, 100, 0.5, 0.99])
def test_a_truncated_file_is_noticed(checkpoints, path, left):
    checkpoints.save(state())
    whole = path.read_bytes()
    path.write_bytes(whole[: int(left * len(whole)) if isinstance(left, float) else left])
    back, lines = restored(path)
    assert back is None
    assert len(lines) == 1
    assert "training starts anew" in lines[0]
    assert not path.exists()


def test_objects_are_not_read(path):
    """NumPy would pickle them."""
    path.parent.mkdir()
    np.savez(path, description=np.array({"key": "key"}, dtype=object))
    assert restored(path)[0] is None


# Kills and full disks ------------------------------------------------------------------------


class Killed(BaseException):
    pass


@pytest.mark.parametrize("moment", [(np, "savez"), (os, "fsync"), (os, "replace")])
@pytest.mark.parametrize("after", [False, True])
def test_a_kill_leaves_the_old_or_the_new_checkpoint(checkpoints, path, monkeypatch, moment, after):
    owner, name = moment
    real = getattr(owner, name)

    def killed(*args, **kwargs):
        if after:
            real(*args, **kwargs)
        raise Killed

    checkpoints.save(state(1, seed=1))
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, killed)
        patch.setattr(
            Path, "unlink", lambda self: None
        )  # a killed process removes no temporary files
        with pytest.raises(Killed):
            checkpoints.save(state(2, seed=2))
    new = name == "replace" and after
    assert_is(restored(path)[0], state(2, seed=2) if new else state(1, seed=1))
    checkpoints.clear()
    assert list(path.parent.iterdir()) == []


SAVING = """
import sys
from pathlib import Path
import jax.numpy as jnp, numpy as np
from neuralrace.training.checkpointing import State
from neuralrace.workflow.checkpoints import FileCheckpoints
checkpoints = FileCheckpoints(Path(sys.argv[1]), "key", 0.0)
for step in range(10**6):
    value = np.full((500, 400), step, np.float32)
    checkpoints.save(State(step, {"a": jnp.asarray(value)}, [{"loss": value}], []))
    print(step, flush=True)
"""


def test_a_killed_process_leaves_a_whole_checkpoint(path):
    process = subprocess.Popen(
        [sys.executable, "-c", SAVING, str(path)], stdout=subprocess.PIPE, text=True
    )
    with process:
        steps = [int(process.stdout.readline()) for _ in range(5)]
        time.sleep(0.01)  # somewhere in a save
        process.send_signal(signal.SIGKILL)
        steps += map(int, process.stdout.read().split())
    back, lines = restored(path, like={"a": jnp.zeros((500, 400), jnp.float32)})
    assert lines[0].startswith("continuing")
    assert back.step in (steps[-1], steps[-1] + 1)
    value = np.full((500, 400), back.step, np.float32)
    same_bits(back.members["a"], value)
    same_bits(back.series[0]["loss"], value)


LIMITED = """
import resource, sys
from pathlib import Path
import numpy as np
from neuralrace.errors import UserError
from neuralrace.training.checkpointing import State
from neuralrace.workflow.checkpoints import FileCheckpoints
noise = np.random.default_rng(0).normal(size=(300, 300))
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    state = State(30, {"a": noise}, [{"loss": noise}], [])
    FileCheckpoints(Path(sys.argv[1]), "key", 0.0).save(state)
except UserError as error:
    print(error)
"""


def test_a_failed_write_is_reported_and_the_old_checkpoint_stays(checkpoints, path):
    """A limit on the size of files replaces a full disk."""
    checkpoints.save(state())
    done = PYTHON.run(["-c", LIMITED, str(path)])
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"cannot be written .*File too large.*disk has room", done.stdout)
    assert_is(restored(path)[0], state())
    assert list(path.parent.iterdir()) == [path]


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="folder is writable"):
        FileCheckpoints(tmp_path / "file" / "part.npz", "key", 60.0).save(state())


# Time ----------------------------------------------------------------------------------------


def test_due_counts_from_the_start_or_the_last_checkpoint(path, monkeypatch):
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    checkpoints = FileCheckpoints(path, "key", 60.0)
    assert not checkpoints.due()
    now = 159.0
    assert not checkpoints.due()
    now = 160.0
    assert checkpoints.due()
    checkpoints.save(state())
    assert not checkpoints.due()
    now = 230.0
    assert checkpoints.due()
    checkpoints.restore(members(), lambda line: None)
    assert not checkpoints.due()
