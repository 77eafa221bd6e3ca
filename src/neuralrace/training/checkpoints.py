"""Checkpoints of unfinished training, so that a run that was stopped does not start anew.

A folder holds one checkpoint: a slot with arrays written by orbax and a description of them, and a
file `latest` that names the slot with a checksum of all that is in it. Replacing `latest` is the
one step that makes a new checkpoint count. The checksum is needed: orbax reads arrays whose stored
bytes have changed without a word.
"""

import errno
import hashlib
import json
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from neuralrace.errors import UserError

Parts = list[dict[str, np.ndarray]]
Entry = tuple[str, str, str, list[int]]


@dataclass(frozen=True)
class State:
    """Training after some steps.

    Attributes:
        step: gradient steps made.
        members: what changes in training, a pytree of device arrays.
        seen: what was recorded, in parts that follow each other along their leading time axis; each
            part has the same names.
        snaps: snapshots, likewise; may be empty.
    """

    step: int
    members: Any
    seen: Parts
    snaps: Parts


class Checkpoints:
    """The newest checkpoint of one training, in a folder of its own."""

    def __init__(self, folder: Path, key: str, seconds: float):
        """Nothing is read or written yet.

        Args:
            folder: where the checkpoint stands; nothing else may be kept there.
            key: identity of the training; a checkpoint with another key is of no use to it.
            seconds: time between two checkpoints.
        """
        self.folder = folder.absolute()
        self.key = key
        self.seconds = seconds
        self.since = time.monotonic()

    @property
    def latest(self) -> Path:
        """The file that names the slot that counts."""
        return self.folder / "latest"

    def due(self) -> bool:
        """Whether it is time for another checkpoint, counted from the start or the last one."""
        return time.monotonic() - self.since >= self.seconds

    def restore(self, members: Any, report: Callable[[str], None]) -> State | None:
        """The state that was saved last, if it is this training's and whole.

        A checkpoint that is of no use is removed, with one line to say why.

        Args:
            members: freshly built members or their shapes: the saved ones must have the same
                structure, dtypes and shapes. Call it at the precision that they were built in.
            report: takes one line: the step that training continues from, or why it starts anew.

        Returns:
            The state, with all that was recorded joined into one part; None to start anew.
        """
        self._tidy()
        if not self.latest.is_file():
            return None
        try:
            state = self._read(members)
        # beside the reasons found here: a disk that cannot be read, another version of orbax
        except (OSError, ValueError, KeyError) as error:
            reason = " ".join(str(error).split())
            report(f"{self.folder}: the checkpoint is not used ({reason}); training starts anew")
            self.clear()
            return None
        report(f"continuing at step {state.step}, from the checkpoint in {self.folder}")
        self.since = time.monotonic()
        return state

    def save(self, state: State) -> None:
        """Replaces the checkpoint; a kill at any moment leaves the old one or the new one.

        Raises:
            UserError: the folder cannot be written to or is full; the old checkpoint stays.
        """
        arrays = [
            *(("members", name, np.asarray(leaf)) for name, leaf in _named(state.members)),
            *(("seen", name, value) for name, value in _joined(state.seen).items()),
            *(("snaps", name, value) for name, value in _joined(state.snaps).items()),
        ]
        entries = [_entry(part, name, value) for part, name, value in arrays]
        description = {"key": self.key, "step": state.step, "arrays": entries}
        # orbax stores no empty arrays; their shapes say all that there is to them
        filled = {str(n): value for n, (*_, value) in enumerate(arrays) if value.size}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            needed = sum(value.nbytes for value in filled.values())
            # told beforehand: orbax writes in threads, and where one fails the others complain
            if shutil.disk_usage(self.folder).free < needed:
                raise OSError(
                    errno.ENOSPC, f"{needed / 1e9:.3f} GB are more than the disk has left"
                )
            slot = Path(tempfile.mkdtemp(prefix="slot-", dir=self.folder))
            with _orbax() as checkpointer:
                checkpointer.save(slot / "arrays", filled)
            (slot / "description.json").write_text(json.dumps(description), encoding="utf-8")
            line = self.folder / "latest.tmp"
            line.write_text(f"{_sha256(slot)}  {slot.name}\n", encoding="utf-8")
            os.replace(line, self.latest)
        except (OSError, RuntimeError, ValueError) as error:
            raise UserError(
                f"{self.folder}: the checkpoint cannot be written ({error}). Check that the folder "
                "is writable and the disk has room, then run the workflow again; it continues from "
                "the last checkpoint that is whole."
            ) from error
        finally:
            self._tidy()
        self.since = time.monotonic()

    def clear(self) -> None:
        """Removes the folder."""
        # first the name, so that a kill on the way leaves no slot that counts and is not whole
        _remove(self.latest)
        _remove(self.folder)

    def _read(self, members: Any) -> State:
        """The checkpoint that `latest` names.

        Raises:
            ValueError: it is damaged, or another training's.
        """
        digest, _, name = self.latest.read_text(encoding="utf-8").strip().partition("  ")
        slot = self.folder / name
        if not name or not slot.is_dir() or _sha256(slot) != digest:
            raise ValueError("it is damaged")
        description = json.loads((slot / "description.json").read_text(encoding="utf-8"))
        if description["key"] != self.key:
            raise ValueError("it is of another configuration or other code")
        wanted = [list(_entry("members", name, leaf)) for name, leaf in _named(members)]
        if [entry for entry in description["arrays"] if entry[0] == "members"] != wanted:
            raise ValueError("it does not fit the network")
        with _orbax() as checkpointer:
            filled = checkpointer.restore(slot / "arrays")
        parts: dict[str, dict[str, np.ndarray]] = {"members": {}, "seen": {}, "snaps": {}}
        for number, (part, name, dtype, shape) in enumerate(description["arrays"]):
            parts[part][name] = np.empty(shape, dtype) if 0 in shape else filled[str(number)]
        # copies: training donates its members, and so may overwrite them
        restored = [jnp.array(value) for value in parts["members"].values()]
        return State(
            step=description["step"],
            members=jax.tree.unflatten(jax.tree.structure(members), restored),
            seen=[parts["seen"]] if parts["seen"] else [],
            snaps=[parts["snaps"]] if parts["snaps"] else [],
        )

    def _tidy(self) -> None:
        """Removes what `latest` does not name: an older checkpoint, or one never completed."""
        if not self.folder.is_dir():
            return
        kept = {self.latest.name}
        if self.latest.is_file():
            kept.update(self.latest.read_text(encoding="utf-8", errors="replace").split()[1:])
        for path in self.folder.iterdir():
            if path.name not in kept:
                _remove(path)


