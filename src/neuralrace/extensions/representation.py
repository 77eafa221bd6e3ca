"""Short representations: shapes in place of the numbers of arrays and tables."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

LONGEST = 80
"""Characters of the longest line, and of the longest list that is shown in full."""


def short_repr(self: Any) -> str:
    """The `repr` of a dataclass with shapes in place of arrays, in several lines if it is long.

    A dataclass takes it by `__repr__ = short_repr` in its body.
    """
    parts = _fields(self, inside=True)
    name = type(self).__name__
    line = f"{name}({', '.join(parts)})"
    if len(line) <= LONGEST:
        return line
    return "\n".join([f"{name}(", *(f"  {part}," for part in parts), ")"])


class Shown(str):
    """Text that is its own `repr`."""

    def __repr__(self) -> str:
        return str(self)


def shown(value: Any, inside: bool = True) -> Shown:
    """A value in short: arrays and long lists as their shapes.

    Args:
        value: any value.
        inside: whether to show the fields of dataclasses, in which further ones are only named.
    """
    if getattr(value, "shape", ()) and hasattr(value, "dtype"):
        return Shown(f"<{value.dtype} {tuple(value.shape)}>")
    if is_dataclass(value) and not isinstance(value, type):
        parts = _fields(value, inside=False) if inside else ["..."]
        return Shown(f"{type(value).__name__}({', '.join(parts)})")
    if isinstance(value, Mapping):
        items = (f"{key!r}: {shown(each, inside)}" for key, each in value.items())
        return Shown(f"{{{', '.join(items)}}}")
    if type(value) in (list, tuple):
        return _shown_list(value, inside)
    return Shown(repr(value))


def _fields(value: Any, inside: bool) -> list[str]:
    named = ((each.name, getattr(value, each.name)) for each in fields(value) if each.repr)
    return [f"{name}={shown(each, inside)}" for name, each in named]


def _shown_list(values: Any, inside: bool) -> Shown:
    """A short list in full, or else its length and those of the lists that it begins with."""
    sizes, first = [len(values)], values[0] if values else None
    while isinstance(first, list | tuple) and first:
        sizes, first = [*sizes, len(first)], first[0]
    entries = [shown(each, inside) for each in values[:LONGEST]]
    comma = "," if isinstance(values, tuple) and len(values) == 1 else ""
    text = f"{', '.join(entries)}{comma}"
    if len(values) <= LONGEST and len(text) <= LONGEST:
        return Shown(f"[{text}]" if isinstance(values, list) else f"({text})")
    return Shown(f"<{type(values).__name__} {tuple(sizes)}>")
