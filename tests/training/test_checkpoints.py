"""Checkpoints come back bit by bit or not at all."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace

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
from neuralrace.training import checkpoints
from neuralrace.training.checkpoints import Checkpoints, State

DTYPES = ["float32", "float64", "bool", "int32", "int64", "uint8"]


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "checkpoints" / "part"


@pytest.fixture
def kept(folder):
    return Checkpoints(folder, "key", 60.0)


class Network(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Linear(3, 4, param_dtype=jnp.float64, rngs=rngs)
        self.second = nnx.Linear(4, 2, use_bias=False, param_dtype=jnp.float32, rngs=rngs)


def members(seed=0):
    """As the engine keeps them: parameters of a network, momentum, and integers."""
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
    for back, parts in ((restored.seen, saved.seen), (restored.snaps, saved.snaps)):
        assert len(back) == min(len(parts), 1)
        for part in back:
            assert list(part) == list(parts[0])
            for name, value in part.items():
                same_bits(value, np.concatenate([part[name] for part in parts]))


def restored(folder, key="key", like=None):
    """What a new process would find, and the lines that it reports."""
    lines = []
    like = members() if like is None else like
    return Checkpoints(folder, key, 60.0).restore(like, lines.append), lines


def test_round_trip(kept, folder):
    saved = state()
    kept.save(saved)
    back, lines = restored(folder)
    assert_is(back, saved)
    assert lines == [f"continuing at step 20, from the checkpoint in {folder}"]


def test_shapes_are_enough_to_restore_into(kept, folder):
    kept.save(state())
    assert_is(restored(folder, like=jax.eval_shape(members))[0], state())


def test_a_relative_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Checkpoints(Path("here"), "key", 60.0).save(state())
    assert_is(restored(tmp_path / "here")[0], state())


def test_without_snapshots(kept, folder):
    saved = State(3, members(1), state().seen, [])
    kept.save(saved)
    assert_is(restored(folder)[0], saved)


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
        kept = Checkpoints(Path(folder) / "part", "key", 60.0)
        saved = State(7, tree, [{"a/b.c": seen[:1]}, {"a/b.c": seen[1:]}], [])
        kept.save(saved)
        assert_is(kept.restore(jax.tree.map(jnp.zeros_like, tree), lambda line: None), saved)


def test_training_may_donate_what_it_restored(kept, folder):
    saved = state()
    kept.save(saved)
    back, _ = restored(folder)
    turned = jax.jit(partial(jax.tree.map, lambda value: value[::-1]), donate_argnums=0)
    after = turned(back.members)
    assert back.members["order"].is_deleted()
    same_bits(after["order"], np.arange(5)[::-1])
    assert_is(restored(folder)[0], saved)


def test_only_the_newest_is_kept(kept, folder):
    for step in (1, 2, 3):
        kept.save(state(step, seed=step))
        assert len(list(folder.iterdir())) == 2  # one slot and the file that names it
    assert_is(restored(folder)[0], state(3, seed=3))


def test_same_step_again(kept, folder):
    kept.save(state(5, seed=1))
    kept.save(state(5, seed=2))
    assert_is(restored(folder)[0], state(5, seed=2))


def test_nothing_to_restore(folder):
    assert restored(folder) == (None, [])
    assert not folder.exists()


def test_clear(kept, folder):
    kept.save(state())
    kept.clear()
    assert not folder.exists()
    kept.clear()
    assert restored(folder) == (None, [])


def test_another_key_is_not_used(kept, folder):
    kept.save(state())
    back, lines = restored(folder, key="other")
    assert back is None
    assert lines == [
        f"{folder}: the checkpoint is not used (it is of another configuration or other code); "
        "training starts anew"
    ]
    assert not folder.exists()


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
def test_members_of_another_network_are_not_restored(kept, folder, change):
    kept.save(state())
    back, lines = restored(folder, like=change(members()))
    assert back is None
    assert len(lines) == 1
    assert "does not fit the network" in lines[0]


# Damage --------------------------------------------------------------------------------------


def flip(path):
    raw = bytearray(path.read_bytes())
    raw[random.Random(path.name).randrange(len(raw))] ^= 1
    path.write_bytes(raw)


def truncate(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path):
    path.write_bytes(b"")


@pytest.mark.parametrize("harm", [flip, truncate, empty, Path.unlink])
def test_damage_to_any_file_is_noticed(kept, folder, harm, tmp_path, capfd):
    kept.save(state())
    paths = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    assert len(paths) > 5
    for number, path in enumerate(paths):
        copy = shutil.copytree(folder, tmp_path / str(number))
        harm(copy / path)
        why = f"{copy}: the checkpoint is not used (it is damaged); training starts anew"
        # without the file that names a slot there is no checkpoint to speak of
        none = path.name == "latest" and harm is Path.unlink
        assert restored(copy) == (None, [] if none else [why])
        assert not copy.exists() or not list(copy.iterdir())
    assert capfd.readouterr() == ("", "")


def test_orbax_alone_would_read_flipped_bytes(kept, folder):
    """Why there is a checksum: the data file of a large array, one bit changed."""
    kept.save(State(1, {"a": jnp.linspace(0.0, 1.0, 1000)}, [{"loss": np.zeros(1)}], []))
    data = max(folder.rglob("*"), key=lambda path: path.stat().st_size * path.is_file())
    raw = bytearray(data.read_bytes())
    raw[len(raw) // 2] ^= 1
    data.write_bytes(raw)
    with checkpoints._orbax() as checkpointer:
        (slot,) = folder.glob("slot-*")
        wrong = checkpointer.restore(slot / "arrays")["0"]
    assert (wrong != np.linspace(0.0, 1.0, 1000)).any()
    assert restored(folder, like={"a": jnp.zeros(1000)})[0] is None


@pytest.mark.parametrize(
    "harm",
    [
        lambda path: path.rename(path.with_name(path.name + "x")),
        lambda path: path.with_name("more").write_text(""),
    ],
    ids=["renamed", "added"],
)
def test_other_names_of_files_are_noticed(kept, folder, harm):
    kept.save(state())
    harm(next(folder.glob("slot-*/arrays/_METADATA")))
    back, lines = restored(folder)
    assert back is None
    assert "(it is damaged)" in lines[0]


def test_arrays_that_orbax_cannot_read_are_told_in_one_line(kept, folder, monkeypatch):
    import orbax.checkpoint as ocp

    def fail(*args, **kwargs):
        raise ValueError("a format\nof tomorrow")

    kept.save(state())
    monkeypatch.setattr(ocp.Checkpointer, "restore", fail)
    back, lines = restored(folder)
    assert back is None
    assert len(lines) == 1
    assert "(a format of tomorrow); training starts anew" in lines[0]


# Kills and full disks ------------------------------------------------------------------------


class Killed(BaseException):
    pass


@pytest.mark.parametrize("moment", ["mkdtemp", "save", "sha256", "replace"])
@pytest.mark.parametrize("after", [False, True])
def test_a_kill_leaves_the_old_or_the_new(kept, folder, monkeypatch, moment, after):
    import orbax.checkpoint as ocp

    owner, name = {
        "mkdtemp": (tempfile, "mkdtemp"),
        "save": (ocp.Checkpointer, "save"),
        "sha256": (checkpoints, "_sha256"),
        "replace": (os, "replace"),
    }[moment]
    real = getattr(owner, name)

    def killed(*args, **kwargs):
        if name != "replace" or Path(args[1]).name == "latest":
            if after:
                real(*args, **kwargs)
            raise Killed
        return real(*args, **kwargs)

    kept.save(state(1, seed=1))
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, killed)
        patch.setattr(Checkpoints, "_tidy", lambda self: None)  # a killed process cleans nothing
        with pytest.raises(Killed):
            kept.save(state(2, seed=2))
    new = moment == "replace" and after
    assert len(list(folder.iterdir())) > 2 or (moment, after) == ("mkdtemp", False)
    back, _ = restored(folder)
    assert_is(back, state(2, seed=2) if new else state(1, seed=1))
    assert len(list(folder.iterdir())) == 2


def test_leftovers_of_a_first_checkpoint_are_removed(folder):
    (folder / "slot-abc" / "arrays.orbax-checkpoint-tmp").mkdir(parents=True)
    assert restored(folder) == (None, [])
    assert list(folder.iterdir()) == []


SAVING = """
import sys
from pathlib import Path
import jax.numpy as jnp, numpy as np
from neuralrace.training.checkpoints import Checkpoints, State
kept = Checkpoints(Path(sys.argv[1]), "key", 0.0)
for step in range(10**6):
    value = np.full((50, 40), step, np.float32)
    kept.save(State(step, {"a": jnp.asarray(value)}, [{"loss": value}], []))
    print(step, flush=True)
