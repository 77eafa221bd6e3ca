"""Configuration loading: from files to a validated plan, or to messages about mistakes.

A configuration holds `experiments: {paper: {experiment: ...}}`. An experiment is a cell with a
`sweep`; see `neuralrace.config.sweep`.
"""

import itertools
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from neuralrace.config.bundled import root
from neuralrace.config.cell import APPLICABLE, Cell, Ensemble
from neuralrace.config.location import COMMAND_LINE, Files, Location
from neuralrace.config.memory import too_large
from neuralrace.config.settings import Plan, Settings, refuse_reserved
from neuralrace.config.sweep import MOST_CELLS, SweptCell, expand_sweep, names
from neuralrace.config.yaml import read_mapping
from neuralrace.errors import UserError, did_you_mean, shorten
from neuralrace.extensions.model import ConfigModel, problem_of
from neuralrace.training.loss import MSE
from neuralrace.training.memory import total_memory

M = TypeVar("M", bound=ConfigModel)
MOST_MESSAGES = 20
"""Most mistakes in one message."""


def config_folder() -> Path:
    """The folder that has a folder for each paper: `config`, or the bundled one.

    Raises:
        UserError: `config` has no paper, and no configuration is bundled.
    """
    own = Path("config")
    return own if any(own.glob("*/experiments.yaml")) else root() / "config"


def paper_files(name: str = "experiments.yaml") -> list[Path]:
    """The files of this name of all papers that have one.

    Raises:
        UserError: no paper is configured, and no configuration is bundled.
    """
    return sorted(config_folder().glob(f"*/{name}"))


def read_file(path: Path, after_snakemake: bool = False) -> Mapping[str, Any]:
    """The content of a configuration file.

    Args:
        path: the file.
        after_snakemake: whether Snakemake has read it too; see `neuralrace.config.yaml`.

    Raises:
        UserError: the file cannot be read, is no mapping, or asks to run code.
    """
    content = read_mapping(path, after_snakemake)
    names(content.get("experiments", {}), Location({str(path): content}, ("experiments",)))
    return content


def merge_configs(below: Any, above: Any) -> Any:
    """Two contents, merged key by key into a new one; the value `above` wins.

    Lists are replaced, as all values but mappings are.
    """
    if not (isinstance(below, Mapping) and isinstance(above, Mapping)):
        return above
    return {
        **below,
        **{k: merge_configs(below[k], v) if k in below else v for k, v in above.items()},
    }


def read_plan(config: Mapping[str, Any], files: Files) -> Plan:
    """The validated plan of a merged configuration.

    Planning reads the specifications, and the samples of small datasets. It trains nothing, and
    allocates little memory.

    Args:
        config: merged content of all configuration files.
        files: content of each file by its name, weakest first; a message names the file whose
            value counted. Empty if the configuration was not read from files.

    Raises:
        UserError: an unknown key, or a value of the wrong type or out of range; too many cells; a
            cell that cannot fit into memory, or whose data or initial weights do not meet the
            requirements of its theory or metrics.
    """
    top = Location(files)
    settings = validate(
        Settings, {key: value for key, value in config.items() if key != "experiments"}, top
    )
    limit = 10**6 * settings.memory_mb if settings.memory_mb else total_memory()
    selected = _selection(settings.only)
    cells: dict[str, Cell] = {}
    known: dict[str, None] = {}
    papers = top.inside("experiments")
    for paper, experiments in names(config.get("experiments"), papers).items():
        in_paper = papers.inside(paper)
        with in_paper.locating():
            refuse_reserved(paper)
        for experiment, raw in names(experiments, in_paper).items():
            name = f"{paper}/{experiment}"
            known |= {paper: None, name: None}
            if not selected(name, part=True):
                continue
            location = in_paper.inside(experiment)
            for swept in expand_sweep(raw, location, MOST_CELLS - len(cells)):
                cell_id = f"{name}/{swept.label}"
                known[cell_id] = None
                if not selected(cell_id):
                    continue
                cell = _cell(swept)
                with swept.location.locating():
                    if problem := too_large(cell, limit) or cell.unfit():
                        raise problem
                cells[cell_id] = cell
    for name in settings.only:
        if name not in known:
            similar = did_you_mean(name, known)
            raise top.located(
                UserError(
                    "no such paper, experiment or cell",
                    key="only",
                    value=name,
                    remedy=f"{similar}`neuralrace list experiments` lists them; name a file of "
                    "your own by --configfile",
                )
            )
    return Plan(**dict(settings), cells=cells)


@cache
def _known_keys(model: type[ConfigModel]) -> frozenset[str]:
    """All keys, dotted: those of an experiment, or those of the whole workflow."""
    from neuralrace.config.manual import config_schema  # a mistake alone has time for it

    schema = config_schema()
    of_cell = schema["$defs"]["Cell"]["properties"]["sweep"]["properties"]
    return frozenset(of_cell if issubclass(model, Cell) else schema["properties"])


