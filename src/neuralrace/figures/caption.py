"""The caption of a figure: texts of its module, and what was run, from the specification."""

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
SECTIONS = ("dataset", "network", "init", "training")
"""Sections of a specification that a caption lists."""
MOST_VALUES = 6
"""With more values, a caption lists the first, the last and their number."""


def title(entry: Entry) -> str:
    """The title of a figure: the first line of its module docstring."""
    return entry.text.partition("\n")[0].removesuffix(".")


def caption(figure: str, cells: Mapping[str, Cell], claims: str = "") -> str:
    """The caption of a figure `paper/figure`, as reStructuredText.

    Args:
        figure: a key of `FIGURES`.
        cells: all configured cells, by `paper/experiment/label`; the caption lists the
            specification of those that the figure shows, with its digest.
        claims: fingerprint of the claims, for a figure that shows their verdicts.
    """
    entry = FIGURES[figure]
    _, *body = entry.text.split("\n\n")
    cf = entry.declaration.cf
    panel_texts = [
        f"**{letter}** (cf. {cf[letter]}): {text}" if letter in cf else f"**{letter}**: {text}"
        for letter, text in panels(entry).items()
    ]
    shown = {name: cells[name] for name in matching_cells(figure, cells)}
    digest = sha256("\n".join(cell.canonical() for cell in shown.values()).encode()).hexdigest()
    run = ["What was run:", *_runs(shown), f"Digest of this: ``{digest[:16]}``."]
    if entry.declaration.claims:
        known = [f"Digest of the claims: ``{claims[:16]}``."] if claims else []
        run = [*(run if shown else []), *known]
    return "\n\n".join([*body, *panel_texts, *run]) + "\n"


def panels(entry: Entry) -> dict[str, str]:
    """The docstring of each panel on one line, without its section on errors, by letter."""
    texts = {}
    for node in syntax(entry.path).body:
        if isinstance(node, ast.FunctionDef) and (letter := PANEL.fullmatch(node.name)):
            text = (ast.get_docstring(node) or "").partition("\n\nRaises:")[0]
            texts[letter[1]] = " ".join(text.split())
    return dict(sorted(texts.items()))


def _runs(cells: Mapping[str, Cell]) -> list[str]:
    """A line for each experiment, with values that its cells share and values that are swept."""
    experiments: dict[str, list[Cell]] = {}
    for name, cell in cells.items():
        experiments.setdefault(name.rpartition("/")[0], []).append(cell)
    return [f"* ``{name}``: {_run(group)}." for name, group in experiments.items()]


def _run(cells: list[Cell]) -> str:
    dumps = [cell.model_dump(mode="json", exclude_defaults=True) for cell in cells]
    sections = [
        _section(section, [flatten_keys(dump.get(section, {})) for dump in dumps])
        for section in SECTIONS
    ]
    scales = _values(scale for cell in cells for scale in cell.init_scales)
    seeds = _values(cell.seeds for cell in cells)
    return "; ".join([*filter(None, sections), f"init scales {scales}", f"seeds {seeds}"])


def _section(section: str, specs: list[dict[str, Any]]) -> str:
    keys = dict.fromkeys(key for spec in specs for key in spec)
    values = {key: _values(spec[key] for spec in specs if key in spec) for key in keys}
    head = f"{section} {values.pop('name', '')}".strip()
    listed = ", ".join(
        f"{key.replace('.name', '').replace('.', ' ').replace('_', ' ')} {text}"
        for key, text in values.items()
    )
    if listed:
        return f"{head} ({listed})"
    return head if "name" in keys else ""


def _values(values: Iterable[Any]) -> str:
    """Values without repetitions, or the first and the last of many."""
    texts = list(dict.fromkeys(map(_value, values)))
    if len(texts) > MOST_VALUES:
        return f"{texts[0]} to {texts[-1]} ({len(texts)} values)"
    return ", ".join(texts)


def _value(value: Any) -> str:
    if not isinstance(value, list):
        return f"{value:g}" if isinstance(value, float) else str(value)
    if len(value) > MOST_VALUES or any(isinstance(item, list | dict) for item in value):
        return f"[{len(value)} given]"
    return f"[{', '.join(map(_value, value))}]"
