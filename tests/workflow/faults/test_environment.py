"""What a person's machine does to a run: folders, homes, locales, settings, disks, caches."""

import errno
import fcntl
import json
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import matplotlib as mpl
import netCDF4
import pytest

import neuralrace as nr
from neuralrace.errors import UserError
from neuralrace.results.checksums import Checksums, checksum_path, file_sha256, recorded_fingerprint
from neuralrace.results.files import read_result
from preloaded import killed_at_rename, no_locks, no_room

pytestmark = pytest.mark.faults
GROUP = "Environment"
FREE = "free space, and run the same command again"
NOTHING = "nothing: it has no effect"
FIGURE = "figures/deep_linear/time_to_learn"
TARGETS = ("metrics", f"{FIGURE}.png")


def made(folder: Path) -> dict[str, bytes]:
    """All results of a workspace, and a picture."""
    files = [*folder.glob("results/*/*/*/*.nc"), *folder.glob(f"{FIGURE}.*")]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


@contextmanager
def without(workspace, *cells: str):
    """A finished workspace in which some cells and the figures are to be made again."""
    for name in (*(f"results/deep_linear/{cell}" for cell in cells), "figures"):
        shutil.rmtree(workspace.path / name, ignore_errors=True)
    yield


def run(workspace, *targets, fails=False, **environment):
    """What snakemake prints in an environment; None takes a variable out of it."""
    known = workspace.environment() | environment
    done = subprocess.run(
        workspace.command(*(targets or TARGETS)), cwd=workspace.path, capture_output=True,
        env={name: value for name, value in known.items() if value is not None},
        encoding="utf-8", errors="replace", timeout=900, check=False,
    )  # fmt: skip
    printed = done.stdout + done.stderr
    assert (done.returncode != 0) == fails, printed
    return printed


# Where and by whom -----------------------------------------------------------------------------

ODD = "my 'größe' データ & $HOME; #1 \"😀\""
SETTINGS = {
    "another locale (Turkish, ISO-8859-9)": {
        "LC_ALL": "tr_TR.ISO-8859-9", "LANG": "tr_TR", "PYTHONUTF8": "0", "TZ": "Asia/Kathmandu",
    },
    "no locale (LC_ALL=C, ASCII)": {
        "LC_ALL": "C", "LANG": None, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0",
    },
    "JAX_* and XLA_FLAGS are set for another program": {
        "XLA_FLAGS": "--xla_cpu_enable_fast_math=true --xla_cpu_enable_fast_min_max=true",
        "JAX_ENABLE_X64": "0", "JAX_DEFAULT_MATMUL_PRECISION": "bfloat16",
        "JAX_RANDOM_SEED_OFFSET": "7", "JAX_THREEFRY_PARTITIONABLE": "0", "JAX_DEBUG_NANS": "1",
        "JAX_DEFAULT_PRNG_IMPL": "rbg", "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
        "JAX_DISABLE_JIT": "0", "JAX_PLATFORMS": "cuda",
    },
    "BLAS kernels are chosen for another program": {
        "OPENBLAS_CORETYPE": "Nehalem", "OPENBLAS_L2_SIZE": "64", "MKL_CBWR": "COMPATIBLE",
    },
    "other thread counts, hash seed and -O of Python": {
        "NPROC": "7", "OMP_NUM_THREADS": "3", "OPENBLAS_NUM_THREADS": "5", "PYTHONHASHSEED": "3",
        "PYTHONOPTIMIZE": "1",
    },
}  # fmt: skip
TOLD = {
    "JAX_* and XLA_FLAGS are set for another program": (
        "JAX_DEBUG_NANS, JAX_DEFAULT_MATMUL_PRECISION, JAX_DEFAULT_PRNG_IMPL, "
    ),
    "BLAS kernels are chosen for another program": (
        "MKL_CBWR, OPENBLAS_CORETYPE, OPENBLAS_L2_SIZE: left out"
    ),
}


