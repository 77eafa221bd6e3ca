"""Archives and merges that go wrong: nothing half done, nothing wrong, and what was there stays."""

import os
import random
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
import xarray as xr

from neuralrace.cli.main import main
from neuralrace.results.checksums import (
    Checksums,
    checksum_path,
    file_sha256,
    fingerprint,
    read_checksums,
    recorded_checksum,
    recorded_checksums,
    recorded_fingerprint,
)
from neuralrace.results.files import read_result, write_result

pytestmark = pytest.mark.faults
GROUP = "Passing results on"
CELL = "deep_linear/time_to_learn/main"
FIGURE = "figures/deep_linear/time_to_learn.png"
AGAIN = "ask for another archive, and run the same command again"


def sealed(folder: Path) -> dict[str, str]:
    """Checksums of the result files of a folder that have one beside them."""
    found = {path: file_sha256(path) for path in folder.rglob("*.nc") if recorded_checksum(path)}
    return {path.relative_to(folder).as_posix(): digest for path, digest in found.items()}


@pytest.fixture
def packed(finished, tmp_path, monkeypatch):
    """A folder with an archive of finished results, in which commands run."""
    monkeypatch.chdir(tmp_path)
    assert main(["export", str(finished.path / "results"), "sound.zip"]) == 0
    return sealed(finished.path / "results")


