"""From configuration files to cells: fan-out along sweeps, validation, messages for people.

A configuration holds `experiments: {paper: {experiment: ...}}`. An experiment is a cell whose
`sweep` maps dotted keys to lists of values; it fans out into one cell per combination. Keys that
are joined by commas take their values together.
"""

import itertools
import json
import math
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar

from pydantic import AfterValidator, Field, SkipValidation, ValidationError
from pydantic_core import ErrorDetails

from neuralrace.config.bundled import root
from neuralrace.config.cell import Cell
from neuralrace.config.memory import too_large
from neuralrace.config.yaml import read_mapping
from neuralrace.errors import UserError, did_you_mean, shorten
from neuralrace.extensions.model import ConfigModel
from neuralrace.training.devices import visible_gpus
from neuralrace.training.memory import total_memory

Files = Mapping[str, Mapping[str, Any]]
Key = tuple[str, ...]
M = TypeVar("M", bound=ConfigModel)
NAME = r"[a-z][a-z0-9_]{0,99}"
PATH = rf"{NAME}(\.{NAME})*"
SWEPT = rf"{PATH}( *, *{PATH})*"
MOST = 100_000
"""Cells of a plan, at most."""
MOST_LETTERS = 10**8
"""Letters of the specifications of all cells of an experiment, at most."""
MOST_MESSAGES = 20
"""Mistakes that are told at once, at most."""
COMMAND_LINE = "--config"
"""What messages call values that are given to Snakemake itself, in place of a file."""
LONGEST = 200
"""Letters of a cell's label and of a results folder, at most: file systems have room for 255."""
RESERVED = frozenset({"checkpoints", "figures", "logs", "robustness", "slim", "smoke"})
"""Folders beside those of papers, in results and among figures."""
WORDS = {
    "tuple_type": "expected a list",
    "dict_type": "expected a mapping of keys to values",
    "model_type": "expected a mapping of keys to values",
    "model_attributes_type": "expected a mapping of keys to values",
    "too_short": "expected at least {min_length} item",
    "union_tag_not_found": "expected a mapping with {discriminator}, which says what it is",
    "union_tag_invalid": "has no choice of the name {tag!r}; {meant}there are {expected_tags}",
}
"""What is wrong, by the type of a validation error, where its own message speaks of Python."""


FOLDER = r"^[^{}*?\[\]\x00-\x1f]+$"
"""Names of folders that Snakemake takes for no pattern."""


def _folder(name: str) -> str:
    """A name of a folder, in its shortest form.

    Raises:
        ValueError: it is none that results can go to.
    """
    if not re.fullmatch(FOLDER, name):
        raise ValueError("name a folder, without {}, *, ?, [] or control characters in its name")
    return os.path.normpath(name)


class Settings(ConfigModel):
    """Settings of the whole workflow, beside `experiments`."""

    checkpoint_seconds: Annotated[float, Field(ge=0)] = 300.0
    """Seconds of training between two checkpoints, from which an interrupted training goes on."""
    gpus: Annotated[int, Field(ge=0)] | None = None
    """GPUs of each machine that trains; cells that are faster there ask for one. When absent, those
    of this machine, where jobs run on it; a profile of a cluster has to say."""
    results: Annotated[
        str,
        Field(max_length=LONGEST, json_schema_extra={"pattern": FOLDER}),
        AfterValidator(_folder),
    ] = "results"
    """Folder that results go to. Figures of the default one go to `figures`, those of others to
    `figures` inside it."""
    only: tuple[str, ...] = ()
    """What is planned: papers, experiments `paper/experiment` or cells; everything when empty."""
    memory_mb: Annotated[int, Field(gt=0)] | None = None
    """Megabytes of memory of the machines that train; what cannot fit is refused before anything
    runs. When absent, those of the machine that plans."""


class Plan(Settings):
    """A configuration, fanned out into cells."""

    cells: SkipValidation[dict[str, Cell]]
    """Cells by identifier `paper/experiment/label`."""

    @cached_property
    def gpus_each(self) -> int:
        """GPUs of each machine that trains: as is said, or as this machine has."""
        return len(visible_gpus()) if self.gpus is None else self.gpus


