"""Files of a cell: stale files, and the stages that write them."""

import logging
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from builders import LINEAR, build_cell
from neuralrace.config.cell import Cell
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
SPEC = LINEAR | {
    "init": {"name": "aligned"},
    "record": {"every": 10, "observables": ["mode_strength"]},
    "solutions": ["aligned_modes"],
    "metrics": ["analytic_fit", "learning_times"],
}
KINDS = {"trajectory", "theory", "metrics"}
BARE = {"trajectory", "metrics"}
"""The files of a cell without theory."""
cell = partial(build_cell, SPEC)


def cells(**named: Cell) -> dict[str, Cell]:
    return {f"paper/experiment/{name}": each for name, each in named.items()}


# Stale files -------------------------------------------------------------------------------------


def write_files(root: Path, configured: dict[str, Cell]) -> None:
    """Writes the files of cells, as if they had been computed."""
    for cell_id, each in configured.items():
        for kind, planned in fingerprints(cell_id, each).items():
            path = root / cell_id / f"{kind}.nc"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(kind.encode())
            Checksums(planned, {path.name: file_sha256(path)}).write(checksum_path(path))


def stale(root: Path, configured: dict[str, Cell]) -> dict[str, set[str]]:
    files = stale_files(root, configured)
    return {name.rpartition("/")[2]: set(kinds) for name, kinds in files.items()}


def test_files_of_the_configured_cells_are_not_stale(tmp_path):
    configured = cells(one=cell(), two=cell(solutions=[], metrics=[]))
    assert stale(tmp_path, configured) == {"one": KINDS, "two": BARE}
    write_files(tmp_path, configured)
    assert stale(tmp_path, configured) == {}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"metrics": ["learning_times"]}, {"metrics"}),
        ({"solutions": ["aligned_modes", "flow"]}, {"theory", "metrics"}),
        ({"training": {"learning_rate": 0.01, "steps": 40}}, KINDS),
        ({"seeds": 3}, KINDS),
    ],
)
def test_a_change_makes_dependent_files_stale(tmp_path, changes, expected):
    write_files(tmp_path, cells(one=cell(), two=cell()))
    assert stale(tmp_path, cells(one=cell(**changes), two=cell())) == {"one": expected}


def test_another_name_is_another_cell(tmp_path):
    write_files(tmp_path, cells(one=cell(), two=cell(seeds=3)))
    assert stale(tmp_path, cells(one=cell(seeds=3), two=cell())) == {"one": KINDS, "two": KINDS}


@pytest.mark.parametrize("damage", ["no file", "no checksum", "damaged checksum"])
def test_a_file_without_a_readable_checksum_is_stale(tmp_path, damage):
    configured = cells(one=cell())
    write_files(tmp_path, configured)
    path = tmp_path / "paper/experiment/one/theory.nc"
    if damage == "no file":
        path.unlink()
    elif damage == "no checksum":
        checksum_path(path).unlink()
    else:
        checksum_path(path).write_bytes(b"\xff\x00")
    assert stale(tmp_path, configured) == {"one": {"theory"}}


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
        # results.cells imports networks.routing, and so do all metrics
        ("neuralrace.networks.tasks.domains", {"one": {"metrics"}, "two": {"metrics"}}),
        ("neuralrace.workflow.train", {"one": {"trajectory"}, "two": {"trajectory"}}),
        ("neuralrace.workflow.worker", {"one": KINDS, "two": BARE}),
    ],
)
def test_edited_code_makes_dependent_files_stale(tmp_path, monkeypatch, edited, expected):
    configured = cells(one=cell(), two=cell(solutions=[], metrics=["half_times"]))
    write_files(tmp_path, configured)
    real = stages.code_sha256
    file = f"src/{edited.replace('.', '/')}.py"

    def digest(stage, more=()):
        depends = any(path.as_posix().endswith(file) for path in code_files(stage, more))
        return real(stage, more) + "x" * depends

    monkeypatch.setattr(stages, "code_sha256", digest)
    kinds = stale(tmp_path, configured)
    # a metric may itself depend on modules of the trainer
    assert {name: each & expected.get(name, KINDS) for name, each in kinds.items()} == expected


