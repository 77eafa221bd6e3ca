"""The files of a cell: what each is computed from, and that nothing else is written."""

import json
import logging
from pathlib import Path

import pytest

from neuralrace.config.cell import Cell
from neuralrace.config.settings import Plan
from neuralrace.errors import UserError
from neuralrace.results import provenance
from neuralrace.results.checksums import (
    Checksums,
    checksum_path,
    file_sha256,
    recorded_checksums,
    recorded_fingerprint,
)
from neuralrace.results.provenance import code_files
from neuralrace.workflow import measure, solve, stages, train
from neuralrace.workflow.job import Job
from neuralrace.workflow.stages import code, fingerprints, specifications, stale_files

CELL = "paper/experiment/main"
SPEC = {
    "dataset": {"name": "modes", "singular_values": [2.0, 1.0], "inputs": 3, "outputs": 2},
    "network": {"name": "layered", "hidden": [2]},
    "init": {"name": "aligned"},
    "init_scales": [0.1, 0.3],
    "seeds": 2,
    "training": {"learning_rate": 0.02, "steps": 40},
    "record": {"every": 10, "observables": ["mode_strength"]},
    "solutions": ["aligned_modes"],
    "metrics": ["analytic_fit", "learning_times"],
}
KINDS = {"trajectory", "theory", "metrics"}
BARE = {"trajectory", "metrics"}
"""Of a cell without theory."""


def cell(**changes) -> Cell:
    return Cell.model_validate_json(json.dumps(SPEC | changes))


def plan(**cells) -> Plan:
    return Plan(cells={f"paper/experiment/{name}": each for name, each in cells.items()})


# What is missing or stale ------------------------------------------------------------------------


def pretend(root: Path, made: Plan) -> None:
    """Files of all cells, as if they had been computed."""
    for cell_id, each in made.cells.items():
        for kind, planned in fingerprints(cell_id, each).items():
            path = root / cell_id / f"{kind}.nc"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(kind.encode())
            Checksums(planned, {path.name: file_sha256(path)}).write(checksum_path(path))


def kinds(root: Path, wanted: Plan) -> dict[str, set[str]]:
    return {
        name.rpartition("/")[2]: set(found)
        for name, found in stale_files(root, wanted.cells).items()
    }


def test_nothing_is_stale_that_was_computed_from_what_is_asked_for(tmp_path):
    wanted = plan(one=cell(), two=cell(solutions=[], metrics=[]))
    assert kinds(tmp_path, wanted) == {"one": KINDS, "two": BARE}
    pretend(tmp_path, wanted)
    assert kinds(tmp_path, wanted) == {}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"metrics": ["learning_times"]}, {"metrics"}),
        ({"solutions": ["aligned_modes", "flow"]}, {"theory", "metrics"}),
        ({"training": {"learning_rate": 0.01, "steps": 40}}, KINDS),
        ({"seeds": 3}, KINDS),
    ],
)
def test_a_change_makes_what_rests_on_it_stale(tmp_path, changes, expected):
    pretend(tmp_path, plan(one=cell(), two=cell()))
    assert kinds(tmp_path, plan(one=cell(**changes), two=cell())) == {"one": expected}


def test_another_name_is_another_cell(tmp_path):
    pretend(tmp_path, plan(one=cell(), two=cell(seeds=3)))
    assert kinds(tmp_path, plan(one=cell(seeds=3), two=cell())) == {"one": KINDS, "two": KINDS}


@pytest.mark.parametrize("damage", ["no file", "no checksum", "damaged checksum"])
def test_what_cannot_be_told_is_stale(tmp_path, damage):
    wanted = plan(one=cell())
    pretend(tmp_path, wanted)
    path = tmp_path / "paper/experiment/one/theory.nc"
    if damage == "no file":
        path.unlink()
    elif damage == "no checksum":
        checksum_path(path).unlink()
    else:
        checksum_path(path).write_bytes(b"\xff\x00")
    assert kinds(tmp_path, wanted) == {"one": {"theory"}}