def config_folder() -> Path:
    """The folder with a folder for each paper: `config`, or where it has none, what is bundled.

    Raises:
        UserError: nothing is bundled either.
    """
    own = Path("config")
    return own if any(own.glob("*/experiments.yaml")) else root() / "config"


def paper_files(name: str = "experiments.yaml") -> list[Path]:
    """The files of one name of all papers that have it.

    Raises:
        UserError: no paper is configured, and none bundled.
    """
    return sorted(config_folder().glob(f"*/{name}"))


def read_file(path: Path, after_snakemake: bool = False) -> Mapping[str, Any]:
    """The content of a configuration file.

    Args:
        path: the file.
        after_snakemake: whether Snakemake has read it too; see `neuralrace.config.yaml`.

    Raises:
        UserError: it cannot be read, is no mapping, or asks for code to be run.
    """
    content = read_mapping(path, after_snakemake)
    _mapping(content.get("experiments", {}), ("experiments",), {str(path): content})
    return content


def merge_configs(below: Any, above: Any) -> Any:
    """Two contents as one, merged key by key; anything but a mapping replaces what it is laid over.

    Neither is changed.
    """
    if not (isinstance(below, Mapping) and isinstance(above, Mapping)):
        return above
    return {
        **below,
        **{k: merge_configs(below[k], v) if k in below else v for k, v in above.items()},
    }


def read_plan(config: Mapping[str, Any], files: Files) -> Plan:
    """The validated plan of a merged configuration.

    Everything is told from the specifications, and of small datasets also from their samples:
    nothing is trained, and nothing large allocated.

    Args:
        config: merged content of all configuration files.
        files: content of each file by its name, weakest first; a message names the file whose
            value counted. None where it was not read from files.

    Raises:
        UserError: anything unknown, of the wrong type or out of range; more cells than can be
            planned; a cell that cannot fit into memory, or whose data or initial weights are not
            what theory or metrics require.
    """
    given = {key: value for key, value in config.items() if key != "experiments"}
    settings = _validate(Settings, given, (), files)
    limit = 10**6 * settings.memory_mb if settings.memory_mb else total_memory()
    chosen = _chosen(settings.only)
    cells: dict[str, Cell] = {}
    known: dict[str, None] = {}
    for paper, experiments in _mapping(config.get("experiments"), ("experiments",), files).items():
        refuse_reserved(paper, _told(("experiments", paper), "", files))
        for experiment, raw in _mapping(experiments, ("experiments", paper), files).items():
            where = ("experiments", paper, experiment)
            name = f"{paper}/{experiment}"
            known |= {paper: None, name: None}
            if not chosen(name, part=True):
                continue
            for label, raw_cell, swept in _fan_out(raw, where, files, MOST - len(cells)):
                known[f"{name}/{label}"] = None
                if not chosen(f"{name}/{label}"):
                    continue
                cell = _validate(Cell, raw_cell, where, files, swept)
                try:
                    wrong = too_large(cell, limit)
                except UserError as error:  # gates or pairs that do not fit the domains
                    raise UserError(_told(where, str(error), files)) from error
                if wrong:
                    key, what = wrong
                    raise UserError(_told(_spelt(where, key, swept), what, files))
                if unfit := cell.unfit():
                    raise UserError(_told(where, unfit, files))
                cells[f"{name}/{label}"] = cell
    for name in settings.only:
        if name not in known:
            told = f"{name!r}: no such paper, experiment or cell; {did_you_mean(name, known)}"
            raise UserError(
                _told(("only",), f"{told}`neuralrace list experiments` lists them", files)
            )
    return Plan(**dict(settings), cells=cells)


def refuse_reserved(paper: str, where: str = "") -> None:
    """Refuses a name of a paper that folders of the workflow have.

    Args:
        paper: the name.
        where: what the message begins with.

    Raises:
        UserError: it is taken.
    """
    if paper in RESERVED:
        raise UserError(
            f"{where}{paper!r}: is no name for a paper, as the workflow has a folder of that name "
            "beside those of papers; use another"
        )


