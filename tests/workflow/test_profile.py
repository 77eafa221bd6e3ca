"""Snakemake profiles are checked before jobs go to a cluster."""

import re
import shutil
from contextlib import nullcontext

import pytest
import yaml

from builders import REPOSITORY
from neuralrace.errors import UserError
from neuralrace.workflow import profile

PROFILES = REPOSITORY / "profiles"
RESOURCES = {"slurm_partition": "main", "slurm_account": ""}


@pytest.fixture(autouse=True)
def installed(monkeypatch):
    """Pretends that the plug-in is installed, as it is for the tests of faults only."""
    monkeypatch.setattr(profile, "find_spec", lambda name: name)


@pytest.fixture
def write_profile(tmp_path):
    def write(content):
        (tmp_path / "config.yaml").write_text(yaml.safe_dump(content))
        (tmp_path / "nodes.yaml").write_text("gpus: 2\nmemory_mb: 8000\n")
        return tmp_path

    return write


def test_partition_and_account_are_two_lines_to_uncomment(tmp_path, capsys):
    text = (PROFILES / "slurm/config.yaml").read_text()
    assert profile.main([str(PROFILES / "slurm")]) == 1
    message = capsys.readouterr().err
    assert message.startswith(f"error: {PROFILES}/slurm/config.yaml: default-resources: slurm_part")
    assert "and slurm_account not set; remove the #" in message
    assert message.count("\n") == 1
    edited, edits = re.subn(r"# (slurm_(?:partition|account): \w+)", r"\1", text)
    assert edits == 2
    (tmp_path / "config.yaml").write_text(edited)
    shutil.copy(PROFILES / "slurm/nodes.yaml", tmp_path)
    assert profile.main([str(tmp_path)]) == 0


@pytest.mark.parametrize("name", ["default", "generic"])
def test_a_profile_without_settings_of_a_site_is_complete(name):
    profile.check(profile.read(PROFILES / name))


@pytest.mark.parametrize(
    ("resources", "absent"),
    [
        (RESOURCES, ""),
        ([f"{name}={value}" for name, value in RESOURCES.items()], ""),
        ({"slurm_partition": "main", "slurm_account": None}, "slurm_account"),
        (["slurm_account=mine"], "slurm_partition"),
        (None, "slurm_partition and slurm_account"),
    ],
)
def test_absent_resources_are_named(write_profile, resources, absent):
    content = {"executor": "slurm", "default-resources": resources, "configfile": "nodes.yaml"}
    slurm = profile.read(write_profile(content))
    message = f"config.yaml: default-resources: {absent} not set"
    with pytest.raises(UserError, match=message) if absent else nullcontext():
        profile.check(slurm)


@pytest.mark.parametrize(
    ("executor", "package"),
    [("slurm", "snakemake-executor-plugin-slurm"), ("lsf", "snakemake-executor-plugin-lsf")],
)
def test_an_absent_plug_in_is_named_with_its_package(write_profile, monkeypatch, executor, package):
    monkeypatch.setattr(profile, "find_spec", lambda name: None)
    remote = profile.read(write_profile({"executor": executor}))
    with pytest.raises(UserError, match="plug-in is not installed") as error:
        profile.check(remote)
    assert (error.value.key, error.value.value) == ("executor", repr(executor))
    assert f"`pip install {package}`" in error.value.remedy


def test_a_folder_without_a_profile_is_refused(tmp_path):
    with pytest.raises(
        UserError, match=r"is no profile, as it has no config\.yaml; there are .*slurm"
    ):
        profile.read(PROFILES / "slurmm")
    with pytest.raises(UserError, match=r"has no config\.yaml$"):
        profile.read(tmp_path / "here")
    (tmp_path / "config.yaml").write_text("- executor\n")
    with pytest.raises(UserError, match="expected a mapping"):
        profile.read(tmp_path)


def test_the_number_of_gpus_of_a_node_must_be_set(write_profile):
    content = {"executor": "slurm", "default-resources": RESOURCES}
    with pytest.raises(UserError, match=r"config\.yaml: configfile: .* is not set.*gpus: 0"):
        profile.check(profile.read(write_profile(content)))
    profile.check(profile.read(write_profile(content | {"configfile": "nodes.yaml"})))


def test_a_profile_reads_configuration_files_beside_it(write_profile, tmp_path):
    file = str(tmp_path / "nodes.yaml")
    for named in ("nodes.yaml", [file]):
        content = profile.read(write_profile({"configfile": named}))
        assert content.files == {file: {"gpus": 2, "memory_mb": 8000}}
    for name in ("config.yaml", "profile.yaml"):  # by the file, as Snakemake does
        (tmp_path / "config.yaml").rename(tmp_path / name)
        assert profile.read(tmp_path / name) == profile.read(tmp_path)
        (tmp_path / name).rename(tmp_path / "config.yaml")


@pytest.mark.parametrize("config", [{"gpus": 2}, ["gpus=2"]])
def test_config_of_a_profile_is_refused(write_profile, config):
    with pytest.raises(UserError, match=r"config\.yaml: config: Snakemake ignores it as soon"):
        profile.check(profile.read(write_profile({"config": config})))


@pytest.mark.parametrize("name", ["profile.yaml", "config.v9+.yaml", "profile.v1+.yaml"])
def test_two_profiles_in_a_folder_are_refused(write_profile, name):
    folder = write_profile({})
    (folder / name).write_text("executor: slurm")
    with pytest.raises(UserError, match="and Snakemake uses one of them; leave one"):
        profile.read(folder)


@pytest.mark.parametrize(
    "text", ["__use_yte__: true\ncores: ?1", "cores: !!python/name:os.system", "a: &a [*a]"]
)
def test_a_profile_that_runs_code_is_refused(tmp_path, capsys, text):
    (tmp_path / "config.yaml").write_text(text)
    assert profile.main([str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith(f"error: {tmp_path}/config.yaml: ")
