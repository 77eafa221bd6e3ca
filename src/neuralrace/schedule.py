"""What is outdated in a results folder, and which cells share a job.

A result file carries the key of what it was made from: specification, code, and the files that it
follows from. Where the key is another one than the configuration and the code of today ask for, the
file is made again, and no other file is. So is a file that was damaged, or one whose inputs were
made anew since.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from neuralrace.cost import Cost, Place, cost_of
from neuralrace.errors import UserError
from neuralrace.plan import Plan
from neuralrace.provenance import Stage, code_sha256
from neuralrace.seal import digests, key, read_seal, seal_file, sound
from neuralrace.spec import Cell, Ensemble, SolvedEnsemble

STAGES: dict[str, Stage] = {"theory": "solve", "trajectory": "train", "metrics": "measure"}
"""Files of a cell in the order in which they are made, and the stage that makes each."""

THREAD_SECONDS = 600.0
"""Estimated core-seconds of a job that are worth another thread."""


def keys(cell_id: str, cell: Cell) -> dict[str, str]:
    """What each file of a cell is to be made from, by kind."""
    found: dict[str, str] = {}
    for kind, part in parts(cell).items():
        code = code_sha256(STAGES[kind], part.modules)
        found[kind] = key(
            cell_id, part.sha256(), code, *(found.values() if kind == "metrics" else ())
        )
    return found


def parts(cell: Cell) -> Mapping[str, Cell | Ensemble]:
    """What each file of a cell answers to, by kind, in the order of `STAGES`."""
    theory = {"theory": cell.only(SolvedEnsemble)} if cell.solutions else {}
    return theory | {"trajectory": cell.only(Ensemble), "metrics": cell}


def inputs(cell_id: str, cell: Cell) -> list[str]:
    """The files that the metrics of a cell are made from, by their paths in the results folder."""
    return [f"{cell_id}/{kind}.nc" for kind in parts(cell) if kind != "metrics"]


@dataclass(frozen=True)
class Work:
    """What is to be made of one cell."""

    cell_id: str
    cell: Cell
    keys: Mapping[str, str]
    """Key of each file that is to be made, by kind."""


@dataclass(frozen=True)
class Group:
    """Cells that share a job."""

    name: str
    place: Place
    cells: tuple[str, ...]
    """All of them, outdated or not."""
    seconds: float
    """Estimated core-seconds of all its cells."""
    memory_mb: int
    """Estimated memory of the largest, in megabytes."""
    disk_mb: int
    """Estimated size of all files, in megabytes."""

    @property
    def threads(self) -> int:
        """Threads to compute with: cells are too small for several, and jobs run side by side."""
        return 1 + int(self.seconds / THREAD_SECONDS)

    @property
    def asked_mb(self) -> int:
        """Megabytes to ask a cluster for: twice what is estimated, for what metrics hold beside."""
        return 2 * self.memory_mb

    @property
    def minutes(self) -> int:
        """Minutes to ask a cluster for: many times what is estimated, for slower machines."""
        return 10 + int(4 * self.seconds / 60)


def outdated(root: Path, plan: Plan) -> dict[str, Work]:
    """What is missing or damaged in a results folder, or made from something else, by cell."""
    found: dict[str, Work] = {}
    for cell_id, cell in plan.cells.items():
        wanted = keys(cell_id, cell)
        missing: dict[str, str] = {}
        for kind, planned in wanted.items():
            place = seal_file(root / cell_id / f"{kind}.nc")
            sealed = read_seal(place)
            made_from = inputs(cell_id, cell) if kind == "metrics" else []
            if (
                sealed is None
                or sealed.key != planned
                or sealed.inputs != digests(root, made_from)
                or not sound(place)
                or (made_from and missing)
            ):
                missing[kind] = planned
        if missing:
            found[cell_id] = Work(cell_id, cell, missing)
    return found


def refuse_another(todo: Mapping[str, Mapping[str, str]], planned: Path) -> None:
    """Refuses to make anything but what a run was planned for.

    Args:
        todo: keys of the files that are to be made, by cell and kind, as a job finds them.
        planned: file in which the process that planned the run left the same.

    Raises:
        UserError: configuration or code were changed since.
    """
    try:
        told = json.loads(planned.read_text(encoding="utf-8"))["cells"]
    except (OSError, ValueError, KeyError):  # nothing was planned, and nothing is to be made
        told = {}
    for cell_id, keys in todo.items():
        if any(told.get(cell_id, {}).get(kind, key) != key for kind, key in keys.items()):
            raise UserError(
                f"{cell_id}: configuration or code were changed after this run was planned; let it "
                "end, and run the same command again"
            )


def groups(plan: Plan) -> Iterator[Group]:
    """The cells of a plan by the jobs that they share.

    Cells of one paper follow each other in one job until its cost reaches `job_seconds`; a cell
    that costs as much has a job of its own. What is outdated has no say: all processes of a run
    have the same groups.
    """
    waiting: dict[tuple[str, Place], list[tuple[str, Cost]]] = {}
    numbers = Counter[str]()

    def close(seat: tuple[str, Place]) -> Group:
        paper, place = seat
        numbers[paper] += 1
        return _group(f"{paper}_{numbers[paper]:02d}", place, dict(waiting.pop(seat)))

    for cell_id, cell in plan.cells.items():
        cost = cost_of(cell, plan.gpus_each > 0)
        if plan.parts(cell_id):  # trained in jobs of their own
            cost = replace(cost, place="cpu", compile=0.0, train=0.0)
        seat = cell_id.partition("/")[0], cost.place
        if cost.seconds() >= plan.job_seconds and seat in waiting:
            yield close(seat)
        waiting.setdefault(seat, []).append((cell_id, cost))
        if _together([each for _, each in waiting[seat]]) >= plan.job_seconds:
            yield close(seat)
    for seat in list(waiting):
        yield close(seat)


def part(plan: Plan, cell_id: str) -> Group:
    """The job of one part of a cell that is trained in parts; all its parts are alike."""
    cell = plan.cells[cell_id]
    one = {"init_scales": cell.init_scales[:1], "seeds": 1, "solutions": (), "metrics": ()}
    batched = {"init_scales": "init_scale" in plan.batch, "seeds": "seed" in plan.batch}
    changes = {key: value for key, value in one.items() if not batched.get(key)}
    cost = cost_of(cell.model_copy(update=changes), plan.gpus_each > 0)
    return _group(cell_id, cost.place, {cell_id: cost})


def on_processors(name: str, cells: Mapping[str, Cell]) -> Group:
    """The job that makes all of some cells on processors, whatever GPUs there are."""
    return _group(name, "cpu", {cell_id: cost_of(cell) for cell_id, cell in cells.items()})


def _group(name: str, place: Place, costs: Mapping[str, Cost]) -> Group:
    """Cells as a job, by what each costs."""
    return Group(
        name=name,
        place=place,
        cells=tuple(costs),
        seconds=_together(list(costs.values())),
        memory_mb=max(cost.memory_mb for cost in costs.values()),
        disk_mb=sum(cost.disk_mb for cost in costs.values()),
    )


def announced(cells: int, jobs: Sequence[Group]) -> str:
    """How many cells are outdated, and what all cells of their jobs cost at most, in a line."""
    units: dict[Place, str] = {"cpu": "core-minutes on processors", "gpu": "minutes on a GPU"}
    seconds = {place: sum(job.seconds for job in jobs if job.place == place) for place in units}
    parts = [f"{seconds[place] / 60:.1f} {unit}" for place, unit in units.items() if seconds[place]]
    return f"outdated: {cells} cells in {len(jobs)} jobs, estimated at {' and '.join(parts)}"


def _together(costs: Sequence[Cost]) -> float:
    """Core-seconds of cells that share a job and its programs."""
    earlier = [{cost.program for cost in costs[:number]} for number in range(len(costs))]
    return sum(cost.seconds(known) for cost, known in zip(costs, earlier, strict=True))