@pytest.mark.parametrize("kind", SETTINGS)
def test_a_setting_makes_no_difference(kind, finished, copied, injecting):
    with injecting(kind, group=GROUP, recovers=NOTHING) as fault, without(copied, "time_to_learn"):
        with fault.injection():
            printed = run(copied, **SETTINGS[kind])
        fault.wrong += made(copied.path) != made(finished.path)
        fault.output(printed)
        assert "Logging error" not in printed
        assert TOLD.get(kind, "") in printed
        fault.message = "..., left out of the environment" if kind in TOLD else "none"


def test_no_home(finished, copied, injecting):
    with injecting("no home folder", group=GROUP, recovers=NOTHING) as fault:
        with fault.injection(), without(copied, "time_to_learn"):
            order = [
                sys.executable,
                "-m",
                "neuralrace.cli.main",
                "run",
                "deep_linear/time_to_learn",
            ]
            homeless = {"HOME": "/dev/null/home", "XDG_CACHE_HOME": None, "USER": None}
            known = copied.environment() | homeless
            done = subprocess.run(
                order, cwd=copied.path, capture_output=True, text=True, check=False,
                env={name: value for name, value in known.items() if value is not None},
            )  # fmt: skip
            assert not done.returncode, done.stderr
        kept = {n: c for n, c in made(finished.path).items() if n.endswith(".nc")}
        fault.wrong += made(copied.path) != kept
        fault.output(done.stderr)
        fault.message = "none"


def test_a_folder_of_any_name(finished, copied, injecting):
    with injecting(
        "a working folder with spaces, quotes and other scripts in its name",
        group=GROUP,
        recovers=NOTHING,
    ) as fault:
        odd = type(finished)(copied.path.rename(copied.path.with_name(ODD)))
        with fault.injection(), without(odd, "time_to_learn"):
            printed = run(odd)
        fault.wrong += made(odd.path) != made(finished.path)
        fault.output(printed)
        fault.message = "none"


def test_the_clock_decides_nothing(finished, copied, injecting):
    """How often a checkpoint is written, and how long calls take."""
    kind = "another checkpoint interval"
    with injecting(kind, group=GROUP, recovers=NOTHING) as fault, without(copied, "time_to_learn"):
        (copied.path / "often.yaml").write_text("checkpoint_seconds: 0\n")
        with fault.injection():
            run(copied, *TARGETS, "--config", "settings=often.yaml")
        fault.wrong += made(copied.path) != made(finished.path)
        fault.message = "none"


# Matplotlib --------------------------------------------------------------------------------------

SHEETS = {
    "lines": "lines.linewidth: 9\nlines.linestyle: --\nlines.marker: o\n",
    "colours": "axes.prop_cycle: cycler('color', ['r'])\nimage.cmap: jet\npatch.edgecolor: red\n",
    "faces": "axes.facecolor: red\nfigure.facecolor: blue\nsavefig.facecolor: green\n",
    "letters": "font.family: serif\nfont.size: 30\nmathtext.fontset: stix\n",
    "sketch": "path.sketch: 1, 2, 3\npath.simplify: False\n",
    "sizes": "savefig.dpi: 30\nsavefig.bbox: tight\nfigure.autolayout: True\n",
    "formats": "svg.fonttype: none\nsvg.hashsalt: mine\npdf.fonttype: 3\npdf.compression: 0\n",
    "grid": "axes.grid: True\naxes.spines.left: False\nxtick.direction: in\nxtick.top: True\n",
    "TeX": "text.usetex: True\ntext.parse_math: False\n",
    "nonsense": "lines.linewidth: thick\nnonsense: 3\nbackend: none-of-these\n",
}