def merged(*arguments: str) -> tuple[int, str]:
    """Exit status of a merge into `all`, and what it says of a mistake."""
    command = [sys.executable, "-m", "neuralrace.cli.main", "merge", *arguments, "--into", "all"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


@pytest.fixture
def merging(capsys):
    """The same in this process, which costs no start."""

    def merge(*arguments: str) -> tuple[int, str]:
        capsys.readouterr()
        return main(["merge", *arguments, "--into", "all"]), capsys.readouterr().err

    return merge


def recovered(fault, merge, packed, refused: str) -> None:
    """Counts what a refused merge left, and what the sound archive makes of it."""
    fault.wrong += len(list(Path("all").rglob("*"))) if refused else 0
    fault.message = refused or fault.message
    fault.wrong += merge("sound.zip")[0]
    there = sealed(Path("all"))
    fault.lost += len(packed.keys() - there.keys())
    fault.wrong += len(there.items() - packed.items())
    shutil.rmtree("all")


def test_results_from_an_archive_need_no_training(finished, workspace, monkeypatch):
    monkeypatch.chdir(workspace.path)
    assert main(["export", str(finished.path / "results"), "results.zip"]) == 0
    with zipfile.ZipFile("results.zip") as archive:
        packed = archive.read(f"results/{FIGURE}")
        assert {"results/claims.sha256", "results/metrics.csv.sha256"} <= set(archive.namelist())
    assert packed == (finished.path / FIGURE).read_bytes()
    assert main(["merge", "results.zip", "--into", "results"]) == 0
    planned = workspace.planned("metrics", "claims", FIGURE)
    assert not planned.keys() & {"train", "solve", "measure"}
    workspace.snakemake("verify", "metrics", "claims", FIGURE)
    assert sealed(workspace.path / "results") == sealed(finished.path / "results")
    for name in ("results/claims.json", "results/metrics.csv", FIGURE):
        assert (workspace.path / name).read_bytes() == (finished.path / name).read_bytes()
    assert workspace.planned("metrics", "claims", FIGURE) == {}


def test_an_archive_that_was_cut_short(packed, injecting, merging, repeat):
    whole, chance = Path("sound.zip").read_bytes(), random.Random(1)
    with injecting("archive cut short", group=GROUP, recovers=AGAIN, chance=True) as fault:
        for _ in range(repeat):
            with fault.injection():
                Path("bad.zip").write_bytes(whole[: chance.randrange(len(whole))])
                status, told = merging("bad.zip")
                assert status == 1, told
                assert "it is cut short or damaged" in told
                recovered(fault, merging, packed, "cannot be read; it is cut short or damaged")


def test_an_archive_with_a_flipped_bit(packed, injecting, merging, repeat):
    whole, chance = Path("sound.zip").read_bytes(), random.Random(2)
    with injecting("archive with a flipped bit", group=GROUP, recovers=AGAIN, chance=True) as fault:
        for _ in range(2 * repeat):
            with fault.injection():
                content = bytearray(whole)
                content[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
                Path("bad.zip").write_bytes(content)
                # bits that tell nothing, such as those of a date, may pass
                status, told = merging("bad.zip")
                assert status == 0 or told.startswith("error: bad.zip: "), told
                recovered(fault, merging, packed, "Bad CRC-32 for file ..." if status else "")


def test_a_foreign_archive(packed, injecting, merging):
    with zipfile.ZipFile("sound.zip") as sound:
        sound.extractall("unpacked")
    shutil.make_archive("compressed", "zip", "unpacked")
    shutil.make_archive("tape", "tar", "unpacked")
    Path("tape.tar").rename("tape.zip")
    with zipfile.ZipFile("other.zip", "w") as other:
        other.writestr("word/document.xml", "<document/>")
    Path("text.zip").write_text("no archive")
    Path("empty.zip").touch()
    with injecting(
        "an archive that neuralrace did not write", group=GROUP, recovers=AGAIN
    ) as fault:
        for name in ("compressed.zip", "tape.zip", "other.zip", "text.zip", "empty.zip"):
            with fault.injection():
                status, told = merging(name)
                assert status == 1
                assert told.startswith(f"error: {name}: ")
                recovered(fault, merging, packed, "is no name of a result file or table")
    assert merging("unpacked/results") == (0, "")


HOSTILE = {
    "absolute name": ("/tmp/evil/metrics.nc", {}),
    "name out of the folder": ("results/../../evil/main/metrics.nc", {}),
    "name of two dots": ("results/deep_linear/time_to_learn/../metrics.nc", {}),
    "drive": ("C:\\results\\evil.nc", {}),
    "program": ("results/deep_linear/time_to_learn/main/run.sh", {}),
    "configuration": ("config/deep_linear/experiments.yaml", {}),
    "link": ("results/a/b/c/metrics.nc", {"external_attr": (stat.S_IFLNK | 0o777) << 16}),
    "bomb": ("results/a/b/c/metrics.nc", {"compress_type": zipfile.ZIP_DEFLATED}),
    "bomb for a seal": (
        "results/a/b/c/metrics.nc.sha256", {"compress_type": zipfile.ZIP_DEFLATED}
    ),
}  # fmt: skip
"""Entries that no export writes, by what they are."""


def test_an_archive_with_hostile_names(packed, injecting, merging):
    outside = set(Path().absolute().parent.rglob("*"))
    with injecting("a malicious archive", group=GROUP, recovers=AGAIN) as fault:
        for name, changes in HOSTILE.values():
            with fault.injection():
                shutil.copy("sound.zip", "bad.zip")
                entry = zipfile.ZipInfo(name)
                for key, value in changes.items():
                    setattr(entry, key, value)
                with zipfile.ZipFile("bad.zip", "a") as bad:
                    bad.writestr(entry, "0" * 10_000_000)
                status, told = merging("bad.zip")
                assert status == 1, name
                assert "`neuralrace export` writes no such archive. Nothing was unpacked" in told
                recovered(fault, merging, packed, "writes no such archive; nothing was unpacked")
    assert set(Path().absolute().parent.rglob("*")) - outside == {Path("bad.zip").absolute()}


def altered(folder: str, kind: str, change) -> None:
    """A copy of the results with one file of a cell changed, as if it had been made so."""
    with zipfile.ZipFile("sound.zip") as sound:
        sound.extractall(folder)
    path = Path(folder, "results", CELL, f"{kind}.nc")
    metrics = path.with_name("metrics.nc")
    made_from = read_checksums(checksum_path(metrics))
    assert made_from is not None
    write_result(change(read_result(path)), path, recorded_fingerprint(path) or "")
    made_now = read_checksums(checksum_path(metrics))
    assert made_now is not None
    inputs = recorded_checksums(Path(folder, "results"), made_from.inputs)
    Checksums(made_from.fingerprint, made_now.files, inputs).write(checksum_path(metrics))


def values(dataset: xr.Dataset) -> xr.Dataset:
    name = next(name for name, array in dataset.items() if array.dtype.kind == "f")
    return dataset.assign({name: dataset[name] * (1 + 1e-12)})


def specification(dataset: xr.Dataset) -> xr.Dataset:
    spec = dataset.attrs["spec"].replace('"steps":400', '"steps":800')
    assert spec != dataset.attrs["spec"]
    return dataset.assign_attrs(spec=spec, spec_sha256=fingerprint(spec))


def code(dataset: xr.Dataset) -> xr.Dataset:
    return dataset.assign_attrs(code_sha256="0" * 64)


def test_results_that_contradict_each_other(packed, injecting, merging):
    changes = {"training.steps: ": specification, "code: ": code, "values alone: ": values}
    with injecting(
        "contradicting results merged",
        group=GROUP,
        recovers="leave one source out, or use `--prefer`",
    ) as fault:
        for number, (said, change) in enumerate(changes.items()):
            for kind in ("trajectory", "theory", "metrics"):
                folder = f"{kind}-{number}"
                altered(folder, kind, change)
                with fault.injection():
                    other = f"{folder}/results"
                    status, told = merging("sound.zip", other)
                    assert status == 1
                    assert f"- {CELL}: {kind}: {said}" in told
                    fault.wrong += Path("all").exists()
                    preferred = merging("sound.zip", other, "--prefer", "sound.zip")[0]
                    fault.wrong += preferred != (change is not values)
                    shutil.rmtree("all", ignore_errors=True)
                    recovered(fault, merging, packed, "nothing was written")


def test_results_of_another_version(packed, finished, workspace, injecting, merging, monkeypatch):
    with injecting(
        "results of another version merged",
        group=GROUP,
        recovers="run the command that `verify` prints",
    ) as fault:
        altered("schema", "theory", lambda dataset: dataset)
        path = Path("schema/results", CELL, "theory.nc")
        with fault.injection():
            with monkeypatch.context() as older:
                older.setattr("neuralrace.results.schema.SCHEMA_VERSION", "2")
                dataset = xr.load_dataset(path, engine="netcdf4", decode_times=False)
                write_result(dataset.assign_attrs(schema="2"), path)
            status, told = merging("schema/results")
            assert status == 1
            assert f"{CELL}/theory.nc: has schema '2', this version reads '3'" in told
            recovered(fault, merging, packed, "has schema '2', this version reads '3'")
        monkeypatch.chdir(workspace.path)
        shutil.copytree(finished.path / "results", "other/results")
        workspace.edit("metrics/linear/learning_times.py")
        with fault.injection():
            assert main(["merge", "other/results", "--into", "results"]) == 0
            said = workspace.snakemake("verify", fails=True)
            stale = set(re.findall(r"^(results/\S+): was computed .* other code", said, re.M))
            files = {f"results/{name}" for name in packed if name.startswith("deep_linear/")}
            assert stale == {name for name in files if name.endswith("metrics.nc")}
            mending, *_ = re.findall("To compute them again: snakemake --cores all (.*)", said)
            workspace.snakemake(*mending.split())
            assert "verified" in workspace.snakemake("verify")
            kept = {name: each for name, each in packed.items() if "metrics.nc" not in name}
            fault.lost += len(kept.items() - sealed(Path("results")).items())


def test_a_merge_that_is_killed(packed, injecting, repeat):
    begun = time.monotonic()
    assert merged("sound.zip") == (0, "")
    whole, chance = time.monotonic() - begun, random.Random(3)
    shutil.rmtree("all")
    command = [sys.executable, "-m", "neuralrace.cli.main", "merge", "sound.zip", "--into", "all"]
    with injecting("merge killed", group=GROUP, chance=True) as fault:
        for _ in range(repeat):
            with fault.injection():
                running = subprocess.Popen(command, stdout=subprocess.DEVNULL)
                time.sleep(chance.uniform(0.7, 1.0) * whole)
                os.kill(running.pid, signal.SIGKILL)
                running.wait()
                fault.wrong += len(sealed(Path("all")).items() - packed.items())
                status, told = merged("sound.zip")
                assert status == 0, told
                fault.lost += len(packed.items() - sealed(Path("all")).items())
            fault.message = "none: the same command goes on"
            shutil.rmtree("all")