# Files that stages write -------------------------------------------------------------------------


def compute(root: Path, kind: str, **changes: str) -> Path:
    """Computes a file of a cell, as its rule does."""
    folder, part = root / CELL, specifications(cell())[kind]
    path = folder / f"{kind}.nc"
    inputs = [str(folder / f"{other}.nc") for other in ("trajectory", "theory")]
    arguments: Any = {"spec": part.canonical(), "code": code(kind, part)} | changes
    arguments |= {"often": 300.0} if kind == "trajectory" else {}
    stage = {"trajectory": train, "theory": solve, "metrics": measure}[kind]
    logger = logging.getLogger("neuralrace")
    stage.run(Job(logger, CELL, inputs if kind == "metrics" else [], [str(path)]), **arguments)
    return path


@pytest.fixture
def computed(tmp_path):
    """The computed files of a cell, by kind."""
    return {kind: compute(tmp_path, kind) for kind in ("trajectory", "theory", "metrics")}


@pytest.fixture
def edited(tmp_path, monkeypatch):
    """A source file that was edited since its checksum was computed, and restored."""
    source = tmp_path / "module.py"
    source.write_text("TRUE = 1\n")
    monkeypatch.setitem(provenance.SOURCE_STATES, source, provenance._state(source))
    monkeypatch.setattr(provenance, "_together", lambda _: (source,))
    source.write_text("TRUE = 2\n")
    source.write_text("TRUE = 1\n")


def test_files_record_their_fingerprint_and_inputs(computed, tmp_path):
    assert {kind: recorded_fingerprint(path) for kind, path in computed.items()} == fingerprints(
        CELL, cell()
    )
    assert stale_files(tmp_path, {CELL: cell()}) == {}
    names = [f"{CELL}/{kind}.nc" for kind in ("trajectory", "theory")]
    text = checksum_path(computed["metrics"]).read_text()
    assert all(
        f"{digest}  {name}" in text for name, digest in recorded_checksums(tmp_path, names).items()
    )


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_code_that_was_edited_since_planning_computes_nothing(tmp_path, kind):
    with pytest.raises(UserError, match="edited after this run was planned"):
        compute(tmp_path, kind, code="0" * 64)
    assert not list(tmp_path.rglob("*.nc"))


def test_code_that_is_edited_during_a_job_leaves_the_former_files(computed, tmp_path, request):
    before = {kind: path.read_bytes() for kind, path in computed.items()}
    digest = {kind: code(kind, part) for kind, part in specifications(cell()).items()}
    request.getfixturevalue("edited")
    for kind in KINDS:
        with pytest.raises(UserError, match=r"module\.py: was edited while this job ran"):
            compute(tmp_path, kind, code=digest[kind])
    assert {kind: path.read_bytes() for kind, path in computed.items()} == before


def test_a_damaged_file_is_computed_again_to_the_same_bytes(computed, tmp_path):
    path = computed["trajectory"]
    good = path.read_bytes()
    path.write_bytes(good[:-1])
    with pytest.raises(UserError, match=r"trajectory\.nc: is damaged.* --forcerun .*trajectory"):
        compute(tmp_path, "metrics")
    assert compute(tmp_path, "trajectory").read_bytes() == good


def test_metrics_of_another_trajectory_are_not_computed(computed, tmp_path):
    other = specifications(cell(seeds=1))["trajectory"]
    compute(tmp_path, "trajectory", spec=other.canonical())
    before = computed["metrics"].read_bytes()
    with pytest.raises(UserError, match=r"trajectory\.nc: .*another specification"):
        compute(tmp_path, "metrics")
    assert computed["metrics"].read_bytes() == before
