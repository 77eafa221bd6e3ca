"""YAML files, read as plain data.

Plain values follow the core schema of YAML 1.2 (section 10.3.2 of its specification): `no` is text,
`1e1` a number, `010` ten and `1:30` text. Merge keys (`<<`) work too.
"""

import os
import re
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import yaml

from neuralrace.errors import UserError, shorten

# A plan reads thousands of lines. All files of `config/` take 0.24 s with the checks below, 0.13 s
# with libyaml alone, and 1.4 s in Python. ruamel.yaml on libyaml takes 0.3 s, but crashes on deep
# nesting and accepts aliases of aliases.
LIBYAML: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
MOST_BYTES, MOST_VALUES, MOST_CHARACTERS, MOST_LEVELS = 10_000_000, 200_000, 3_000, 64
"""Limits: bytes of a file, values in it, characters of a value, and levels of nesting.

An alias counts as all values that it stands for: a few lines of aliases of aliases can stand for
more than any memory holds.
"""
CHARACTERS_PER_VALUE = 40
"""A text counts as one more value for each of so many characters."""
YTE = "__use_yte__"
"""Key that makes Snakemake's own loader run texts of a file as Python code."""
TAG = "tag:yaml.org,2002:"


class Loader(LIBYAML):  # pyright: ignore[reportGeneralTypeIssues]
    """Loader for the core schema of YAML 1.2, in place of PyYAML's schema of YAML 1.1.

    Keys must be text, and other tags are refused.
    """

    yaml_implicit_resolvers: ClassVar[dict] = {}
    yaml_constructors: ClassVar[dict] = {
        tag: LIBYAML.yaml_constructors[tag]
        for tag in (None, *(TAG + name for name in ("str", "seq", "map")))
    }

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Applies merge keys, and refuses keys that are not text."""
        super().flatten_mapping(node)
        for key, _ in node.value:
            if key.tag != f"{TAG}str":
                name = (
                    shorten(repr(key.value), 80) if isinstance(key, yaml.ScalarNode) else "a list"
                )
                problem = f"{name}: a key is text; put it into quotes"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)


def _add_type(name: str, pattern: str, first: str, convert: Callable[[str], Any]) -> None:
    """Adds a type of plain values, by a pattern and the characters that a value may begin with."""
    matcher = re.compile(rf"(?:{pattern})\Z")

    def construct(loader: Any, node: yaml.Node) -> Any:
        text = loader.construct_scalar(node)
        if not matcher.match(text):  # possible after an explicit tag
            raise ValueError(f"{shorten(repr(text), 80)}: is no {name}, as its tag says")
        return convert(text)

    Loader.add_implicit_resolver(TAG + name, matcher, [*first, ""])
    Loader.add_constructor(TAG + name, construct)


_add_type("null", r"~|null|Null|NULL|", "~nN", lambda _: None)
_add_type("bool", r"true|True|TRUE|false|False|FALSE", "tTfF", lambda text: text.lower() == "true")
# before floats, as the pattern of floats matches integers too
_add_type(
    "int",
    r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+",
    "-+0123456789",
    lambda text: int(text, {"0o": 8, "0x": 16}.get(text[:2], 10)),
)
_add_type(
    "float",
    r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"
    r"|[-+]?(\.inf|\.Inf|\.INF)|\.nan|\.NaN|\.NAN",
    "-+.0123456789",
    lambda text: float(re.sub(r"\.(?=[a-zA-Z])", "", text)),
)
Loader.add_implicit_resolver(f"{TAG}merge", re.compile("<<\\Z"), ["<"])


def read_yaml(path: Path) -> Any:
    """The content of a YAML file.

    Raises:
        UserError: the file cannot be read, is no valid YAML, has a key twice in one mapping or a
            key that is not text, or exceeds a limit of size or nesting.
    """
    text = ""
    try:
        text = _text(path)
        _check(text)
        return Loader(text).get_single_data()
    except UserError as error:
        raise error.replaced(file=str(path)) from None
    except FileNotFoundError:
        raise UserError("there is no such file", file=path, remedy="check its name") from None
    except IsADirectoryError:
        raise UserError("is a folder", file=path, remedy="name a file in it") from None
    except OSError as error:
        problem, remedy = str(error.strerror), "check its name and permissions"
    except UnicodeDecodeError as error:
        problem, remedy = f"{error.reason} in byte {error.start}", "save it as UTF-8 text"
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line, column = (mark.line, mark.column) if mark else (0, 0)
        problem = f"line {line + 1}, column {column + 1}: {error.problem}"
        tabs = "\t" in "".join(text.splitlines()[line : line + 1])
        remedy = "indent by spaces, not by tabs" if tabs else ""
    except yaml.reader.ReaderError as error:
        problem = f"character {error.position + 1}: {error.reason}"
        remedy = "save it as UTF-8 text"
    except ValueError as error:  # a null character in the file's name; a tag that does not fit
        problem, remedy = str(error), ""
    raise UserError(f"cannot be read as YAML: {problem}", file=path, remedy=remedy)


def read_mapping(path: Path, after_snakemake: bool = False) -> Mapping[str, Any]:
    """The content of a YAML file that is a mapping at the top.

    Args:
        path: the file.
        after_snakemake: whether Snakemake has read the file before, as it does with `--configfile`.

    Raises:
        UserError: the file is no mapping, or asks to run code; see also `read_yaml`.
    """
    content = read_yaml(path)
    if content is None:
        remedy = "begin with `experiments:`, as the file that `neuralrace new mine` writes"
        raise UserError("is empty", file=path, remedy=remedy)
    if not isinstance(content, Mapping):
        raise UserError("expected a mapping of keys to values at the top", file=path)
    if YTE in content:
        warning = (
            ". Snakemake has run them already, before the workflow saw the file: give files of "
            "others by --config settings=FILE, which runs nothing"
        )
        raise UserError(
            "a configuration is data and runs no code",
            file=path,
            key=YTE,
            remedy="leave the key out, and write out what its expressions stand for"
            + warning * after_snakemake,
        )
    return content


def _text(path: Path) -> str:
    path = Path(os.path.expanduser(path))
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # opening a folder raises an OSError
        raise UserError("is a pipe or a device, which may never end", remedy="give a file")
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise UserError(
            f"more than {MOST_BYTES // 10**6} MB", remedy="put data into a file of their own"
        )
    return content.decode("utf-8")


@dataclass
class _Node:
    """A value that an anchor (&name) may name: its size, its levels, and the text of a scalar."""

    values: int
    levels: int = 0
    text: str | None = None


@dataclass
class _Collection:
    """A list or mapping whose end has not been read."""

    is_mapping: bool
    anchor: str | None
    values_before: int
    levels: int = 1
    entries: int = 0
    keys: set[str] = field(default_factory=set)


def _check(text: str) -> None:
    """Refuses a text that exceeds a limit, without building any of its values.

    Raises:
        UserError: too many values, characters or levels; an alias inside its own anchor; or a key
            that a mapping has twice, where YAML would use the last one.
    """
    values, anchors, open_ = 0, dict[str, _Node](), list[_Collection]()
    for event in yaml.parse(text, LIBYAML):
        if isinstance(event, yaml.CollectionEndEvent):
            ended = open_.pop()
            if open_:
                open_[-1].levels = max(open_[-1].levels, 1 + ended.levels)
            if ended.anchor:
                anchors[ended.anchor] = _Node(values - ended.values_before, ended.levels)
            continue
        if not isinstance(event, yaml.NodeEvent):
            continue
        line = f"line {event.start_mark.line + 1}"
        if isinstance(event, yaml.ScalarEvent):
            node = _Node(1 + len(event.value) // CHARACTERS_PER_VALUE, text=event.value)
            if event.anchor:
                anchors[event.anchor] = node
            if len(event.value) > MOST_CHARACTERS:
                raise UserError(
                    f"a value of more than {MOST_CHARACTERS} characters",
                    key=line,
                    remedy="shorten it",
                )
        elif isinstance(event, yaml.AliasEvent):
            if any(collection.anchor == event.anchor for collection in open_):
                problem = f"*{event.anchor}: an alias (*name) inside its own anchor"
                raise UserError(problem, key=line)
            node = anchors.get(event.anchor, _Node(0))  # the loader refuses an unknown anchor
        else:
            node = _Node(1, levels=1)
        if open_:
            parent = open_[-1]
            parent.levels = max(parent.levels, 1 + node.levels)
            if parent.is_mapping and parent.entries % 2 == 0 and node.text not in (None, "<<"):
                if node.text in parent.keys:
                    raise UserError(
                        "is there twice", key=line, value=node.text, remedy="leave one out"
                    )
                parent.keys.add(node.text)
            parent.entries += 1
        if len(open_) + node.levels > MOST_LEVELS:
            raise UserError(f"nested too deeply, in more than {MOST_LEVELS} levels", key=line)
        if isinstance(event, yaml.CollectionStartEvent):
            is_mapping = isinstance(event, yaml.MappingStartEvent)
            open_.append(_Collection(is_mapping, event.anchor, values))
        values += node.values
        if values > MOST_VALUES:
            raise UserError(
                f"more than {MOST_VALUES} values, with all that aliases (*name) stand for",
                key=line,
                remedy="put data into a file of their own",
            )
