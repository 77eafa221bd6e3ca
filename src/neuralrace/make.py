"""Makes the files of cells, many in one process: trains, solves, measures.

A stage is imported when it is first needed. Cells whose programs are alike share them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import xarray as xr

from neuralrace.atomic import give_back, kept, set_aside
from neuralrace.errors import UserError
from neuralrace.job import Job
from neuralrace.product import taking
from neuralrace.provenance import refuse_edited
from neuralrace.records.files import read, write
from neuralrace.registry import METRICS
from neuralrace.schedule import inputs
from neuralrace.schedule import keys as keys_now
from neuralrace.seal import read_seal, seal_file, sha256
from neuralrace.spec import Cell, Ensemble, SolvedEnsemble


@dataclass(frozen=True)
class Workshop:
    """A results folder in which a job makes files.

    Attributes:
        root: the folder.
        checkpoint_seconds: time between two checkpoints of a training.
        job: is told of progress, and counts what the stages take.
    """

    root: Path
    checkpoint_seconds: float
    job: Job

    def make(self, cell_id: str, cell: Cell, keys: Mapping[str, str], parts: Sequence[str]) -> None:
        """Makes files of a cell; what cannot be made leaves the file that was there.

        Args:
            cell_id: `paper/experiment/label`.
            cell: its specification.
            keys: kinds of files to make, each with the key that it is sealed with.
            parts: names of the parts that were trained in jobs of their own; empty to train here.

        Raises:
            UserError: what training, theory or a metric refuses, a file that cannot be read or
                written or is not what was planned, or code that is not.
        """
        now = keys_now(cell_id, cell)
        if any(now[kind] != key for kind, key in keys.items()):
            raise UserError(
                "the library was edited after this run was planned; run the same command again"
            )
        for kind, key in keys.items():
            self._set_aside(self.root / cell_id / f"{kind}.nc", key)
        try:
            self._make(cell_id, cell, keys, now, parts)
        finally:
            for kind in keys:
                give_back(self.root / cell_id / f"{kind}.nc")
        self.job.report(f"{cell_id}: made {', '.join(keys)}")

    def _make(
        self,
        cell_id: str,
        cell: Cell,
        keys: Mapping[str, str],
        now: Mapping[str, str],
        parts: Sequence[str],
    ) -> None:
        theory = trajectory = None
        if "theory" in keys:
            with self.job.stage("solve", cell_id):
                theory = self._solve(cell_id, cell, keys["theory"])
        if "trajectory" in keys:
            with self.job.stage("train", cell_id):
                trajectory = (
                    self._gather(cell_id, keys["trajectory"], parts)
                    if parts
                    else self.train(cell_id, cell.only(Ensemble), keys["trajectory"])
                )
        if "metrics" in keys:
            from neuralrace.metrics.measure import metrics_dataset
            from neuralrace.records.results import CellResults

            if any(METRICS[name].declaration.trains for name in cell.metrics):
                from neuralrace.training.trainer import COMPILED

                self.job.count_compilation(COMPILED)
            with self.job.stage("measure", cell_id):
                wanted = {name: now[Path(name).stem] for name in inputs(cell_id, cell)}
                results = CellResults(cell_id, self.root / cell_id, cell, trajectory, theory)
                with taking(self.root, wanted) as taken:
                    dataset = metrics_dataset(results)
                self._write(dataset, f"{cell_id}/metrics.nc", keys["metrics"], taken)

    def _set_aside(self, path: Path, key: str) -> None:
        """Sets a file aside that is what is asked for, but for its content.

        Raises:
            UserError: it cannot be renamed.
        """
        sealed = read_seal(seal_file(path))
        if sealed is None or sealed.key != key:
            return
        for there in (path, kept(path)):
            if there.is_file() and sha256(there) != sealed.files.get(path.name):
                aside = set_aside(there, path.name)
                self.job.report(f"{path}: damaged; it is made anew, and kept as {aside}")

    def train(self, cell_id: str, ensemble: Ensemble, key: str, part: str = "") -> xr.Dataset:
        """Trains a cell, or a part of it; goes on from a checkpoint where there is one.

        Args:
            cell_id: `paper/experiment/label`.
            ensemble: what to train.
            key: what the trajectory is made from; a checkpoint of anything else is of no use.
            part: which part, as `Plan.parts` names it; empty for all.

        Raises:
            UserError: as `neuralrace.training.trainer.train`, or a file that cannot be written.
            Stopped: the job was asked to end; a checkpoint or the trajectory is written.
        """
        from neuralrace.records.trajectory import trajectory_dataset
        from neuralrace.training.checkpoints import Checkpoints
        from neuralrace.training.trainer import COMPILED, train

        self.job.count_compilation(COMPILED)
        chosen = dict(pair.rsplit("-", 1) for pair in part.split(".")) if part else {}
        scales, seeds = ([int(chosen[a])] if a in chosen else None for a in ("init_scale", "seed"))
        path = self.root / "checkpoints" / cell_id / f"{part or 'whole'}.npz"
        requests, name = self.job.requests, f"{cell_id} {part}".strip()
        checkpoints = Checkpoints(path, f"{key} {part}", self.checkpoint_seconds, requests)
        with requests.held():  # the next checkpoint answers them
            trajectory = train(
                ensemble,
                scales,
                seeds,
                lambda line: self.job.report(f"{name}: {line}"),
                checkpoints,
            )
            dataset = trajectory_dataset(cell_id, ensemble, trajectory, scales, seeds)
            file = f"parts/{part}.nc" if part else "trajectory.nc"
            self._write(dataset, f"{cell_id}/{file}", key)
            checkpoints.clear()
        return dataset

    def _gather(self, cell_id: str, key: str, parts: Sequence[str]) -> xr.Dataset:
        from neuralrace.records.trajectory import gather

        wanted = {f"{cell_id}/parts/{part}.nc": key for part in parts}
        with taking(self.root, wanted):
            dataset = gather([read(self.root / name, "trajectory") for name in wanted])
        self._write(dataset, f"{cell_id}/trajectory.nc", key)
        return dataset

    def _solve(self, cell_id: str, cell: Cell, key: str) -> xr.Dataset:
        from neuralrace.records.theory import theory_dataset

        dataset = theory_dataset(cell_id, cell.only(SolvedEnsemble))
        self._write(dataset, f"{cell_id}/theory.nc", key)
        return dataset

    def _write(
        self, dataset: xr.Dataset, name: str, key: str, inputs: Mapping[str, str] | None = None
    ) -> None:
        """Writes a result file, unless the code was edited.

        Raises:
            UserError: it was, or the folder cannot be written to or is full.
        """
        refuse_edited()
        write(dataset, self.root / name, key, inputs)