def _chosen(only: Collection[str]) -> Callable[..., bool]:
    """Tells of a name whether what has it is asked for, or in part: something inside it."""
    asked = frozenset(only)
    around = frozenset(folder for name in only for folder in _folders(name))

    def chosen(name: str, part: bool = False) -> bool:
        return not asked or not asked.isdisjoint(_folders(name)) or (part and name in around)

    return chosen


def _folders(name: str) -> Iterable[str]:
    """A name and those of what it is in: `paper`, `paper/experiment` and so on."""
    return itertools.accumulate(name.split("/"), "{}/{}".format)


def _fan_out(
    raw: Any, where: Key, files: Files, most: int
) -> Iterator[tuple[str, dict[str, Any], set[Key]]]:
    """Label, raw cell and swept key paths of each cell of one experiment, `most` of them."""
    experiment = dict(_mapping(raw, where, files))
    sweep = _mapping(experiment.pop("sweep", {}), (*where, "sweep"), files, SWEPT)
    for key, values in sweep.items():
        if not isinstance(values, list) or not values:
            _refuse((*where, "sweep", key), values, "a list with at least one value", files)
    count = math.prod(map(len, sweep.values()))
    if count > most:
        _refuse((*where, "sweep"), f"{count} cells", f"at most {MOST} in a configuration", files)
    letters = _letters(experiment) + sum(max(map(_letters, v)) for v in sweep.values())
    if count * letters > MOST_LETTERS:
        what = f"{count} cells of {letters} letters"
        _refuse((*where, "sweep"), what, f"at most {MOST_LETTERS} letters in all", files)
    axes = [list(_axis(key, values, where, files)) for key, values in sweep.items()]
    paths = sorted(path for axis in axes for path, _ in axis[0])
    for one, other in itertools.pairwise(paths):  # what is inside a key comes next to it
        if other[: len(one)] == one:
            _refuse((*where, "sweep"), ".".join(other), f"no key inside {'.'.join(one)}", files)
    seen: set[str] = set()
    for points in itertools.product(*axes):
        cell = dict(experiment)
        chosen = list(itertools.chain(*points))
        for path, value in chosen:
            node: Any = cell
            for key in path[:-1]:
                inside = node.get(key, {})
                if not isinstance(inside, dict):
                    _refuse((*where, "sweep", ".".join(path)), inside, f"{key} as a mapping", files)
                node[key] = dict(inside)  # a copy, as other cells have it too
                node = node[key]
            node[path[-1]] = value
        label = "_".join(f"{path[-1]}-{_slug(value)}" for path, value in chosen)
        if len(label) > LONGEST:
            allowed = f"at most {LONGEST} letters, not {len(label)}; sweep fewer or shorter values"
            _refuse((*where, "sweep"), label, allowed, files)
        # Snakemake takes a name that ends in twenty equal parts for a rule that feeds itself
        label = re.sub(r"(.+)\1{19}$", r"\g<0>_", label)
        if label in seen:
            _refuse((*where, "sweep"), label, "values with distinct names", files)
        seen.add(label)
        yield label or "main", cell, set(paths)


def _axis(key: str, values: list[Any], where: Key, files: Files) -> Iterator[list[tuple[Key, Any]]]:
    """Key paths with their values at each point of a swept axis."""
    paths = [tuple(name.strip().split(".")) for name in key.split(",")]
    for point in values if len(paths) > 1 else [[value] for value in values]:
        if not isinstance(point, list) or len(point) != len(paths):
            _refuse((*where, "sweep", key), point, f"lists of {len(paths)} values", files)
        yield list(zip(paths, point, strict=True))


def _letters(value: Any) -> int:
    """How long a value is as JSON."""
    return len(json.dumps(value, default=str, skipkeys=True))


def _slug(value: Any) -> str:
    """A swept value as part of a path."""
    if isinstance(value, dict):
        return "-".join(_slug(part) for part in value.values())
    if isinstance(value, list):
        return "x".join(_slug(part) for part in value) or "none"
    return re.sub(r"[^a-z0-9._]+", "-", str(value).lower())