"""


def test_a_killed_process_leaves_a_whole_checkpoint(folder):
    process = subprocess.Popen(
        [sys.executable, "-c", SAVING, str(folder)], stdout=subprocess.PIPE, text=True
    )
    with process:
        told = [int(process.stdout.readline()) for _ in range(5)]
        time.sleep(0.04)  # somewhere in a save, which takes about as long
        process.send_signal(signal.SIGKILL)
        told += map(int, process.stdout.read().split())
    back, lines = restored(folder, like={"a": jnp.zeros((50, 40), jnp.float32)})
    assert lines[0].startswith("continuing")
    assert back.step in (told[-1], told[-1] + 1)
    value = np.full((50, 40), back.step, np.float32)
    same_bits(back.members["a"], value)
    same_bits(back.seen[0]["loss"], value)


def test_a_full_disk_is_told_and_the_old_checkpoint_stays(kept, folder, monkeypatch, capfd):
    kept.save(state())
    size = sum(np.asarray(leaf).nbytes for leaf in jax.tree.leaves(members()))
    size += 6 * 2 * 8 + 6 * 8 + 24 * 8
    for free, room in ((size, True), (size - 1, False)):
        with monkeypatch.context() as patch:
            patch.setattr(shutil, "disk_usage", lambda path, free=free: SimpleNamespace(free=free))
            if room:
                kept.save(state())
            else:
                with pytest.raises(UserError, match=r"cannot be written .*disk has room"):
                    kept.save(state(30, seed=2))
    assert len(list(folder.iterdir())) == 2
    assert_is(restored(folder)[0], state())
    assert capfd.readouterr() == ("", "")


LIMITED = """
import resource, sys
from pathlib import Path
import jax.numpy as jnp, numpy as np
from neuralrace.errors import UserError
from neuralrace.training.checkpoints import Checkpoints, State
noise = np.random.default_rng(0).normal(size=(300, 300))
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    Checkpoints(Path(sys.argv[1]), "key", 0.0).save(State(30, {"a": noise}, [{"loss": noise}], []))
except UserError as error:
    print(error)
