"""Profiles of Snakemake: what one has to say before jobs go to a cluster.

    python -m neuralrace.workflow.profile profiles/slurm

Told beforehand, since Snakemake itself calls a plug-in that is absent an invalid choice, and a
scheduler refuses jobs one by one. A profile is read as data here, before Snakemake reads it.
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
NAMES = re.compile(r"(profile|config)(\.v\d+\+)?.yaml")
"""Files of a folder that Snakemake takes for its profile; of several, it chooses by its version."""
HERE = ("local", "dryrun", "touch")
"""Executors whose jobs run on this machine, or nowhere."""
PLACES = {"slurm": ("slurm_partition", "slurm_account")}
"""What only a person knows of a cluster, among `default-resources`, by executor."""


@dataclass(frozen=True)
class Profile:
    """What a profile says of where jobs run.

    Attributes:
        name: what it is called in messages: its file.
        executor: what runs the jobs.
        resources: names that are said among `default-resources`.
        config: whether it says values of the configuration itself.
        files: content of the configuration files that it names, by name.
    """

    name: str
    executor: str
    resources: frozenset[str]
    config: bool
    files: dict[str, Mapping[str, Any]]

    @property
    def elsewhere(self) -> bool:
        """Whether jobs run on other machines."""
        return self.executor not in HERE


def read(path: Path) -> Profile:
    """The profile in a folder, or in a file.

    Raises:
        UserError: there is none, or there are several; it is no mapping, or asks for code to be
            run.
    """
    files = [path] if path.is_file() else [each for each in path.glob("*") if is_profile(each)]
    if not files:
        found = sorted(str(each.parent) for each in path.parent.glob(f"*/{FILE}"))
        known = f"; there are {', '.join(found)}" if found else ""
        raise UserError(f"{path}: is no profile, as it has no {FILE}{known}")
    if len(files) > 1:
        names = " and ".join(sorted(each.name for each in files))
        raise UserError(f"{path}: has {names}, and Snakemake takes one of them; leave one")
    (file,) = files
    content = read_mapping(file)
    named = content.get("configfile", content.get("configfiles"))
    if isinstance(named, str):  # Snakemake looks beside the profile, for a single one
        named = [file.parent / named if (file.parent / named).exists() else named]
    return Profile(
        name=str(file),
        executor=str(content.get("executor", "local")),
        resources=frozenset(_names(content.get("default-resources"))),
        config="config" in content,
        files={str(each): read_mapping(Path(each)) for each in named or ()},
    )


def is_profile(path: Path) -> bool:
    """Whether Snakemake takes a file for the profile of its folder."""
    return NAMES.fullmatch(path.name) is not None


def check(profile: Profile) -> None:
    """Refuses a profile that does not say all that its executor needs.

    Raises:
        UserError: the executor is not installed, or a person has not said where jobs go, or how
            many GPUs are there.
    """
    name = profile.executor
    if (
        profile.elsewhere
        and find_spec(f"snakemake_executor_plugin_{name.replace('-', '_')}") is None
    ):
        extra = f"neuralrace[{name}]" if name in PLACES else f"snakemake-executor-plugin-{name}"
        raise UserError(
            f"{profile.name}: executor: {name!r}: its plug-in is not installed; "
            f"`pip install '{extra}'` into the environment of {sys.executable}"
        )
    absent = [key for key in PLACES.get(name, ()) if key not in profile.resources]
    if absent:
        raise UserError(
            f"{profile.name}: default-resources: {' and '.join(absent)}: not said; take away the # "
            "before the line and write yours, or '' for a cluster that has none"
        )
    if profile.config:
        raise UserError(
            f"{profile.name}: config: Snakemake leaves it out as soon as --config says anything; "
            "write these keys into a file beside the profile, and its name behind configfile"
        )
    if profile.elsewhere and not any("gpus" in content for content in profile.files.values()):
        raise UserError(
            f"{profile.name}: configfile: gpus: not said, and this machine cannot know what the "
            "nodes have; name a file there, and write gpus: 0 into it for processors alone"
        )


def _names(content: object) -> Iterator[str]:
    """Names of a mapping, or of a list of `name=value`, that have a value."""
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
