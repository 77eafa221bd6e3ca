"""YAML files, read as data alone.

What a plain value means is said by the core schema of YAML 1.2 (section 10.3.2 of its
specification): `no` is text, `1e1` a number, `010` ten and `1:30` text. Merge keys (`<<`) are
read too.
"""

import re
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import yaml

from neuralrace.errors import UserError, shorten

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""In C where there is one: every plan reads thousands of lines."""
MOST_BYTES, MOST_VALUES, MOST_LETTERS, MOST_DEPTH = 10_000_000, 200_000, 3_000, 64
"""Bytes of a file at most, values in it, letters of each of them, and levels of nesting.

Each alias counts as all that it stands for: a few lines of aliases of aliases can stand for more
than any memory holds.
"""
LETTERS_OF_A_VALUE = 40
"""So many letters of a text count as one value more."""
YTE = "__use_yte__"
"""What makes Snakemake's own loader take texts of a file for Python."""
TAG = "tag:yaml.org,2002:"
INTEGER = r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"
FLOAT = (
    r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"
    r"|[-+]?(\.inf|\.Inf|\.INF)|\.nan|\.NaN|\.NAN"
)


class Loader(LOADER):  # pyright: ignore[reportGeneralTypeIssues]
    """The core schema of YAML 1.2, where PyYAML has that of 1.1; see the module.

    Keys are text, and no other tags are known.
    """

    yaml_implicit_resolvers: ClassVar[dict] = {}
    yaml_constructors: ClassVar[dict] = {
        tag: LOADER.yaml_constructors[tag]
        for tag in (None, *(TAG + name for name in ("str", "seq", "map")))
    }

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Puts merge keys into effect, and refuses keys that are no text."""
        super().flatten_mapping(node)
        for key, _ in node.value:
            if key.tag != f"{TAG}str":
                shown = (
                    shorten(repr(key.value), 80) if isinstance(key, yaml.ScalarNode) else "a list"
                )
                problem = f"{shown}: a key is text; put it into quotes"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)


def _integer(text: str) -> int:
    return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))


def _float(text: str) -> float:
    return float(re.sub(r"\.(?=[a-zA-Z])", "", text))


def _add(name: str, pattern: str, first: str, value: Callable[[str], Any]) -> None:
    """Gives plain texts of a pattern a value, found by their first letters."""
    meant = re.compile(rf"(?:{pattern})\Z")

    def construct(loader: Any, node: yaml.Node) -> Any:
        text = loader.construct_scalar(node)
        if not meant.match(text):  # whoever wrote the tag
            raise ValueError(f"{shorten(repr(text), 80)}: is no {name}, as its tag says")
        return value(text)

    Loader.add_implicit_resolver(TAG + name, meant, [*first, ""])
    Loader.add_constructor(TAG + name, construct)


_add("null", r"~|null|Null|NULL|", "~nN", lambda _: None)
_add("bool", r"true|True|TRUE|false|False|FALSE", "tTfF", lambda text: text.lower() == "true")
_add("int", INTEGER, "-+0123456789", _integer)  # before those that it is one of
_add("float", FLOAT, "-+.0123456789", _float)
Loader.add_implicit_resolver(f"{TAG}merge", re.compile("<<\\Z"), ["<"])


def read_yaml(path: Path) -> Any:
    """What a YAML file holds.

    Raises:
        UserError: it cannot be read, is no YAML, has a key twice in one mapping or one that is no
            text, or is too large or too deeply nested to be meant.
    """
    text = ""
    try:
        text = _text(path)
        _check(text)
        return Loader(text).get_single_data()
    except OSError as error:
        what = f"{error.strerror}; check its name and permissions"
    except UnicodeDecodeError as error:
        what = f"{error.reason} in byte {error.start}; save it as UTF-8 text"
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line, column = (mark.line, mark.column) if mark else (0, 0)
        tabs = "\t" in "".join(text.splitlines()[line : line + 1])
        what = f"line {line + 1}, column {column + 1}: {error.problem}"
        what += "; indent by spaces, not by tabs" if tabs else ""
    except yaml.reader.ReaderError as error:
        what = f"letter {error.position + 1}: {error.reason}; save it as UTF-8 text"
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    except ValueError as error:  # a name that no file can have; a tag (!!int) before what is none
        what = str(error)
    raise UserError(f"{path}: cannot be read as YAML: {what}")


def read_mapping(path: Path, after_snakemake: bool = False) -> Mapping[str, Any]:
    """What a YAML file holds that is a mapping at the top, and asks for no code to be run.

    Args:
        path: the file.
        after_snakemake: whether Snakemake has read it too, as it does with those of --configfile.

    Raises:
        UserError: it is not; see `read_yaml`.
    """
    content = read_yaml(path)
    if not isinstance(content, Mapping):
        raise UserError(f"{path}: expected a mapping of keys to values at the top")
    if YTE in content:
        ran = (
            ". Snakemake has run them already, before the workflow saw the file: give files of "
            "others by --config settings=FILE, which runs nothing"
        )
        raise UserError(
            f"{path}: {YTE}: a configuration is data and runs no code; leave the key out, and "
            f"write out what its expressions stand for{ran if after_snakemake else ''}"
        )
    return content


def _text(path: Path) -> str:
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # of which Python says it itself
        raise UserError("is a pipe or a device, which may never end; give a file")
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise UserError(f"more than {MOST_BYTES // 10**6} MB; put data into a file of their own")
    return content.decode("utf-8")


@dataclass
class _Named:
    """What an anchor (&name) stands for: its size, its levels, and its text where it is one."""

    values: int
    levels: int = 0
    text: str | None = None


@dataclass
class _Open:
    """A list or mapping whose end has not been read."""

    mapping: bool
    anchor: str | None
    before: int
    """Values that were read before it."""
    levels: int = 1
    entries: int = 0
    keys: set[str] = field(default_factory=set)


def _check(text: str) -> None:
    """Refuses what cannot be meant, without building any of it.

    Raises:
        UserError: too many values, letters or levels, an alias inside of what it stands for, or a
            key that stands twice in a mapping, of which YAML would take the last.
    """
    values, named, inside = 0, dict[str, _Named](), list[_Open]()
    for event in yaml.parse(text, LOADER):
        if isinstance(event, yaml.CollectionEndEvent):
            ended = inside.pop()
            if inside:
                inside[-1].levels = max(inside[-1].levels, 1 + ended.levels)
            if ended.anchor:
                named[ended.anchor] = _Named(values - ended.before, ended.levels)
            continue
        if not isinstance(event, yaml.NodeEvent):
            continue
        line = f"line {event.start_mark.line + 1}"
        if isinstance(event, yaml.ScalarEvent):
            node = _Named(1 + len(event.value) // LETTERS_OF_A_VALUE, text=event.value)
            if event.anchor:
                named[event.anchor] = node
            if len(event.value) > MOST_LETTERS:
                raise UserError(f"{line}: a value of more than {MOST_LETTERS} letters; shorten it")
        elif isinstance(event, yaml.AliasEvent):
            if any(each.anchor == event.anchor for each in inside):
                told = f"*{event.anchor}: an alias (*name) inside of what it stands for"
                raise UserError(f"{line}: {told}")
            node = named.get(event.anchor, _Named(0))  # of no anchor: refused by what builds it
        else:
            node = _Named(1, levels=1)
        if inside:
            above = inside[-1]
            above.levels = max(above.levels, 1 + node.levels)
            if above.mapping and above.entries % 2 == 0 and node.text not in (None, "<<"):
                if node.text in above.keys:
                    shown = shorten(repr(node.text), 80)
                    raise UserError(f"{line}: {shown}: stands there twice; leave one out")
                above.keys.add(node.text)
            above.entries += 1
        if len(inside) + node.levels > MOST_DEPTH:
            raise UserError(f"{line}: nested too deeply, in more than {MOST_DEPTH} levels")
        if isinstance(event, yaml.CollectionStartEvent):
            inside.append(_Open(isinstance(event, yaml.MappingStartEvent), event.anchor, values))
        values += node.values
        if values > MOST_VALUES:
            raise UserError(
                f"{line}: more than {MOST_VALUES} values, with all that aliases (*name) stand for; "
                "put data into a file of their own"
            )