def test_a_persons_matplotlibrc(finished, copied, injecting):
    """In the folder of the run, in that of an environment variable, and in a notebook."""
    kind = "a custom matplotlibrc"
    cell = nr.open_results(finished.path / "results")["deep_linear/time_to_learn/main"]
    picture = nr.plot(cell)._repr_png_()
    sheet = copied.path / "matplotlibrc"
    with injecting(kind, group=GROUP, recovers=NOTHING) as fault:
        sheet.write_text("".join(SHEETS.values()))
        with fault.injection(), without(copied):
            run(copied, f"{FIGURE}.png", MPLBACKEND="none-of-these")
        fault.wrong += made(copied.path) != made(finished.path)
        elsewhere = sheet.rename(copied.path.parent / "sheet")
        with fault.injection(), without(copied):
            run(copied, f"{FIGURE}.png", MATPLOTLIBRC=str(elsewhere))
        fault.wrong += made(copied.path) != made(finished.path)
        for name in sorted(SHEETS.keys() - {"nonsense"}):
            elsewhere.write_text(SHEETS[name])
            with fault.injection(), mpl.rc_context(fname=elsewhere):
                fault.wrong += nr.plot(cell)._repr_png_() != picture
        fault.message = "none; of a line that it cannot read, matplotlib's"


# Disks -------------------------------------------------------------------------------------------


def mounted(*arguments: str) -> None:
    """Mounts something, where that is allowed."""
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")


@pytest.fixture
def small_disk(copied) -> Iterator[Path]:
    """Results of a finished workspace on a disk of their own."""
    results, there = copied.path / "results", copied.path / "there"
    results.rename(there)
    results.mkdir()
    mounted("-t", "tmpfs", "-o", "size=8m", "tmpfs", str(results))
    shutil.copytree(there, results, dirs_exist_ok=True)
    yield results
    subprocess.run(["umount", str(results)], check=True)


NEW = "deep_linear/step_size/learning_rate-0.008"


def changed(workspace) -> None:
    """Asks for one cell in place of another: something is to be made, and the rest to be kept."""
    experiments = workspace.deep
    experiments["step_size"]["sweep"]["training.learning_rate"] = [0.02, 0.008]
    workspace.configure("deep_linear", experiments)


def sound(before: dict[str, bytes], folder: Path) -> int:
    """How many of the former files are gone or others."""
    after = made(folder)
    return sum(after.get(name) != content for name, content in before.items())


def test_a_full_disk(copied, small_disk, injecting):
    """Nothing is left of it, or less than a cell takes."""
    before = {name: c for name, c in made(copied.path).items() if name.endswith(".nc")}
    changed(copied)
    with injecting("a full disk", group=GROUP, recovers=FREE) as fault:
        for room in (0, 20_000):
            shutil.rmtree(small_disk / NEW, ignore_errors=True)
            filler = small_disk / "filler"
            with fault.injection():
                filler.write_bytes(bytes(shutil.disk_usage(small_disk).free - room))
                printed = run(copied, "metrics", fails=True)
                fault.lost += sound(before, copied.path)
                filler.unlink()
                run(copied, "metrics")
            fault.lost += sound(before, copied.path) + (not (small_disk / NEW).is_dir())
            fault.wrong += bool(list(small_disk.rglob("*.tmp")))
            assert "cannot be written (the disk is full)" in printed
            fault.output(printed)
            assert "Logging error" not in printed
        fault.message = "... cannot be written (the disk is full); nothing was replaced"


def test_a_folder_that_may_not_be_written(copied, small_disk, injecting):
    before = {name: c for name, c in made(copied.path).items() if name.endswith(".nc")}
    changed(copied)
    writable = "make the folder writable, and run the same command again"
    with injecting("a read-only results folder", group=GROUP, recovers=writable) as fault:
        with fault.injection():
            mounted("-o", "remount,ro", str(small_disk))
            printed = run(copied, "metrics", fails=True)
            mounted("-o", "remount,rw", str(small_disk))
            fault.lost += sound(before, copied.path)
            run(copied, "metrics")
        fault.lost += sound(before, copied.path)
        assert "Write-protected output files for rule tabulate" in printed
        fault.output(printed)
        fault.message = "Snakemake's: Write-protected output files for rule ..."


