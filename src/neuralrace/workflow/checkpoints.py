"""Checkpoint files of unfinished training, from which a stopped run continues.

A checkpoint is a NumPy archive, which is replaced atomically. Each array in it has a CRC-32, so
that reading a damaged file is an error.
"""

import json
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from neuralrace.results.atomic import remove_temporaries, replacing
from neuralrace.training.checkpointing import Parts, State
from neuralrace.workflow.shutdown import Shutdown, Stopped


class FileCheckpoints:
    """The newest checkpoint of one training; implements `training.checkpointing.Checkpoints`."""

    def __init__(
        self,
        path: Path,
        key: str,
        seconds: float,
        shutdown: Shutdown | None = None,
        guard: Callable[[], None] = lambda: None,
    ):
        """Reads and writes nothing yet.

        Args:
            path: of the checkpoint.
            key: identity of the training; a checkpoint with another key is not used.
            seconds: time between two checkpoints.
            shutdown: request to end the process, which is answered after a checkpoint.
            guard: called before a checkpoint is written; it may raise a `UserError`.
        """
        self.path = path
        self.key = key
        self.seconds = seconds
        self.shutdown = shutdown or Shutdown()
        self.guard = guard
        self.since = time.monotonic()

    def due(self) -> bool:
        """Whether a checkpoint is due: since the start or the last one, or before a shutdown."""
        return bool(self.shutdown.requested) or time.monotonic() - self.since >= self.seconds

    def restore(self, members: Any, report: Callable[[str], None]) -> State | None:
        """The state that was saved last, if it is intact and belongs to this training.

        A checkpoint that cannot be used is removed, and the reason is reported.

        Args:
            members: freshly built members or their shapes: the saved ones must have the same
                structure, dtypes and shapes. JAX must have the precision that they were built in.
            report: receives one line: the step that training continues from, or why it starts anew.

        Returns:
            The state, with recorded arrays joined into one part; None to start anew.
        """
        if not self.path.is_file():
            return None
        try:
            state = self._read(members)
        except Exception as error:  # a damaged or forged archive can raise anything
            reason = " ".join(str(error).split()) or type(error).__name__
            report(f"{self.path}: the checkpoint is not used ({reason}); training starts anew")
            self.clear()
            return None
        report(f"continuing at step {state.step}, from the checkpoint {self.path}")
        self.since = time.monotonic()
        return state

    def save(self, state: State) -> None:
        """Replaces the checkpoint atomically: a kill leaves the old one or the new one.

        Raises:
            UserError: the folder cannot be written to or is full, or `guard` raises it; the old
                checkpoint stays.
            Stopped: the process was asked to end; the checkpoint is written.
        """
        self.guard()
        arrays = {
            "members": {name: np.asarray(leaf) for name, leaf in _named(state.members)},
            "series": _joined(state.series),
            "snapshots": _joined(state.snapshots),
        }
        names = {part: list(values) for part, values in arrays.items()}
        description = json.dumps({"key": self.key, "step": state.step, "arrays": names})
        numbered: dict[str, Any] = {
            f"{part}_{n}": value
            for part, values in arrays.items()
            for n, value in enumerate(values.values())
        }
        with replacing(self.path) as temporary, temporary.open("wb") as file:
            np.savez(file, description=np.array(description), **numbered)
        self.since = time.monotonic()
        if self.shutdown.requested:
            raise Stopped(
                f"stopped by {self.shutdown.requested} at step {state.step}; the same command "
                f"continues from the checkpoint {self.path}"
            )

    def clear(self) -> None:
        """Removes the checkpoint, and temporary files of killed processes."""
        remove_temporaries([self.path])
        with suppress(OSError):
            self.path.unlink()

    def _read(self, members: Any) -> State:
        # opened here, as NumPy leaves the file of a damaged archive open
        with self.path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            description = json.loads(str(archive["description"]))
            if description["key"] != self.key:
                raise ValueError("it belongs to another configuration or other code")
            parts = {
                part: {name: archive[f"{part}_{n}"] for n, name in enumerate(names)}
                for part, names in description["arrays"].items()
            }
        expected = [(name, leaf.dtype, leaf.shape) for name, leaf in _named(members)]
        saved = parts["members"]
        if [(name, leaf.dtype, leaf.shape) for name, leaf in saved.items()] != expected:
            raise ValueError("it does not fit the network")
        # copies, as training donates its members, whose memory is then overwritten
        restored = [jnp.array(value) for value in saved.values()]
        return State(
            step=description["step"],
            members=jax.tree.unflatten(jax.tree.structure(members), restored),
            series=[parts["series"]] if parts["series"] else [],
            snapshots=[parts["snapshots"]] if parts["snapshots"] else [],
        )


def _named(members: Any) -> list[tuple[str, Any]]:
    """Leaves with their paths, in the order of the pytree."""
    return [
        (jax.tree_util.keystr(path), leaf)
        for path, leaf in jax.tree_util.tree_leaves_with_path(members)
    ]


def _joined(parts: Parts) -> dict[str, np.ndarray]:
    """Parts joined along time, as a long run has many of them."""
    return {name: np.concatenate([part[name] for part in parts]) for name in next(iter(parts), {})}
