"""What rules take from a study: files, parameters and resources of their jobs."""

import os
import shutil
from pathlib import Path

import pytest
import yaml

from neuralrace.errors import UserError
from neuralrace.plan import papers
from neuralrace.registry import FIGURES
from neuralrace.seal import Seal, seal_file, sha256
from neuralrace.workflow.study import PLANNED, Study

PROJECT = Path(__file__).parents[1]
CELL = {
    "dataset": {"name": "modes", "singular_values": [2.0, 1.0], "inputs": 3, "outputs": 2},
    "network": {"name": "layered", "hidden": [2]},
    "init": {"name": "aligned"},
    "init_scales": [0.1],
    "seeds": 2,
    "training": {"learning_rate": 0.02, "steps": 400},
    "record": {"every": 10, "observables": ["mode_strength"]},
    "metrics": ["learning_times"],
}
SOLVED = CELL | {"solutions": ["aligned_modes"]}
ONE, TWO = "deep_linear/one/main", "deep_linear/two/main"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a configuration of two cells, one of them without theory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(PLANNED, "")  # what is set is taken back at the end, other tests' runs
    monkeypatch.delenv(PLANNED)  # would find it
    path = tmp_path / "config/deep_linear/experiments.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(yaml.safe_dump({"experiments": {"deep_linear": {"one": SOLVED, "two": CELL}}}))
    return tmp_path


@pytest.fixture
def study(folder):
    return Study({}, [])


def everything(folder: Path) -> dict[Path, tuple[int, int]]:
    return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in folder.rglob("*")}


def test_files_of_cells_are_those_that_are_planned(study):
    assert study.metrics == [f"results/{cell}/metrics.nc" for cell in (ONE, TWO)]
    assert study.theory(ONE) == [f"results/{ONE}/theory.nc"]
    assert study.theory(TWO) == []
    assert set(study.fingerprints) == {
        *(f"results/{ONE}/{kind}.nc" for kind in ("trajectory", "theory", "metrics")),
        *(f"results/{TWO}/{kind}.nc" for kind in ("trajectory", "metrics")),
    }
    made = {*study.fingerprints, *study.gallery(), *study.plots, "results/metrics.csv"}
    assert set(study.outputs()) >= made


def test_cells_that_no_figure_shows_have_a_plot(study, monkeypatch):
    assert study.plots == [f"figures/{cell}.png" for cell in (ONE, TWO)]
    monkeypatch.chdir(PROJECT)
    papers = Study({}, [])
    shown = {cell for figure in FIGURES for cell in papers.figure_cells(figure)}
    assert not shown & {path.removeprefix("figures/").removesuffix(".png") for path in papers.plots}


def test_parameters_of_a_file_are_those_it_is_computed_from(study, folder):
    solved = yaml.safe_load((folder / "config/deep_linear/experiments.yaml").read_text())
    solved["experiments"]["deep_linear"]["one"]["metrics"] += ["half_times"]
    changed = Study(solved, [])
    for kind, same in {"trajectory": True, "theory": True, "metrics": False}.items():
        assert (changed.spec(ONE, kind) == study.spec(ONE, kind)) == same
        assert (changed.digests([ONE])[ONE][kind] == study.digests([ONE])[ONE][kind]) == same
    assert study.code(ONE, "trajectory") == study.code(TWO, "trajectory")
    assert study.code(ONE, "metrics") != study.code(ONE, "theory")


def test_what_is_given_last_is_strongest(folder):
    (folder / "own.yaml").write_text("{results: elsewhere, checkpoint_seconds: 7}")
    study = Study({"checkpoint_seconds": 5}, [folder / "own.yaml"])
    assert (study.results, study.plan.checkpoint_seconds) == ("elsewhere", 5)
    assert study.figures == "elsewhere/figures"


def test_a_cluster_is_asked_for_more_at_each_attempt(study, folder):
    assert study.memory(ONE, 2) == 2 * study.memory(ONE, 1)
    assert study.minutes(100.0, 3) == 4 * study.minutes(100.0, 1) == 4 * 7
    limited = Study({"memory_mb": 2000}, [])
    assert limited.memory(ONE, 5) == 2000


def test_to_plan_touches_no_file(folder):
    before = everything(folder)
    study = Study({}, [])
    study.refuse_another_plan()
    assert study.fingerprints
    assert study.outputs()
    assert study.ahead(1.0)
    assert study.robustness() == ""
    assert everything(folder) == before


def test_a_run_says_what_is_ahead_at_the_speed_of_this_machine(study, folder):
    assert study.ahead(1.0).startswith("2 of 2 cells are missing or stale: about ")
    minutes = [float(study.ahead(factor).split()[-5]) for factor in (60.0, 600.0)]
    assert minutes[1] == pytest.approx(10 * minutes[0], rel=0.1)
    for path, fingerprint in study.fingerprints.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        Seal(fingerprint, {file.name: sha256(file)}).write(seal_file(file))
    assert study.ahead(1.0).startswith("0 of 2 cells are missing or stale")


def test_a_job_on_another_machine_computes_what_was_planned(study, monkeypatch):
    study.refuse_another_plan()
    told = os.environ[PLANNED]
    Study({}, []).refuse_another_plan()
    assert os.environ[PLANNED] == told
    monkeypatch.setattr(os, "getpid", lambda: 1)  # as a process elsewhere, that inherits
    Study({}, []).refuse_another_plan()
    monkeypatch.setattr(Study, "fingerprints", {"results/one.nc": "of other code"})
    with pytest.raises(UserError, match="configuration or code were changed after this run"):
        Study({}, []).refuse_another_plan()


def test_every_figure_and_claim_of_the_papers_is_planned(tmp_path, monkeypatch):
    shutil.copytree(PROJECT / "config", tmp_path / "config")
    monkeypatch.chdir(tmp_path)
    study = Study({}, [])
    assert {*study.claims} == {*map(str, papers("claims.yaml"))}
    assert {*study.claim_inputs()} <= {*study.metrics}
    for figure in FIGURES:
        assert {*study.figure_inputs(figure)} <= {*study.fingerprints}
        assert study.caption(figure)
    assert len(study.gallery()) == len(FIGURES)
    paper = Study({"only": ["make_haste"]}, []).gallery()
    reads_others = {"make_haste/semantic"}
    own = {name for name in FIGURES if name.startswith("make_haste/")} - reads_others
    assert paper == [f"figures/{name}.png" for name in FIGURES if name in own]
    for experiment in study.blind:
        assert study.blind_memory(experiment, 1) > 0
        assert study.blind_seconds(experiment) > 0
