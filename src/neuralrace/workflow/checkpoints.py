"""Checkpoints of unfinished training, so that a run that was stopped does not start anew.

A checkpoint is one NumPy archive, which is replaced as a whole. Every array in it carries a CRC-32,
so that damage is an error on reading.
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
from neuralrace.workflow.stopping import Requests, Stopped


class FileCheckpoints:
    """The newest checkpoint of one training, in a file of its own; see `training.Checkpoints`."""

    def __init__(
        self,
        path: Path,
        key: str,
        seconds: float,
        requests: Requests | None = None,
        guard: Callable[[], None] = lambda: None,
    ):
        """Nothing is read or written yet.

        Args:
            path: where the checkpoint stands.
            key: identity of the training; a checkpoint with another key is of no use to it.
            seconds: time between two checkpoints.
            requests: requests to end the process, which a checkpoint answers; none when absent.
            guard: is called before a checkpoint is written, and may refuse to.
        """
        self.path = path
        self.key = key
        self.seconds = seconds
        self.requests = requests or Requests()
        self.guard = guard
        self.since = time.monotonic()

    def due(self) -> bool:
        """Whether it is time for another checkpoint, counted from the start or the last one.

        It is time at once where the process is asked to end.
        """
        return bool(self.requests.asked) or time.monotonic() - self.since >= self.seconds

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
        if not self.path.is_file():
            return None
        try:
            state = self._read(members)
        except Exception as error:  # whatever reading a damaged or forged archive raises
            reason = " ".join(str(error).split()) or type(error).__name__
            report(f"{self.path}: the checkpoint is not used ({reason}); training starts anew")
            self.clear()
            return None
        report(f"continuing at step {state.step}, from the checkpoint {self.path}")
        self.since = time.monotonic()
        return state

    def save(self, state: State) -> None:
        """Replaces the checkpoint; a kill at any moment leaves the old one or the new one.

        Raises:
            UserError: the folder cannot be written to or is full, or `guard` refuses; the old
                checkpoint stays.
            Stopped: the process was asked to end, and the checkpoint is written.
        """
        self.guard()
        arrays = {
            "members": {name: np.asarray(leaf) for name, leaf in _named(state.members)},
            "series": _joined(state.series),
            "snapshots": _joined(state.snapshots),
        }
        names = {part: list(given) for part, given in arrays.items()}
        description = json.dumps({"key": self.key, "step": state.step, "arrays": names})
        numbered: dict[str, Any] = {
            f"{part}_{n}": value
            for part, given in arrays.items()
            for n, value in enumerate(given.values())
        }
        with replacing(self.path) as temporary, temporary.open("wb") as file:
            np.savez(file, description=np.array(description), **numbered)
        self.since = time.monotonic()
        if self.requests.asked:
            raise Stopped(
                f"stopped by {self.requests.asked} at step {state.step}; the same command goes on "
                f"from the checkpoint {self.path}"
            )

    def clear(self) -> None:
        """Removes the checkpoint, and what a killed process left of another."""
        remove_temporaries([self.path])
        with suppress(OSError):
            self.path.unlink()

    def _read(self, members: Any) -> State:
        """The checkpoint in the file.

        Raises:
            ValueError: another training's; or anything at all for a damaged or forged one.
        """
        # opened here: NumPy leaves the file of a damaged archive open
        with self.path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            description = json.loads(str(archive["description"]))
            if description["key"] != self.key:
                raise ValueError("it is of another configuration or other code")
            parts = {
                part: {name: archive[f"{part}_{n}"] for n, name in enumerate(names)}
                for part, names in description["arrays"].items()
            }
        wanted = [(name, leaf.dtype, leaf.shape) for name, leaf in _named(members)]
        saved = parts["members"]
        if [(name, leaf.dtype, leaf.shape) for name, leaf in saved.items()] != wanted:
            raise ValueError("it does not fit the network")
        # copies: training donates its members, and so may overwrite them
        restored = [jnp.array(value) for value in saved.values()]
        return State(
            step=description["step"],
            members=jax.tree.unflatten(jax.tree.structure(members), restored),
            series=[parts["series"]] if parts["series"] else [],
            snapshots=[parts["snapshots"]] if parts["snapshots"] else [],
        )


def _named(members: Any) -> list[tuple[str, Any]]:
    """Leaves with their paths, in the order of the structure."""
    return [
        (jax.tree_util.keystr(path), leaf)
        for path, leaf in jax.tree_util.tree_leaves_with_path(members)
    ]


def _joined(parts: Parts) -> dict[str, np.ndarray]:
    """Parts joined along time: a long run has many of them."""
    return {name: np.concatenate([part[name] for part in parts]) for name in next(iter(parts), {})}
