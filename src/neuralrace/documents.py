"""Files that people write: YAML, read as data alone."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from neuralrace.errors import UserError

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""In C where there is one: every plan reads thousands of lines."""
MOST_VALUES, MOST_LETTERS, MOST_DEPTH = 200_000, 3_000, 64
"""Values of a file at most, each alias counted as all that it stands for, letters of each of them,
and levels of nesting: a few lines of aliases of aliases can stand for more than any memory holds.
"""


def read_yaml(path: Path) -> Any:
    """What a YAML file holds.

    Raises:
        UserError: it cannot be read, is no YAML, has a key twice in one mapping, or is too large or
            too deeply nested to be meant.
    """
    text = ""
    try:
        text = path.read_text(encoding="utf-8")
        _check(text)
        return LOADER(text).get_single_data()
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
    except yaml.YAMLError as error:
        what = f"{error}; save it as UTF-8 text"
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    except (ValueError, TypeError) as error:  # no date of any calendar; a list as a key
        what = str(error)
    raise UserError(f"{path}: cannot be read as YAML: {what}")


@dataclass
class _Open:
    """A list or mapping whose end has not been read."""

    mapping: bool
    anchor: str | None
    before: int
    """Values that were read before it."""
    entries: int = 0
    keys: set[str] = field(default_factory=set)


def _check(text: str) -> None:
    """Refuses what cannot be meant, without building any of it.

    Raises:
        UserError: too many values, letters or levels, an alias inside of what it stands for, or a
            key that stands twice in a mapping, of which YAML would take the last.
    """
    values, sizes, inside = 0, dict[str, int](), list[_Open]()
    for event in yaml.parse(text, LOADER):
        if isinstance(event, yaml.CollectionEndEvent):
            ended = inside.pop()
            if ended.anchor:
                sizes[ended.anchor] = values - ended.before
            continue
        if not isinstance(event, yaml.NodeEvent):
            continue
        line = f"line {event.start_mark.line + 1}"
        above = inside[-1] if inside else None
        if above:
            if isinstance(event, yaml.ScalarEvent) and above.mapping and above.entries % 2 == 0:
                if event.value in above.keys and event.value != "<<":
                    raise UserError(f"{line}: {event.value!r}: stands there twice; leave one out")
                above.keys.add(event.value)
            above.entries += 1
        if isinstance(event, yaml.AliasEvent):
            if any(each.anchor == event.anchor for each in inside):
                told = f"*{event.anchor}: an alias (*name) inside of what it stands for"
                raise UserError(f"{line}: {told}")
            values += sizes.get(event.anchor, 0)
        else:
            values += 1
        if isinstance(event, yaml.CollectionStartEvent):
            mapping = isinstance(event, yaml.MappingStartEvent)
            inside.append(_Open(mapping, event.anchor, values - 1))
        elif isinstance(event, yaml.ScalarEvent):
            sizes[event.anchor or ""] = 1
            if len(event.value) > MOST_LETTERS:
                raise UserError(f"{line}: a value of more than {MOST_LETTERS} letters; shorten it")
        if len(inside) > MOST_DEPTH:
            raise UserError(f"{line}: nested too deeply, in more than {MOST_DEPTH} levels")
        if values > MOST_VALUES:
            raise UserError(
                f"{line}: more than {MOST_VALUES} values, with all that aliases (*name) stand for; "
                "put data into a file of their own"
            )