@pytest.mark.parametrize("at_creation", [False, True])
@pytest.mark.parametrize(
    ("kind", "error", "reason"),
    [
        ("a full disk, which HDF5 hides", errno.ENOSPC, "the disk is full"),
        ("an exhausted disk quota", errno.EDQUOT, "the disk quota is exhausted"),
    ],
)
def test_lack_of_room(copied, injecting, tmp_path, kind, error, reason, at_creation):
    """A file cannot be made, or its content cannot be written."""
    before = {name: c for name, c in made(copied.path).items() if name.endswith(".nc")}
    changed(copied)
    where = "; no file can be made" if at_creation else ""
    with injecting(kind + where, group=GROUP, recovers=FREE) as fault:
        with fault.injection():
            full = no_room(tmp_path, f"results/{NEW}/", error, at_creation)
            printed = run(copied, "metrics", fails=True, **full)
            fault.lost += sound(before, copied.path)
            run(copied, "metrics")
        fault.lost += sound(before, copied.path) + (not (copied.path / "results" / NEW).is_dir())
        fault.wrong += bool(list((copied.path / "results").rglob("*.tmp")))
        assert f"cannot be written ({reason})" in printed
        fault.output(printed)
        fault.message = f"... cannot be written ({reason}); nothing was replaced"


def finished_jobs(printed: str) -> int:
    """How many jobs a run of Snakemake has finished."""
    return len(re.findall(r" done, \d+ of \d+$", printed, re.MULTILINE))


@pytest.mark.parametrize("error", ["ENOLCK", "EOPNOTSUPP"])
def test_a_file_system_without_locks(finished, copied, injecting, tmp_path, error):
    """Files are written, read and verified; a second run computes nothing."""
    kind = f"a file system without locks ({error})"
    with injecting(kind, group=GROUP, recovers=NOTHING) as fault:
        environment = no_locks(tmp_path, getattr(errno, error))
        with fault.injection(), without(copied, "time_to_learn"):
            printed = run(copied, **environment)
        assert finished_jobs(printed) >= 4
        printed += (again := run(copied, **environment))
        fault.lost += finished_jobs(again)
        printed += run(copied, "verify", **environment)
        fault.wrong += made(copied.path) != made(finished.path)
        fault.wrong += "damaged" in printed
        fault.output(printed)
        fault.message = "this file system has no locks; start one run there at a time"
        assert fault.message in printed


def test_result_files_that_another_process_locks(finished, copied, injecting):
    kind = "result files that another process has locked"
    with injecting(kind, group=GROUP, recovers=NOTHING) as fault, ExitStack() as locks:
        for path in copied.path.glob("results/*/*/*/*.nc"):
            fcntl.flock(locks.enter_context(path.open("rb")), fcntl.LOCK_EX)
        for path in copied.path.glob("results/*/*/*/metrics.nc"):
            path.unlink()
        with fault.injection():
            printed = run(copied) + run(copied, "verify")
        fault.wrong += made(copied.path) != made(finished.path)
        fault.output(printed)
        fault.message = "none"


@pytest.mark.parametrize("whole_run", [False, True])
@pytest.mark.parametrize("file", ["trajectory.nc", "deep_linear/time_to_learn.png"])
def test_a_kill_between_a_file_and_its_checksum_file(
    finished, copied, injecting, tmp_path, file, whole_run
):
    """A reader finds what was written, and the next run ends as one without a kill."""
    which = "a run" if whole_run else "a job"
    what = "picture" if file.endswith(".png") else "result file"
    with injecting(f"{which} is killed between a {what} and its checksum", group=GROUP) as fault:
        name = Path(file).with_suffix(".sha256") if what == "picture" else f"{file}.sha256"
        environment = killed_at_rename(tmp_path, str(name), whole_run)
        with fault.injection(), without(copied, "time_to_learn"):
            done = subprocess.run(
                copied.command(*TARGETS), cwd=copied.path, start_new_session=True, check=False,
                env=copied.environment() | environment, capture_output=True, text=True,
            )  # fmt: skip
            assert done.returncode, done.stdout + done.stderr
            left = list(copied.path.rglob(f".*{Path(name).name}.*.tmp"))
            if whole_run:  # Snakemake removes what a failed job wrote
                assert left
                trajectory = copied.path / "results/deep_linear/time_to_learn/main/trajectory.nc"
                assert read_result(trajectory).sizes["seed"]
            printed = done.stdout + done.stderr + run(copied)
        fault.wrong += made(copied.path) != made(finished.path)
        fault.wrong += bool(list(copied.path.rglob(".*.tmp")))
        fault.wrong += "damaged" in printed + run(copied, "verify")
        fault.output(printed)
        fault.message = "none" if whole_run else "the worker process ended"