@pytest.mark.parametrize(
    ("edited", "expected"),
    [
        ("neuralrace.metrics.linear.learning_times", {"one": {"metrics"}}),
        ("neuralrace.theory.solutions.linear", {"one": {"theory", "metrics"}}),
        ("neuralrace.training.observables.maps", {"one": KINDS, "two": BARE}),
        ("neuralrace.datasets.modes", {"one": KINDS, "two": BARE}),
        ("neuralrace.datasets.mnist", {}),
        ("neuralrace.networks.gates.bumps", {}),
        ("neuralrace.metrics.layers.balance", {}),
        ("neuralrace.training.trainer", {"one": {"trajectory"}, "two": {"trajectory"}}),
        ("neuralrace.networks.tasks.samples", {"one": BARE, "two": BARE}),
        ("neuralrace.networks.tasks.domains", {}),
        ("neuralrace.workflow.train", {"one": {"trajectory"}, "two": {"trajectory"}}),
        ("neuralrace.workflow.worker", {"one": KINDS, "two": BARE}),
    ],
)
def test_edited_code_makes_the_cells_stale_that_use_it(tmp_path, monkeypatch, edited, expected):
    wanted = plan(one=cell(), two=cell(solutions=[], metrics=["half_times"]))
    pretend(tmp_path, wanted)
    real = stages.code_sha256
    file = f"src/{edited.replace('.', '/')}.py"

    def digest(stage, more=()):
        rests = any(path.as_posix().endswith(file) for path in code_files(stage, more))
        return real(stage, more) + "x" * rests

    monkeypatch.setattr(stages, "code_sha256", digest)
    found = kinds(tmp_path, wanted)
    # a metric may rest on the engine's modules itself
    assert {name: each & expected.get(name, KINDS) for name, each in found.items()} == expected


# What a job writes -------------------------------------------------------------------------------


@pytest.fixture
def job():
    return Job(logging.getLogger("neuralrace"))


def compute(job: Job, root: Path, kind: str, **changes: str) -> Path:
    """Writes a file of a cell, as its rule does."""
    folder, part = root / CELL, specifications(cell())[kind]
    path = folder / f"{kind}.nc"
    inputs = [str(folder / f"{other}.nc") for other in ("trajectory", "theory")]
    arguments = {"spec": part.canonical(), "code": code(kind, part)} | changes
    named = (job, CELL, inputs if kind == "metrics" else [], [str(path)])
    if kind == "trajectory":
        train.run(*named, **arguments, often=300.0)
    else:
        {"theory": solve, "metrics": measure}[kind].run(*named, **arguments)
    return path


@pytest.fixture
def made(tmp_path, job):
    """The files of a cell, by kind, once they are computed."""
    return {kind: compute(job, tmp_path, kind) for kind in ("trajectory", "theory", "metrics")}


@pytest.fixture
def edited(tmp_path, monkeypatch):
    """A source file that was edited since its digest was taken, and taken back."""
    source = tmp_path / "module.py"
    source.write_text("TRUE = 1\n")
    monkeypatch.setitem(provenance.SEEN, source, provenance._state(source))
    monkeypatch.setattr(provenance, "_together", lambda _: (source,))
    source.write_text("TRUE = 2\n")
    source.write_text("TRUE = 1\n")


def test_files_say_what_they_were_computed_from(made, tmp_path):
    assert {kind: recorded_fingerprint(path) for kind, path in made.items()} == fingerprints(
        CELL, cell()
    )
    assert stale_files(tmp_path, {CELL: cell()}) == {}
    names = [f"{CELL}/{kind}.nc" for kind in ("trajectory", "theory")]
    told = checksum_path(made["metrics"]).read_text()
    assert all(
        f"{digest}  {name}" in told for name, digest in recorded_checksums(tmp_path, names).items()
    )


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_other_code_than_was_planned_computes_nothing(tmp_path, job, kind):
    with pytest.raises(UserError, match="edited after this run was planned"):
        compute(job, tmp_path, kind, code="0" * 64)
    assert not list(tmp_path.rglob("*.nc"))


def test_code_that_is_edited_meanwhile_leaves_what_was_there(made, tmp_path, job, request):
    before = {kind: path.read_bytes() for kind, path in made.items()}
    digest = {kind: code(kind, part) for kind, part in specifications(cell()).items()}
    request.getfixturevalue("edited")
    for kind in KINDS:
        with pytest.raises(UserError, match=r"module\.py: was edited while this job ran"):
            compute(job, tmp_path, kind, code=digest[kind])
    assert {kind: path.read_bytes() for kind, path in made.items()} == before


def test_a_damaged_file_is_computed_as_it_was(made, tmp_path, job):
    path = made["trajectory"]
    good = path.read_bytes()
    path.write_bytes(good[:-1])
    with pytest.raises(UserError, match=r"trajectory\.nc: is damaged.* --forcerun .*trajectory"):
        compute(job, tmp_path, "metrics")
    assert compute(job, tmp_path, "trajectory").read_bytes() == good


def test_metrics_of_another_trajectory_are_not_computed(made, tmp_path, job):
    other = specifications(cell(seeds=1))["trajectory"]
    compute(job, tmp_path, "trajectory", spec=other.canonical())
    before = made["metrics"].read_bytes()
    with pytest.raises(UserError, match=r"trajectory\.nc: .*another specification"):
        compute(job, tmp_path, "metrics")
    assert made["metrics"].read_bytes() == before
