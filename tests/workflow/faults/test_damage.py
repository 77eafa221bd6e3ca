"""Finished files that are damaged, swapped, edited or gone: named, and made by one command."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from neuralrace.errors import UserError
from neuralrace.records.verify import verify
from neuralrace.seal import key_of, seal_file

pytestmark = [pytest.mark.workflow, pytest.mark.faults]
COMMAND = ("metrics", "claims", "figures/deep_linear/time_to_learn.png")
SIBLINGS = ("learning_rate-0.01", "learning_rate-0.02")
GROUP = "Finished files"
PICTURES = (".png", ".pdf", ".svg")
NO_RESULTS = ("outdated.json", "metrics.csv.sha256")


def contents(folder: Path) -> dict[Path, bytes]:
    """Everything that a run makes: result files, pictures, tables."""
    files = [*folder.glob("results/*/*/*/*.nc"), *folder.glob("results/*.[cjm][sd]*")]
    files += [each for suffix in PICTURES for each in folder.glob(f"figures/**/*{suffix}")]
    return {path: path.read_bytes() for path in files if path.name not in NO_RESULTS}


@pytest.fixture(scope="module")
def made(finished):
    """A finished workspace that tests here may damage, and what it held when it was sound."""
    finished.snakemake(*COMMAND)
    sound = contents(finished.path)
    PLANNED.update({path: key_of(path) for path in sound if path.suffix == ".nc"})
    return finished, sound


PLANNED: dict[Path, str] = {}
"""Keys of the result files when they were sound: those of configuration and code."""


def told(folder: Path) -> str:
    """What `verify` says of a folder, where it knows what is planned."""
    try:
        verify(folder / "results", folder / "figures", lambda line: None, PLANNED)
    except UserError as error:
        return str(error)
    return ""


def healed(made, damaged, fault) -> str:
    """Counts what is not named, then what one command does not make as it was; what that prints."""
    workspace, sound = made
    said = told(workspace.path)
    unnamed = [path for path in damaged if path.name not in said]
    assert not unnamed, said
    printed = workspace.snakemake(*COMMAND)
    now = contents(workspace.path)
    fault.lost += len(sound.keys() - now.keys())
    fault.wrong += sum(now[path] != content for path, content in sound.items() if path in now)
    fault.wrong += bool(told(workspace.path))
    assert not [line for line in printed.splitlines() if "Traceback" in line]
    return printed


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
    counted = injecting(f"{what}: {kind}", group=GROUP, chance=True)
    with counted as fault, fault.injection(len(files)):
        for path in files:
            if damage is None:
                path.unlink()
            else:
                path.write_bytes(damage(path.read_bytes(), random))
        printed = healed(made, files, fault)
        named = "damaged; it is made anew, and kept as" in printed
        assert named == (what == "result file" and damage is not None)
        if damage is None:
            fault.message = "FILE: is missing" if what == "result file" else "FILE: cannot be read"
        elif named:
            fault.message = "FILE: damaged; it is made anew, and kept as FILE.damaged"
        else:
            fault.message = "FILE: is not what was made; it was changed or damaged"


@pytest.mark.parametrize("with_seal", [False, True])
def test_a_sibling_in_its_place_is_noticed(made, injecting, with_seal):
    workspace, _ = made
    kind = "with its seal" if with_seal else "alone"
    places = [workspace.path / f"results/deep_linear/step_size/{name}" for name in SIBLINGS]
    with injecting(f"result file of another cell in its place, {kind}", group=GROUP) as fault:
        for name in ("trajectory.nc", "theory.nc", "metrics.nc"):
            with fault.injection():
                here, there = (place / name for place in places)
                shutil.copy2(there, here)
                if with_seal:
                    shutil.copy2(seal_file(there), seal_file(here))
                printed = healed(made, [here], fault)
                assert "outdated: 1 cells" in printed
        fault.message = "outdated: 1 cells" if with_seal else "FILE: damaged; made anew"


def test_a_seal_that_was_edited_or_lost_is_noticed(made, injecting):
    _, sound = made
    files = [path for path in sound if path.suffix == ".nc"]
    with injecting("seal: edited, cut or deleted", group=GROUP, chance=True) as fault:
        with fault.injection(len(files)):
            random = np.random.default_rng(1)
            for number, path in enumerate(files):
                place = seal_file(path)
                text = place.read_bytes()
                if number % 3 == 0:
                    place.unlink()
                else:
                    place.write_bytes((flip, cut)[number % 2](text, random))
            healed(made, files, fault)
        fault.message = "its checksum FILE.sha256 is missing or damaged"


def test_clocks_that_jump_cost_nothing(made, injecting):
    workspace, sound = made
    with injecting("time stamps of the future and of 1971", group=GROUP) as fault:
        for year in (2031 - 1970, 1):
            with fault.injection(len(sound)):
                for path in sound:
                    os.utime(path, (year * 31_557_600,) * 2)
                fault.wrong += bool(told(workspace.path))
                before = {path: path.stat().st_ino for path in sound if path.suffix == ".nc"}
                healed(made, [], fault)
                fault.lost += sum(path.stat().st_ino != inode for path, inode in before.items())
                fault.lost += workspace.planned(*COMMAND) != {}
        fault.message = "nothing: contents decide, not times"


def test_a_cell_that_fails_leaves_what_was_there(made, injecting):
    workspace, sound = made
    with (
        injecting(
            "a job that fails where results were",
            group="Runs",
            recovers="the configuration as it was",
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
        workspace.configure("deep_linear", workspace.deep)
        healed(made, [], fault)
        assert not list(workspace.path.rglob("*.last"))