"""


def test_a_write_that_fails_is_told_and_the_old_checkpoint_stays(kept, folder):
    """A limit on the size of files stands for a quota, which is known when it is met only."""
    kept.save(state())
    told = subprocess.run(
        [sys.executable, "-c", LIMITED, str(folder)], capture_output=True, text=True, check=True
    )
    assert "absl" not in told.stderr
    assert re.search(r"cannot be written .*File too large.*disk has room", told.stdout)
    assert_is(restored(folder)[0], state())
    assert len(list(folder.iterdir())) == 2


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="folder is writable"):
        Checkpoints(tmp_path / "file" / "part", "key", 60.0).save(state())


# Time and cost -------------------------------------------------------------------------------


def test_due_counts_from_the_start_or_the_last_checkpoint(folder, monkeypatch):
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    kept = Checkpoints(folder, "key", 60.0)
    assert not kept.due()
    now = 159.0
    assert not kept.due()
    now = 160.0
    assert kept.due()
    kept.save(state())
    assert not kept.due()
    now = 230.0
    assert kept.due()
    kept.restore(members(), lambda line: None)
    assert not kept.due()


def test_a_process_hears_nothing_of_orbax(folder):
    """It is imported for a checkpoint only, and neither warns nor logs."""
    code = SAVING.replace("range(10**6)", "range(2)").replace(
        "    print(step, flush=True)", "kept.restore({'a': jnp.asarray(value)}, lambda line: None)"
    )
    code = code.replace("for step", "assert 'orbax' not in sys.modules\nfor step")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, str(folder)], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_description_is_readable(kept, folder):
    kept.save(state())
    (description,) = folder.glob("slot-*/description.json")
    told = json.loads(description.read_text())
    assert (told["key"], told["step"]) == ("key", 20)
    assert ["seen", "loss", "float64", [6, 2]] in told["arrays"]
