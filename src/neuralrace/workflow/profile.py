"""Check of Snakemake profiles before a run starts.

    python -m neuralrace.workflow.profile profiles/slurm

Without this check, Snakemake calls a missing plug-in an invalid choice, and a cluster refuses jobs
one by one. A profile is read here as data, before Snakemake reads it.
"""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from neuralrace.config.yaml import read_mapping
from neuralrace.errors import UserError

FILE = "config.yaml"
PROFILE_NAMES = re.compile(r"(profile|config)(\.v\d+\+)?.yaml")
"""Files of a folder that Snakemake accepts as its profile; of several, it chooses by version."""
LOCAL = ("local", "dryrun", "touch")
"""Executors that run jobs on this machine, or none."""
REQUIRED = {"slurm": ("slurm_partition", "slurm_account")}
"""Keys of `default-resources` that only the user knows, by executor."""


@dataclass(frozen=True)
class Profile:
    """The keys of a profile that decide where jobs run.

    Attributes:
        file: path of the profile, for messages.
        executor: name of the executor that runs the jobs.
        resources: names that have a value in `default-resources`.
        config: whether the profile sets values of the configuration itself.
        files: content of the configuration files that it names, by name.
    """

    file: str
    executor: str
    resources: frozenset[str]
    config: bool
    files: dict[str, Mapping[str, Any]]


def read(path: Path) -> Profile:
    """The profile in a folder, or in a file.

    Raises:
        UserError: there is no profile, or several; it is no mapping, or runs code.
    """
    candidates = [path] if path.is_file() else list(path.glob("*"))
    files = [each for each in candidates if path.is_file() or PROFILE_NAMES.fullmatch(each.name)]
    if not files:
        known = sorted(str(each.parent) for each in path.parent.glob(f"*/{FILE}"))
        remedy = f"there are {', '.join(known)}" if known else ""
        raise UserError(f"is no profile, as it has no {FILE}", file=path, remedy=remedy)
    if len(files) > 1:
        names = " and ".join(sorted(each.name for each in files))
        raise UserError(
            f"has {names}, and Snakemake uses one of them", file=path, remedy="leave one"
        )
    (file,) = files
    content = read_mapping(file)
    named = content.get("configfile", content.get("configfiles"))
    if isinstance(named, str):  # Snakemake looks for a single file beside the profile first
        named = [file.parent / named if (file.parent / named).exists() else named]
    return Profile(
        file=str(file),
        executor=str(content.get("executor", "local")),
        resources=frozenset(_names(content.get("default-resources"))),
        config="config" in content,
        files={str(each): read_mapping(Path(each)) for each in named or ()},
    )


def check(profile: Profile) -> None:
    """Refuses a profile that lacks a setting of its executor.

    Raises:
        UserError: the executor is not installed, or its partition, account or number of GPUs is
            not set.
    """
    file, name = profile.file, profile.executor
    remote = name not in LOCAL
    if remote and find_spec(f"snakemake_executor_plugin_{name.replace('-', '_')}") is None:
        raise UserError(
            "its plug-in is not installed",
            file=file,
            key="executor",
            value=name,
            remedy=f"`pip install snakemake-executor-plugin-{name}` into the environment of "
            f"{sys.executable}",
        )
    absent = [key for key in REQUIRED.get(name, ()) if key not in profile.resources]
    if absent:
        raise UserError(
            f"{' and '.join(absent)} not set",
            file=file,
            key="default-resources",
            remedy="remove the # before the line and write yours, or '' for a cluster without one",
        )
    if profile.config:
        raise UserError(
            "Snakemake ignores it as soon as --config sets any value",
            file=file,
            key="config",
            remedy="write these keys into a file beside the profile, and its name after configfile",
        )
    if remote and not any("gpus" in content for content in profile.files.values()):
        raise UserError(
            "the number of GPUs of a node (gpus) is not set, and this machine cannot know it",
            file=file,
            key="configfile",
            remedy="name a file there with gpus in it; gpus: 0 for processors alone",
        )


def _names(content: object) -> Iterator[str]:
    """Names that have a value, in a mapping or in a list of `name=value`."""
    if isinstance(content, Mapping):
        yield from (str(name) for name, value in content.items() if value is not None)
    elif isinstance(content, list):
        yield from (str(entry).partition("=")[0] for entry in content)


def main(arguments: Sequence[str]) -> int:
    """Checks a profile; returns the exit status."""
    try:
        check(read(Path(arguments[0])))
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
