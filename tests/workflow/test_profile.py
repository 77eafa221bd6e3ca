"""What a profile has to say before jobs go to a cluster."""

import re
import shutil
from contextlib import nullcontext

import pytest
import yaml

from builders import REPOSITORY
from neuralrace.errors import UserError
from neuralrace.workflow import profile

PROFILES = REPOSITORY / "profiles"
SAID = {"slurm_partition": "main", "slurm_account": ""}


@pytest.fixture(autouse=True)
def installed(monkeypatch):
    """As if the plug-in were there: it is installed for the tests of faults alone."""
    monkeypatch.setattr(profile, "find_spec", lambda name: name)


@pytest.fixture
def written(tmp_path):
    def write(content):
        (tmp_path / "config.yaml").write_text(yaml.safe_dump(content))
        (tmp_path / "nodes.yaml").write_text("gpus: 2\nmemory_mb: 8000\n")
        return tmp_path

    return write


def test_partition_and_account_are_two_lines_to_uncomment(tmp_path, capsys):
    text = (PROFILES / "slurm/config.yaml").read_text()
    assert profile.main([str(PROFILES / "slurm")]) == 1
    told = capsys.readouterr().err
    assert told.startswith(f"error: {PROFILES}/slurm/config.yaml: default-resources: slurm_part")
    assert "and slurm_account: not said; take away the #" in told
    assert told.count("\n") == 1
    said, edits = re.subn(r"# (slurm_(?:partition|account): \w+)", r"\1", text)
    assert edits == 2
    (tmp_path / "config.yaml").write_text(said)
    shutil.copy(PROFILES / "slurm/nodes.yaml", tmp_path)
    assert profile.main([str(tmp_path)]) == 0


def test_here_nothing_needs_to_be_said():
    profile.check(profile.read(PROFILES / "default"))


@pytest.mark.parametrize(
    ("resources", "absent"),
    [
        (SAID, ""),
        ([f"{name}={value}" for name, value in SAID.items()], ""),
        ({"slurm_partition": "main", "slurm_account": None}, "slurm_account"),
        (["slurm_account=mine"], "slurm_partition"),
        (None, "slurm_partition and slurm_account"),
    ],
)
def test_what_is_not_said_is_named(written, resources, absent):
    found = profile.read(
        written({"executor": "slurm", "default-resources": resources, "configfile": "nodes.yaml"})
    )
    told = f"config.yaml: default-resources: {absent}: not said"
    with pytest.raises(UserError, match=told) if absent else nullcontext():
        profile.check(found)


@pytest.mark.parametrize(
    ("executor", "package"),
    [("slurm", "neuralrace[slurm]"), ("lsf", "snakemake-executor-plugin-lsf")],
)
def test_an_absent_plug_in_is_named_with_how_to_get_it(written, monkeypatch, executor, package):
    monkeypatch.setattr(profile, "find_spec", lambda name: None)
    found = profile.read(written({"executor": executor}))
    with pytest.raises(
        UserError, match=rf"executor: '{executor}'.*pip install '{re.escape(package)}'"
    ):
        profile.check(found)


def test_no_profile(tmp_path):
    with pytest.raises(
        UserError, match=r"is no profile, as it has no config\.yaml; there are .*slurm"
    ):
        profile.read(PROFILES / "slurmm")
    with pytest.raises(UserError, match=r"has no config\.yaml$"):
        profile.read(tmp_path / "here")
    (tmp_path / "config.yaml").write_text("- executor\n")
    with pytest.raises(UserError, match="expected a mapping"):
        profile.read(tmp_path)


def test_gpus_of_the_nodes_are_to_be_said(written):
    said = {"executor": "slurm", "default-resources": SAID}
    with pytest.raises(UserError, match=r"config\.yaml: configfile: gpus: not said, .* gpus: 0"):
        profile.check(profile.read(written(said)))
    profile.check(profile.read(written(said | {"configfile": "nodes.yaml"})))


def test_what_a_profile_says_of_nodes_stands_in_a_file_beside_it(written, tmp_path):
    file = str(tmp_path / "nodes.yaml")
    for named in ("nodes.yaml", [file]):
        found = profile.read(written({"configfile": named}))
        assert found.files == {file: {"gpus": 2, "memory_mb": 8000}}
    for name in ("config.yaml", "profile.yaml"):  # by the file, as Snakemake does
        (tmp_path / "config.yaml").rename(tmp_path / name)
        assert profile.read(tmp_path / name) == profile.read(tmp_path)
        (tmp_path / name).rename(tmp_path / "config.yaml")


@pytest.mark.parametrize("config", [{"gpus": 2}, ["gpus=2"]])
def test_what_snakemake_would_lose_is_refused(written, config):
    """It leaves out `config` of a profile where anything is given by --config."""
    with pytest.raises(UserError, match=r"config\.yaml: config: Snakemake leaves it out as soon"):
        profile.check(profile.read(written({"config": config})))


@pytest.mark.parametrize("name", ["profile.yaml", "config.v9+.yaml", "profile.v1+.yaml"])
def test_another_file_that_snakemake_takes_for_the_profile(written, name):
    folder = written({})
    (folder / name).write_text("executor: slurm")
    with pytest.raises(UserError, match="and Snakemake takes one of them; leave one"):
        profile.read(folder)


@pytest.mark.parametrize(
    "text", ["__use_yte__: true\ncores: ?1", "cores: !!python/name:os.system", "a: &a [*a]"]
)
def test_a_profile_that_is_no_data(tmp_path, capsys, text):
    (tmp_path / "config.yaml").write_text(text)
    assert profile.main([str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith(f"error: {tmp_path}/config.yaml: ")
