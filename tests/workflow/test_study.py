"""Study: files, params and resources of the rules, and the configuration files that it reads."""

import datetime
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings

from builders import LINEAR, REPOSITORY
from neuralrace.config.load import paper_files
from neuralrace.errors import UserError
from neuralrace.extensions.registry import FIGURES, Figure
from neuralrace.workflow.study import PLANNED, Study, core_time
from odd_configurations import contents, outcome

CELL = LINEAR | {
    "init": {"name": "aligned"},
    "training": {"learning_rate": 0.02, "steps": 400},
    "record": {"every": 10, "observables": ["mode_strength"]},
    "metrics": ["learning_times"],
}
SOLVED = CELL | {"solutions": ["aligned_modes"]}
ONE, TWO = "deep_linear/one/main", "deep_linear/two/main"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a configuration of two cells, the second without theory."""
    monkeypatch.chdir(tmp_path)
    # setenv first: the variable is then removed at the end, so that runs of other tests lack it
    monkeypatch.setenv(PLANNED, "")
    monkeypatch.delenv(PLANNED)
    path = tmp_path / "config/deep_linear/experiments.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(yaml.safe_dump({"experiments": {"deep_linear": {"one": SOLVED, "two": CELL}}}))
    return tmp_path


@pytest.fixture
def study(folder):
    return Study({}, [])


def everything(folder: Path) -> dict[Path, tuple[int, int]]:
    return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in folder.rglob("*")}


def test_a_study_lists_the_files_of_its_cells(study):
    assert study.metrics_files == [f"results/{cell}/metrics.nc" for cell in (ONE, TWO)]
    assert study.theory_files(ONE) == [f"results/{ONE}/theory.nc"]
    assert study.theory_files(TWO) == []
    assert set(study.fingerprints) == {
        *(f"results/{ONE}/{kind}.nc" for kind in ("trajectory", "theory", "metrics")),
        *(f"results/{TWO}/{kind}.nc" for kind in ("trajectory", "metrics")),
    }
    files = {
        *study.fingerprints,
        *study.figure_files(),
        *study.plot_files,
        "results/metrics.csv",
        "results/claims.sha256",
    }
    assert set(map(str, study.outputs())) >= files


def test_cells_that_no_figure_shows_have_a_plot(study, monkeypatch):
    assert study.plot_files == [f"figures/{cell}.png" for cell in (ONE, TWO)]
    monkeypatch.chdir(REPOSITORY)
    papers = Study({}, [])
    shown = {cell for figure in FIGURES for cell in papers.figure_cells(figure)}
    assert not shown & {
        path.removeprefix("figures/").removesuffix(".png") for path in papers.plot_files
    }


def test_parameters_of_a_file_are_those_it_is_computed_from(study, folder):
    solved = yaml.safe_load((folder / "config/deep_linear/experiments.yaml").read_text())
    solved["experiments"]["deep_linear"]["one"]["metrics"] += ["half_times"]
    changed = Study(solved, [])
    for kind, same in {"trajectory": True, "theory": True, "metrics": False}.items():
        assert (changed.spec(ONE, kind) == study.spec(ONE, kind)) == same
        assert (
            changed.spec_digests([ONE])[ONE][kind] == study.spec_digests([ONE])[ONE][kind]
        ) == same
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
    study.refuse_changed_plan()
    assert study.fingerprints
    assert study.outputs()
    assert study.estimate(study.fingerprints, lambda: 1.0)
    assert study.variant_checksums() == {"blind": "", "ranges": ""}
    assert everything(folder) == before


def test_the_estimate_is_of_the_files_that_a_run_computes(study):
    cost = study.cost(ONE)
    theory, trajectory = (f"results/{ONE}/{kind}.nc" for kind in ("theory", "trajectory"))
    told = study.estimate([theory, "figures/deep_linear/exact.png"], lambda: 50 / cost.solve)
    assert told == "estimated time: 50 core-seconds for 1 job of 1 cell, without figures"
    told = study.estimate([theory, trajectory], lambda: 50 / (study.seconds(ONE) + cost.solve))
    assert told == "estimated time: 50 core-seconds for 2 jobs of 1 cell, without figures"
    both = [trajectory, f"results/{TWO}/trajectory.nc"]  # of the same compiled program
    trained = study.seconds(ONE) + study.cost(TWO).train
    told = study.estimate(both, lambda: 3600 / trained)
    assert told == "estimated time: 60 core-minutes for 2 jobs of 2 cells, without figures"
    assert study.estimate(["results/metrics.csv", "results/claims.md"], pytest.fail) == ""


def test_the_estimate_of_variants_is_that_of_their_cells(tmp_path, monkeypatch):
    shutil.copytree(REPOSITORY / "config", tmp_path / "config")
    monkeypatch.chdir(tmp_path)
    study = Study({"only": ["deep_linear"]}, [])
    experiment, cells = next(iter(study.variants["ranges"].items()))
    file = f"results/variants/ranges/{experiment}/failed.json"
    seconds = study.variant_seconds("ranges", experiment)
    told = study.estimate([file], lambda: 3 * 3600 / seconds)
    assert told == f"estimated time: 3 core-hours for 1 job of {len(cells)} cells, without figures"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.01, "1 core-second"),
        (1.26, "1.3 core-seconds"),
        (119.0, "120 core-seconds"),
        (120.0, "2 core-minutes"),
        (719.0, "12 core-minutes"),
        (7200.0, "2 core-hours"),
        (9001.0, "2.5 core-hours"),
        (1e6, "280 core-hours"),
    ],
)
def test_core_time_has_two_digits_in_a_unit_that_suits_it(seconds, words):
    assert core_time(seconds) == words


def test_a_job_on_another_machine_refuses_a_changed_plan(study, monkeypatch):
    study.refuse_changed_plan()
    planned = os.environ[PLANNED]
    Study({}, []).refuse_changed_plan()
    assert os.environ[PLANNED] == planned
    monkeypatch.setattr(os, "getpid", lambda: 1)  # as on another machine
    Study({}, []).refuse_changed_plan()
    monkeypatch.setattr(Study, "fingerprints", {"results/one.nc": "of other code"})
    with pytest.raises(UserError, match="configuration or code were changed after this run"):
        Study({}, []).refuse_changed_plan()


def test_every_figure_and_claim_of_the_papers_is_planned(tmp_path, monkeypatch):
    shutil.copytree(REPOSITORY / "config", tmp_path / "config")
    monkeypatch.chdir(tmp_path)
    study = Study({}, [])
    assert {*study.claims_files} == {*map(str, paper_files("claims.yaml"))}
    assert {*study.claim_inputs()} <= {*study.metrics_files}
    for figure in FIGURES:
        assert {*study.figure_inputs(figure)} <= {*study.fingerprints}
        assert study.caption(figure)
    assert len(study.figure_files()) == len(FIGURES)
    paper = Study({"only": ["make_haste"]}, []).figure_files()
    reads_others = {"make_haste/semantic"}
    own = {name for name in FIGURES if name.startswith("make_haste/")} - reads_others
    assert paper == [f"figures/{name}.png" for name in FIGURES if name in own]
    for group, experiments in study.variants.items():
        for experiment in experiments:
            assert study.variant_memory(group, experiment, 1) > 0
            assert study.variant_seconds(group, experiment) > 0


def test_claims_of_one_paper_are_planned_alone(tmp_path, monkeypatch):
    shutil.copytree(REPOSITORY / "config", tmp_path / "config")
    monkeypatch.chdir(tmp_path)
    paper = Study({"only": ["deep_linear"]}, [])
    assert paper.claims_files == ["config/deep_linear/claims.yaml"]
    assert {file.split("/")[1] for file in paper.claim_inputs()} == {"deep_linear"}
    part = Study({"only": ["deep_linear/staircase"]}, [])
    with pytest.raises(UserError, match="matches no cell"):
        part.claim_inputs()


def test_claims_of_smaller_experiments_are_refused_by_a_way_out(tmp_path, monkeypatch):
    shutil.copytree(REPOSITORY / "config", tmp_path / "config")
    monkeypatch.chdir(tmp_path)
    small = Study({"only": ["deep_linear"], "settings": "config/*/smoke.yaml"}, [])
    with pytest.raises(UserError, match="name the target gallery; did you mean"):
        small.claim_inputs()


# Configuration files ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "seconds"),
    [
        ("one.yaml", 1.0),
        ("one.yaml,two.yaml", 2.0),
        ("two.yaml, one.yaml", 1.0),
        (["two.yaml", "one.yaml"], 1.0),
        ("[a-z]*.yaml", 2.0),
        ("*/one.yaml,two.yaml", 2.0),
        ("odd [a-z]*.yaml", 3.0),
        ([], 300.0),
        (None, 300.0),
    ],
)
def test_later_settings_files_override_earlier_ones(folder, settings, seconds):
    (folder / "inside").mkdir()
    for name, value in {"one": 1, "two": 2, "odd [a-z]*": 3, "inside/one": 4}.items():
        (folder / f"{name}.yaml").write_text(f"checkpoint_seconds: {value}")
    study = Study({"settings": settings}, [])
    assert study.plan.checkpoint_seconds == seconds
    assert "settings" not in study.config


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("gone.yaml", "gone.yaml: there is no such file"),
        ("gone/*.yaml", r"settings: 'gone/\*.yaml': matches no file"),
        (3, "settings: 3: expected a file, several separated by commas, or a glob in quotes"),
        ([3], r"settings: \[3\]: expected a file"),
        ({"a": "b"}, r"settings: \{'a': 'b'\}: expected a file"),
        ("a\0b*", "settings: 'a.x00b.': matches no file"),
        ("code.yaml", "code.yaml: __use_yte__: a configuration is data .* stand for$"),
        ("wrong.yaml", "wrong.yaml: results: 3: expected a text"),
        ("more.yaml", "more.yaml: settings: 'wrong.yaml': unknown key"),
    ],
)
def test_mistakes_in_settings_name_the_file(folder, settings, message):
    (folder / "wrong.yaml").write_text("results: 3")
    (folder / "code.yaml").write_text("__use_yte__: true")
    (folder / "more.yaml").write_text("settings: wrong.yaml")
    with pytest.raises(UserError, match=message):
        Study({"settings": settings})


def test_the_command_line_overrides_settings_and_these_override_configfiles(folder):
    (folder / "before.yaml").write_text("{results: before, memory_mb: 1, checkpoint_seconds: 1}")
    (folder / "own.yaml").write_text("{results: own, memory_mb: 9000}")
    plan = Study({"settings": "own.yaml", "results": "command"}, ["before.yaml"]).plan
    assert (plan.results, plan.memory_mb, plan.checkpoint_seconds) == ("command", 9000, 1)


def test_messages_name_the_command_line(folder):
    (folder / "own.yaml").write_text("seeds: 3")
    for values, message in (
        ({"seeds": 3}, "--config: seeds: 3: unknown key"),
        ({"settings": "own.yaml"}, "own.yaml: seeds: 3: unknown key"),
        ({"only": "one"}, "--config: only: 'one': expected a list"),
        ({"only": ["one"]}, "--config: only: 'one': no such paper"),
    ):
        with pytest.raises(UserError, match=f"^{message}"):
            Study(values)
    nested = {"experiments": {"deep_linear": {"one": {"seeds": "3"}}}}
    where = "--config: experiments.deep_linear.one.seeds: '3': expected a whole number"
    with pytest.raises(UserError, match=f"^{where}; Snakemake reads what is nested in --config as"):
        Study(nested)


def test_code_that_snakemake_ran_already_is_reported(folder):
    (folder / "code.yaml").write_text("__use_yte__: true")
    with pytest.raises(UserError, match=r"code.yaml: __use_yte__: .* Snakemake has run them alre"):
        Study({}, ["code.yaml"])


def test_a_figure_of_an_extension_without_its_experiment_names_itself(study, monkeypatch):
    entry = replace(FIGURES["deep_linear/time_to_learn"], module="mypackage.figures.mine.left")
    declared = Figure(layout="a", height=2, reads={"first": {"metrics": "half_time"}})
    own = replace(entry, name="mine/left", declaration=declared)
    monkeypatch.setitem(FIGURES._entries, "mine/left", own)
    with pytest.raises(UserError) as caught:
        study.figure_cells("mine/left")
    assert str(caught.value) == (
        "figure mine/left (mypackage.figures.mine.left): experiments.mine.first: is not "
        "configured, and the figure shows it; add it, in a file of yours by --config "
        "settings=FILE, or leave the figure out"
    )


@pytest.mark.parametrize("key", [1, datetime.date(2024, 1, 1)])
def test_keys_from_another_workflow_must_be_text(folder, key):
    with pytest.raises(UserError, match=r"^--config: "):
        Study({"results": {key: 1}})


@pytest.fixture(scope="module")
def odd_folder(tmp_path_factory):
    """A folder without experiments, for all examples."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("odd")
        (folder / "config/mine").mkdir(parents=True)
        (folder / "config/mine/experiments.yaml").write_text("experiments: {}")
        patch.chdir(folder)
        yield folder


@pytest.mark.usefixtures("odd_folder")
@settings(max_examples=150)
@given(content=contents)
def test_any_configuration_is_planned_or_refused_in_a_message(content):
    assert outcome(content)