def _cell(swept: SweptCell) -> Cell:
    """The validated cell.

    In place of `applicable` it has the solutions that apply, and in place of the loss `mse` squared
    error with its factor.
    """
    raw, location = swept.specification, swept.location
    training = raw.get("training")
    if isinstance(training, Mapping) and training.get("loss") == {"name": MSE}:
        known = {key: value for key, value in raw.items() if key in Ensemble.model_fields}
        known |= {"training": {**training, "loss": {}}, "record": {"every": 1}}
        outputs = validate(Ensemble, known, location).dataset.sizes.outputs
        loss = {"name": "squared_error", "normalisation": 1 / outputs}
        raw = raw | {"training": {**training, "loss": loss}}
    if raw.get("solutions") == APPLICABLE:
        unsolved = {key: raw[key] for key in raw if key not in ("solutions", "metrics")}
        raw = raw | {"solutions": validate(Cell, unsolved, location).applicable_solutions()}
    return validate(Cell, raw, location)


def _selection(only: Collection[str]) -> Callable[..., bool]:
    """A test whether a name is selected or, with `part`, has something selected inside it."""
    selected = frozenset(only)
    around = frozenset(parent for name in only for parent in _with_parents(name))

    def test(name: str, part: bool = False) -> bool:
        return (
            not selected
            or not selected.isdisjoint(_with_parents(name))
            or (part and name in around)
        )

    return test


def _with_parents(name: str) -> Iterable[str]:
    """`paper`, `paper/experiment` and so on, up to the name."""
    return itertools.accumulate(name.split("/"), "{}/{}".format)


def validate(model: type[M], raw: Any, location: Location) -> M:
    """The raw value as a model; in JSON mode, which takes lists for tuples.

    Raises:
        UserError: a mistake in the value; file, key, value and remedy.
    """
    try:
        # dates and the like, which other workflows may hand over, become text
        return model.model_validate_json(json.dumps(raw, default=str))
    except TypeError as error:
        raise location.located(UserError(str(error), remedy="put keys into quotes")) from error
    except ValidationError as error:
        details = error.errors()
        parents = {
            detail["loc"][:depth]
            for detail in details
            if detail["type"] != "too_short"
            for depth in range(len(detail["loc"]) + 1)
        }
        # Pydantic also calls a list too short if its items are wrong
        mistakes = [d for d in details if d["type"] != "too_short" or d["loc"] not in parents]
        errors = [_error(detail, raw, location, model) for detail in mistakes[:MOST_MESSAGES]]
        if len(mistakes) == 1:
            raise errors[0] from None
        more = len(mistakes) - len(errors)
        lines = [*map(str, errors), *[f"and {more} more mistakes"] * (more > 0)]
        # the group keeps keys and values, which `neuralrace.api` turns into arguments
        raise UserError("\n".join(lines)) from ExceptionGroup("mistakes", errors)


def _error(
    detail: ErrorDetails, raw: Any, location: Location, model: type[ConfigModel]
) -> UserError:
    """A validation error with file, key and value."""
    path: list[str] = []
    node: Any = raw
    tagged: Any = None
    for part in detail["loc"]:
        if isinstance(node, Mapping) and node is not tagged and node.get("name") == part:
            tagged = node  # the tag of a union comes before a key, which may have the same name
            continue
        path.append(str(part))
        try:
            node = node[part]
        except (KeyError, IndexError, TypeError):
            node = None
    location = location.inside(*path)
    error = detail.get("ctx", {}).get("error")
    if not isinstance(error, UserError):
        error = UserError(
            shorten(problem_of(detail, _similar(detail, path, model)) + _advice(detail))
        )
    value = detail["input"]
    if not (error.key or error.value or detail["type"] == "missing" or isinstance(value, dict)):
        error = error.replaced(value=value)
    error = location.located(error)
    if error.file == COMMAND_LINE and isinstance(value, str) and len(location.path) > 1:
        advice = f"Snakemake reads what is nested in {COMMAND_LINE} as text: write a file, "
        advice += "settings=FILE"
        error = error.replaced(remedy="; ".join(filter(None, (error.remedy, advice))))
    return error if error.key else error.replaced(key="top level")


def _similar(detail: ErrorDetails, path: Sequence[str], model: type[ConfigModel]) -> str:
    """A question that names what was probably meant by an unknown key or choice; or nothing."""
    context = detail.get("ctx", {})
    if detail["type"] == "extra_forbidden":
        *outer, name = path
        inside = ".".join(part for part in outer if not part.isdigit())
        keys = (key.rpartition(".") for key in _known_keys(model))
        return did_you_mean(name, [last for parent, _, last in keys if parent == inside])
    if detail["type"] == "literal_error":
        return did_you_mean(str(detail["input"]), re.findall(r"'(\w+)'", context["expected"]))
    tags = context.get("expected_tags", "").replace("'", "").split(", ")
    return did_you_mean(shorten(str(context.get("tag")), 80), tags)


def _advice(detail: ErrorDetails) -> str:
    """How to write a value that was probably meant; or nothing."""
    kind, value = detail["type"], detail["input"]
    if kind == "tuple_type" and type(value) in (str, int, float):
        return f"; put it into brackets: [{value!r}]"
    if kind == "dict_type" and isinstance(value, str):  # a name in the place of a choice
        return f", such as {{name: {shorten(value, 80)}}}"
    if kind.startswith("int_") and isinstance(value, float) and value.is_integer():
        return f"; write {int(value)}"
    return ""
