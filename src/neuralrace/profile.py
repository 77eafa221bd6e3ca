"""Profiles of Snakemake: what one has to say before jobs go to a cluster.

    python -m neuralrace.profile profiles/slurm

Told beforehand, since Snakemake itself calls a plug-in that is absent an invalid choice, and a
scheduler refuses jobs one by one.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml

from neuralrace.documents import read_yaml
from neuralrace.errors import UserError

FILE = "config.yaml"
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
        config: configuration that it lays over files.
    """

    name: str
    executor: str
    resources: frozenset[str]
    config: Mapping[str, Any]

    @property
    def elsewhere(self) -> bool:
        """Whether jobs run on other machines."""
        return self.executor not in HERE


def read(path: Path) -> Profile:
    """The profile in a folder.

    Raises:
        UserError: there is none, or it is no mapping.
    """
    file = path / FILE
    if not file.is_file():
        found = sorted(str(each.parent) for each in path.parent.glob(f"*/{FILE}"))
        known = f"; there are {', '.join(found)}" if found else ""
        raise UserError(f"{path}: is no profile, as it has no {FILE}{known}")
    content = read_yaml(file)
    if not isinstance(content, Mapping):
        raise UserError(f"{file}: expected a mapping of keys to values at the top")
    return Profile(
        name=str(file),
        executor=str(content.get("executor", "local")),
        resources=frozenset(_said(content.get("default-resources"))),
        config=_said(content.get("config")),
    )


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
    if profile.elsewhere and "gpus" not in profile.config:
        raise UserError(
            f"{profile.name}: config: gpus: not said, and this machine cannot know what the nodes "
            "have; write gpus=0 for processors alone"
        )


def _said(content: object) -> dict[str, Any]:
    """A mapping, or a list of `name=value`, as a mapping of what has a value."""
    if isinstance(content, Mapping):
        return {str(name): value for name, value in content.items() if value is not None}
    pairs = [str(entry).partition("=") for entry in content] if isinstance(content, list) else []
    return {name: yaml.safe_load(value) for name, _, value in pairs}


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