def _mapping(value: Any, where: Key, files: Files, allowed: str = NAME) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        _refuse(where, value, "a mapping of keys to values", files)
    for key in value:
        if not re.fullmatch(allowed, str(key)):
            _refuse(
                where, key, "keys of lower-case letters, digits and underscores, at most 100", files
            )
    return value


def _validate(
    model: type[M], raw: Any, where: Key, files: Files, swept: Set[Key] = frozenset()
) -> M:
    """`raw` as a model; JSON mode, so that YAML lists are welcome where tuples are kept."""
    try:
        # dates and the like, which other workflows may hand over, become text
        return model.model_validate_json(json.dumps(raw, default=str))
    except TypeError as error:
        raise UserError(_told(where, f"{error}: put keys into quotes", files)) from error
    except ValidationError as error:
        mistakes = error.errors()
        inside = {
            mistake["loc"][:depth]
            for mistake in mistakes
            if mistake["type"] != "too_short"
            for depth in range(len(mistake["loc"]) + 1)
        }
        # a list whose items are wrong is not too short for that
        own = [m for m in mistakes if m["type"] != "too_short" or m["loc"] not in inside]
        told = [_message(mistake, raw, where, files, swept) for mistake in own[:MOST_MESSAGES]]
        more = len(own) - len(told)
        raise UserError("\n".join(told + [f"and {more} more mistakes"] * (more > 0))) from None


def _message(error: ErrorDetails, raw: Any, where: Key, files: Files, swept: Set[Key]) -> str:
    """One validation error as: file: key: value; what is allowed."""
    path: list[str] = []
    node: Any = raw
    tagged: Any = None
    for part in error["loc"]:
        if isinstance(node, Mapping) and node is not tagged and node.get("name") == part:
            tagged = node  # the tag of a union comes before a key, which may be called alike
            continue
        path.append(str(part))
        try:
            node = node[part]
        except (KeyError, IndexError, TypeError):
            node = None
    key = tuple(path)
    full = _spelt(where, key, swept)
    reason = shorten(error["msg"].removeprefix("Value error, "))
    if error["type"] in WORDS:
        said = error.get("ctx", {})
        said["tag"] = shorten(str(said.get("tag")), 80)
        known = said.get("expected_tags", "").replace("'", "").split(", ")
        reason = WORDS[error["type"]].format(**said, meant=did_you_mean(said["tag"], known))
    value = error["input"]
    if error["type"] == "missing":
        return f"{file_of(full[:-1], files)}: {_dotted(full)}: is required and missing"
    if error["type"] == "extra_forbidden":
        reason = "unknown key; config/README.md lists the known ones"
    file = file_of(full, files)
    if file == COMMAND_LINE and isinstance(value, str) and len(full) > 1:
        reason += f"; Snakemake reads what is nested in {file} as text: write a file, settings=FILE"
    shown = "" if isinstance(value, dict) else f" {shorten(repr(value), 80)}:"
    return f"{file}: {_dotted(full) or 'top level'}:{shown} {reason}"


def _spelt(where: Key, key: Key, swept: Set[Key]) -> Key:
    """Where a key of a cell stands in the configuration: inside `sweep`, if it is swept."""
    sweep = max((p for p in swept if key[: len(p)] == p), key=len, default=())
    inside = ("sweep", ".".join(sweep)) if sweep else ()
    return (*where, *inside, *key[len(sweep) :])


def _refuse(where: Key, value: Any, allowed: str, files: Files) -> NoReturn:
    raise UserError(_told(where, f"{shorten(repr(value), 80)}: expected {allowed}", files))


def _told(where: Key, what: str, files: Files) -> str:
    return f"{file_of(where, files)}: {_dotted(where)}: {what}"


def _dotted(key: Key) -> str:
    return shorten(".".join(key))


def file_of(path: Key, files: Files) -> str:
    """The strongest file that holds the longest part of a key path."""
    best, depth = next(iter(files), "configuration"), 0
    for name, content in files.items():
        node: Any = content
        found = 0
        for key in path:
            if not isinstance(node, Mapping) or key not in node:
                break
            node, found = node[key], found + 1
        if found >= depth:
            best, depth = name, found
    return best
