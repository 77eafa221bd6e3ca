"""Finished files that are damaged, swapped, edited or gone: named, with the command that mends."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import netCDF4
import numpy as np
import pytest

from neuralrace.errors import UserError
from neuralrace.results.checksums import Checksums, checksum_path, file_sha256, recorded_fingerprint
from neuralrace.results.verify import verify

pytestmark = [pytest.mark.workflow, pytest.mark.faults]
COMMAND = ("metrics", "claims", "figures/deep_linear/time_to_learn.png")
SIBLINGS = ("learning_rate-0.01", "learning_rate-0.02")
GROUP = "Finished files"
PICTURES = (".png", ".pdf", ".svg")
VERDICT = "reproduced"
MENDING = "run the command that `verify` prints"


def contents(folder: Path) -> dict[Path, bytes]:
    """Everything that a run makes: result files, pictures, tables."""
    files = [*folder.glob("results/*/*/*/*.nc"), *folder.glob("results/*.[cjm][sd]*")]
    files += [each for suffix in PICTURES for each in folder.glob(f"figures/**/*{suffix}")]
    return {path: path.read_bytes() for path in files if path.name != "metrics.csv.sha256"}


@pytest.fixture(scope="module")
def made(finished):
    """A finished workspace that tests here may damage, and what it held when it was sound."""
    finished.snakemake(*COMMAND)
    sound = contents(finished.path)
    PLANNED.update({path: recorded_fingerprint(path) for path in sound if path.suffix == ".nc"})
    return finished, sound


PLANNED: dict[Path, str] = {}
"""Fingerprints of the result files when they were sound: those of configuration and code."""


def told(folder: Path) -> str:
    """What `verify` says of a folder, where it knows what is planned."""
    try:
        verify(folder / "results", folder / "figures", lambda line: None, PLANNED)
    except UserError as error:
        return str(error)
    return ""


def healed(made, damaged, fault) -> str:
    """Counts what is not as it was after the command that `verify` names; what `verify` says."""
    workspace, sound = made
    said = told(workspace.path)
    unnamed = [path for path in damaged if path.name not in said]
    assert not unnamed, said
    for mending in re.findall("To compute them again: snakemake --cores all (.*)", said):
        workspace.snakemake(*mending.replace(f"{workspace.path}/", "").split())
    printed = workspace.snakemake(*COMMAND)
    now = contents(workspace.path)
    fault.lost += len(sound.keys() - now.keys())
    fault.wrong += sum(now[path] != content for path, content in sound.items() if path in now)
    fault.wrong += bool(told(workspace.path))
    fault.output(printed)
    return said


def flip(content: bytes, random: np.random.Generator) -> bytes:
    changed = bytearray(content)
    changed[random.integers(len(content))] ^= 1 << random.integers(8)
    return bytes(changed)


def cut(content: bytes, random: np.random.Generator) -> bytes:
    return content[: random.integers(1, len(content))]


DAMAGES = {
    "a bit is flipped": flip,
    "cut short": cut,
    "emptied": lambda content, random: b"",
    "deleted": None,
}


@pytest.mark.parametrize("kind", DAMAGES)
@pytest.mark.parametrize("what", ["result file", "picture or table"])
def test_damage_is_named_and_mended(made, injecting, kind, what):
    _, sound = made
    damage, random = DAMAGES[kind], np.random.default_rng(len(kind))
    files = [path for path in sound if (path.suffix == ".nc") == (what == "result file")]
    counted = injecting(f"{what}: {kind}", group=GROUP, recovers=MENDING, chance=True)
    with counted as fault, fault.injection(len(files)):
        for path in files:
            if damage is None:
                path.unlink()
            else:
                path.write_bytes(damage(path.read_bytes(), random))
        said = healed(made, files, fault)
        if damage is None:
            fault.message = "FILE: is missing" if what == "result file" else "FILE: cannot be read"
        elif what == "result file":
            fault.message = "FILE: is damaged: its content does not have the checksum ..."
        else:
            fault.message = "FILE: is not what was written; it was changed or damaged"
        assert fault.message.removeprefix("FILE: ").removesuffix(" ...") in said


def over(path: Path, content: bytes, way: str) -> None:
    """Damage that is not done in place."""
    other = path.with_name("other")
    other.write_bytes(content)
    if way == "renamed over it":
        other.replace(path)
        return
    shutil.copyfile(other, path)
    other.unlink()


@pytest.mark.parametrize("way", ["renamed over it", "copied over it"])
@pytest.mark.parametrize("copy", ["cp -a", "cp -r", "tar", "touch"])
def test_damage_is_named_where_a_copy_gave_files_other_times(
    made, injecting, copy, way, tmp_path, repeat
):
    """A copy of a folder gives checksum files newer times than their files."""
    workspace, _sound = made
    random = np.random.default_rng(len(copy) + len(way))
    moved = tmp_path / "results"
    if copy == "touch":
        shutil.copytree(workspace.path / "results", moved)
        for path in sorted(moved.rglob("*"), key=lambda each: each.suffix == ".sha256"):
            os.utime(path)
    elif copy == "tar":
        shutil.make_archive(str(tmp_path / "all"), "tar", workspace.path, "results")
        shutil.unpack_archive(tmp_path / "all.tar", tmp_path, filter="data")
    else:
        command = [*copy.split(), str(workspace.path / "results"), str(tmp_path)]
        subprocess.run(command, check=True)
    files = [path for path in moved.rglob("*.nc") if "variants" not in path.parts]
    files += [moved / name for name in ("claims.md", "claims.json", "metrics.csv")]
    files = [files[number] for number in random.permutation(len(files))[: 2 * repeat]]
    kind = f"damage after {copy}: another file {way}"
    planned = {moved / path.relative_to(workspace.path / "results"): key
               for path, key in PLANNED.items()}  # fmt: skip
    counted = injecting(kind, group=GROUP, recovers="restore the files", chance=True)
    with counted as fault:
        for path in files:
            content = path.read_bytes()
            with fault.injection():
                over(path, (flip, cut)[random.integers(2)](content, random), way)
                for plan in (planned, None):
                    with pytest.raises(UserError, match=re.escape(path.name)):
                        verify(moved, moved / "figures", lambda line: None, plan)
                over(path, content, way)
                verify(moved, workspace.path / "figures", lambda line: None, planned)
        fault.message = "FILE: is damaged: its content does not have the checksum ..."


def test_an_edited_verdict_is_named(made, injecting):
    workspace, _sound = made
    kind = "a verdict is edited by hand"
    with injecting(kind, group=GROUP, recovers=MENDING) as fault:
        for name in ("claims/deep_linear.md", "claims.json", "claims.csv"):
            path = workspace.path / "results" / name
            for age in (0, 10**6):
                with fault.injection():
                    text = path.read_text()
                    assert VERDICT in text
                    path.write_text(text.replace(VERDICT, "contradicted"))
                    stamp = path.stat().st_mtime - age
                    os.utime(path, (stamp, stamp))
                    healed(made, [path], fault)
        with fault.injection():
            path = workspace.path / "results/claims.json"
            path.write_text(path.read_text().replace(VERDICT, "contradicted"))
            (workspace.path / "results/claims.accepted").unlink()
            printed = workspace.snakemake("claims", fails=True)
            again = re.search(r"claims.json: is damaged.*add (--forcerun \S+) to the", printed)
            assert again, printed
            workspace.snakemake("claims", *again[1].split())
            healed(made, [], fault)
        fault.message = "FILE: is not what was written; it was changed or damaged"


READERS = {
    "trajectory.nc": ("metrics.nc", ("cells",)),
    "theory.nc": ("metrics.nc", ("cells",)),
    "metrics.nc": ("../../../metrics.csv", ("metrics",)),
}
"""Of each file, one that is computed from it, and what to ask for so that it is."""


UNREADABLE = ("flipped", "cut", "no checksum", "no text", "another schema")


@pytest.mark.parametrize("damage", UNREADABLE)
def test_the_remedy_that_a_job_names_mends_what_it_refuses(made, injecting, damage, repeat):
    """Somebody reads a damaged file: the command of the message, and all is as it was."""
    workspace, sound = made
    cell = workspace.path / "results/deep_linear/time_to_learn/main"
    random = np.random.default_rng(5)
    # where there are fewer repetitions than files, each damage leaves out another one
    names = np.roll([*READERS], UNREADABLE.index(damage))[:repeat].tolist()
    counted = injecting(f"a job reads a damaged file: {damage}", group=GROUP,
                        recovers="the command that the message names")  # fmt: skip
    with counted as fault:
        for name in names:
            made_from_it, command = READERS[name]
            path = cell / name
            with fault.injection():
                content = path.read_bytes()
                if damage == "no checksum":
                    checksum_path(path).unlink()
                elif damage == "no text":
                    checksum_path(path).write_text("?")
                elif damage == "another schema":
                    with netCDF4.Dataset(path, "a") as stored:
                        stored.schema = "1"
                    Checksums("", {name: file_sha256(path)}).write(checksum_path(path))
                else:
                    path.write_bytes((cut if damage == "cut" else flip)(content, random))
                (cell / made_from_it).unlink()
                printed = workspace.snakemake(*command, fails=True)
                assert "Traceback" not in printed
                told = re.search(r"error: (?:\S+: )?(results/\S+\.nc): (.*)", printed)
                assert told, printed
                assert told[1] == f"results/deep_linear/time_to_learn/main/{name}"
                if again := re.search(r"add (--forcerun \S+) to the snakemake command", told[2]):
                    workspace.snakemake(*command, *again[1].split())
                else:
                    assert "delete it and run the workflow again" in told[2]
                    path.unlink()
                    workspace.snakemake(*command)
                healed(made, [], fault)
                fault.wrong += path.read_bytes() != sound[path]
        fault.message = "FILE: is damaged ...; add --forcerun FILE to the snakemake command ..."


@pytest.mark.parametrize("with_checksum", [False, True])
def test_a_sibling_in_its_place_is_noticed(made, injecting, with_checksum):
    workspace, _ = made
    kind = "with its checksum" if with_checksum else "alone"
    places = [workspace.path / f"results/deep_linear/step_size/{name}" for name in SIBLINGS]
    kind = f"result file of another cell in its place, {kind}"
    with injecting(kind, group=GROUP, recovers=MENDING) as fault:
        for name in ("trajectory.nc", "theory.nc", "metrics.nc"):
            with fault.injection():
                here, there = (place / name for place in places)
                shutil.copy2(there, here)
                if with_checksum:
                    shutil.copy2(checksum_path(there), checksum_path(here))
                said = healed(made, [here], fault)
            other = "was computed from another configuration or other code"
            fault.message = f"FILE: {other if with_checksum else 'is damaged'} ..."
            assert fault.message.removeprefix("FILE: ").removesuffix(" ...") in said


def test_a_checksum_that_was_edited_or_lost_is_noticed(made, injecting):
    _, sound = made
    files = [path for path in sound if path.suffix == ".nc"]
    kind = "checksum file: edited, cut or deleted"
    with injecting(kind, group=GROUP, recovers=MENDING, chance=True) as fault:
        with fault.injection(len(files)):
            random = np.random.default_rng(1)
            for number, path in enumerate(files):
                place = checksum_path(path)
                text = place.read_bytes()
                if number % 3 == 0:
                    place.unlink()
                else:
                    place.write_bytes((flip, cut)[number % 2](text, random))
            healed(made, files, fault)
        fault.message = "its checksum FILE.sha256 is missing or damaged"


def test_clocks_that_jump_cost_nothing(made, injecting):
    workspace, sound = made
    with injecting("files are dated 2031 or 1971", group=GROUP) as fault:
        for year in (2031 - 1970, 1):
            with fault.injection(len(sound)):
                for path in sound:
                    os.utime(path, (year * 31_557_600,) * 2)
                fault.wrong += bool(told(workspace.path))
                before = {path: path.stat().st_ino for path in sound if path.suffix == ".nc"}
                healed(made, [], fault)
                fault.lost += sum(path.stat().st_ino != inode for path, inode in before.items())
                fault.lost += workspace.planned(*COMMAND) != {}
        fault.message = "none"


def test_a_cell_that_fails_leaves_what_was_there(made, injecting):
    workspace, sound = made
    with (
        injecting(
            "a job fails whose earlier results exist",
            group="Runs",
            recovers="correct the configuration, and run the same command again",
        ) as fault,
        fault.injection(),
    ):
        changed = workspace.deep
        changed["time_to_learn"]["training"]["learning_rate"] = 50.0
        workspace.configure("deep_linear", changed)
        printed = workspace.snakemake(*COMMAND, fails=True)
        fault.message = "training.learning_rate: 50.0: every run diverged"
        assert fault.message in printed
        now = contents(workspace.path)
        fault.lost += len(sound.keys() - now.keys())
        cell = workspace.path / "results/deep_linear/time_to_learn/main"
        kept = [cell / "trajectory.nc", cell / "metrics.nc"]
        kept += [path for path in sound if "figures" in path.parts]
        fault.lost += sum(now.get(path) != sound[path] for path in kept)
        # the file that is kept is no result of the job that failed
        assert workspace.planned_files("cells") >= {
            str(path.relative_to(workspace.path)) for path in (cell / "trajectory.nc",)
        }
        workspace.configure("deep_linear", workspace.deep)
        healed(made, [], fault)
