"""Files that people write: YAML, read as data alone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from neuralrace.errors import UserError

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""In C where there is one: every plan reads thousands of lines."""


def read_yaml(path: Path) -> Any:
    """What a YAML file holds.

    Raises:
        UserError: it cannot be read, is no YAML, or has a key twice in one mapping.
    """
    text = ""
    try:
        text = path.read_text(encoding="utf-8")
        loader = LOADER(text)
        node = loader.get_single_node()
        for key, line in _repeated(node):
            raise UserError(f"{path}: line {line}: {key!r}: stands there twice; leave one out")
        return loader.construct_document(node) if node else None
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
    except RecursionError:
        what = "nested too deeply, or an alias (*name) inside of what it stands for"
    except ValueError as error:  # such as a date that no calendar has
        what = str(error)
    raise UserError(f"{path}: cannot be read as YAML: {what}")


def _repeated(node: yaml.Node | None) -> Iterator[tuple[str, int]]:
    """Keys that stand twice in a mapping, of which YAML would take the last, with their lines."""
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen and key.value != "<<":
                    yield key.value, key.start_mark.line + 1
                seen.add(key.value)
            yield from _repeated(value)
    elif isinstance(node, yaml.SequenceNode):
        for each in node.value:
            yield from _repeated(each)