@contextmanager
def _orbax() -> Iterator[Any]:
    """A checkpointer for NumPy arrays; what fails in its threads is raised and not logged too."""
    # slow to import, and few runs last until their first checkpoint
    import orbax.checkpoint as ocp

    logger = logging.getLogger("absl")
    before, logger.disabled = logger.disabled, True
    try:
        with ocp.Checkpointer(ocp.PyTreeCheckpointHandler()) as checkpointer:
            yield checkpointer
    finally:
        logger.disabled = before


def _named(members: Any) -> list[tuple[str, Any]]:
    """Leaves with their paths, in the order of the structure."""
    return [
        (jax.tree_util.keystr(path), leaf)
        for path, leaf in jax.tree_util.tree_leaves_with_path(members)
    ]


def _entry(part: str, name: str, array: Any) -> Entry:
    """What the description says of an array."""
    return part, name, array.dtype.name, list(array.shape)


def _joined(parts: Parts) -> dict[str, np.ndarray]:
    """Parts joined along time: a long run has far more of them than a checkpoint has files."""
    return {name: np.concatenate([part[name] for part in parts]) for name in next(iter(parts), {})}


def _remove(path: Path) -> None:
    """Removes a file or a folder; what cannot be removed stays, and is overwritten or not used."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def _sha256(folder: Path) -> str:
    """Hex digest over names and contents of all files in a folder."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0")
        with path.open("rb") as handle:
            digest.update(hashlib.file_digest(handle, "sha256").digest())
    return digest.hexdigest()
