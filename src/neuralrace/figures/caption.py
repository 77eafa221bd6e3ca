"""The caption of a figure: what its module says, and what was run, from the specification."""

import ast
import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

from neuralrace.config.cell import Cell, flatten_keys
from neuralrace.extensions.registry import FIGURES, Entry
from neuralrace.extensions.source import syntax
from neuralrace.figures import matching_cells

PANEL = re.compile(r"panel_([a-z])")
PARTS = ("dataset", "network", "init", "training")
"""Of a specification, those that a caption tells."""
MOST = 6
"""Values that are told one by one."""


def title(entry: Entry) -> str:
    """What a figure is about: the first line of its module."""
    return entry.text.partition("\n")[0].removesuffix(".")


def caption(figure: str, cells: Mapping[str, Cell]) -> str:
    """The caption of a figure `paper/figure`, as reStructuredText.

    Args:
        figure: a key of `FIGURES`.
        cells: all cells that there are, by `paper/experiment/label`; of those that it shows their
            specification is told, and the digest of it in full.
    """
    entry = FIGURES[figure]
    _, *body = entry.text.split("\n\n")
    cf = entry.declaration.cf
    shows = [
        f"**{letter}** (cf. {cf[letter]}): {text}" if letter in cf else f"**{letter}**: {text}"
        for letter, text in panels(entry).items()
    ]
    shown = {name: cells[name] for name in matching_cells(figure, cells)}
    digest = sha256("\n".join(cell.canonical() for cell in shown.values()).encode()).hexdigest()
    told = [*body, *shows, "What was run:", *_runs(shown), f"Digest of this: ``{digest[:16]}``."]
    return "\n\n".join(told) + "\n"


def panels(entry: Entry) -> dict[str, str]:
    """Docstring of each panel without what it raises, on one line."""
    found = {}
    for node in syntax(entry.path).body:
        if isinstance(node, ast.FunctionDef) and (letter := PANEL.fullmatch(node.name)):
            text = (ast.get_docstring(node) or "").partition("\n\nRaises:")[0]
            found[letter[1]] = " ".join(text.split())
    return dict(sorted(found.items()))


def _runs(cells: Mapping[str, Cell]) -> list[str]:
    """A line for each experiment: what its cells share and what is swept."""
    experiments: dict[str, list[Cell]] = {}
    for name, cell in cells.items():
        experiments.setdefault(name.rpartition("/")[0], []).append(cell)
    return [f"* ``{name}``: {_run(listed)}." for name, listed in experiments.items()]


def _run(cells: list[Cell]) -> str:
    dumped = [cell.model_dump(mode="json", exclude_defaults=True) for cell in cells]
    parts = [_part(part, [flatten_keys(each.get(part, {})) for each in dumped]) for part in PARTS]
    scales = _values(scale for cell in cells for scale in cell.init_scales)
    seeds = _values(cell.seeds for cell in cells)
    return "; ".join([*filter(None, parts), f"init scales {scales}", f"seeds {seeds}"])


def _part(part: str, entries: list[dict[str, Any]]) -> str:
    keys = dict.fromkeys(key for each in entries for key in each)
    told = [
        f"{key.replace('.name', '').replace('.', ' ').replace('_', ' ')} "
        f"{_values(each[key] for each in entries if key in each)}"
        for key in keys
        if key != "name"
    ]
    names = _values(each["name"] for each in entries if "name" in each)
    head = f"{part} {names}".strip()
    return f"{head} ({', '.join(told)})" if told else head if names else ""


def _values(values: Iterable[Any]) -> str:
    """Values one by one, or the first and the last of many; lists in brackets."""
    listed = list(dict.fromkeys(map(_value, values)))
    if len(listed) > MOST:
        return f"{listed[0]} to {listed[-1]} ({len(listed)} values)"
    return ", ".join(listed)


def _value(value: Any) -> str:
    if not isinstance(value, list):
        return f"{value:g}" if isinstance(value, float) else str(value)
    if len(value) > MOST or any(isinstance(each, list | dict) for each in value):
        return f"[{len(value)} given]"
    return f"[{', '.join(map(_value, value))}]"