# Caches and versions -----------------------------------------------------------------------------

TRAIN = """
import json, sys, warnings
from pathlib import Path
import jax
from jax.experimental.compilation_cache import compilation_cache
from neuralrace.config.cell import Ensemble
from neuralrace.training import trainer

warnings.simplefilter("ignore")
ensemble = Ensemble.model_validate_json(sys.argv[1])
for folder in sys.argv[2:]:
    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    trainer._PROGRAMS.clear()
    jax.clear_caches()
    compilation_cache.reset_cache()
    recorded = trainer.train(ensemble).variables
    print(json.dumps({name: array.tobytes().hex() for name, array in recorded.items()}))
"""
ENSEMBLE = {
    "dataset": {"name": "hierarchy"},
    "network": {"name": "layered", "hidden": [4]},
    "init": {"name": "normal"},
    "init_scales": [0.1],
    "seeds": 2,
    "training": {"learning_rate": 0.02, "steps": 100},
    "record": {"every": 50},
}


def trained(*folders: Path) -> list[str]:
    """What training records with each of some compile caches."""
    order = [sys.executable, "-c", TRAIN, json.dumps(ENSEMBLE), *map(str, folders)]
    done = subprocess.run(order, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_a_damaged_compile_cache(tmp_path, injecting, repeat):
    whole = tmp_path / "whole"
    (expected,) = trained(whole)
    chance, copies = random.Random(0), [tmp_path / f"copy{n}" for n in range(max(repeat, 2))]
    for number, copy in enumerate(copies):
        shutil.copytree(whole, copy)
        for path in copy.glob("*-cache"):
            content = bytearray(path.read_bytes())
            at = chance.randrange(len(content))
            content[at] ^= 1 << chance.randrange(8)
            path.write_bytes(content[:at] if number % 2 == 0 else content)
    with injecting(
        "a damaged compile cache", group=GROUP, chance=True, recovers="nothing: JAX compiles again"
    ) as fault:
        with fault.injection():
            found = trained(*copies)
        fault.wrong += sum(each != expected for each in found)
        fault.seconds = [fault.seconds[0] / len(copies)] * len(copies)
        fault.message = "JAX's: error reading persistent compilation cache entry"


def test_results_of_another_version(finished, copied, injecting):
    """Of another schema and code: refused by whoever reads it, and computed again when asked."""
    path = copied.path / "results/deep_linear/time_to_learn/main/trajectory.nc"
    mending = "run the command that `verify` prints"
    with (
        injecting("result files of another version", group=GROUP, recovers=mending) as fault,
        fault.injection(),
    ):
        with netCDF4.Dataset(path, "a") as stored:
            stored.setncattr("schema", "1")
        Checksums("of another version", {path.name: file_sha256(path)}).write(checksum_path(path))
        with pytest.raises(UserError, match=r"has schema '1', this version reads") as told:
            read_result(path)
        said = run(copied, "verify", fails=True)
        command, *_ = re.findall("To compute them again: snakemake --cores all (.*)", said)
        run(copied, *command.split())
        fault.wrong += made(copied.path) != made(finished.path)
        fault.message = "has schema '1', this version reads '3' ..."
        there = finished.path / path.relative_to(copied.path)
        assert recorded_fingerprint(path) == recorded_fingerprint(there)
        assert str(path) in str(told.value)
