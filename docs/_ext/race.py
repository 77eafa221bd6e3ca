"""The race, moving: a page on which pathways thicken as their singular values grow.

Its numbers are read from recorded results when the site is built. Without results, and without
JavaScript, it shows still pictures.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import xarray as xr

from neuralrace.errors import UserError
from neuralrace.results.cells import CellResults, open_results

PAGE = "race.md"
MOST_TIMES = 141
"""Most points in time of a race; more would make the page slow to load."""
DIGITS = 4
"""Significant digits of numbers in the page."""


class Race(NamedTuple):
    """A race between pathways, of one network or of several."""

    title: str
    text: str
    figure: str
    """The figure that stands in its place where nothing moves."""
    cells: tuple[str, ...]


RACES = (
    Race(
        "Shared against dedicated pathways",
        "Four networks learn the same task among ten input and ten output domains. In the first, "
        "every pair of domains has a pathway of its own; in the last, one pathway serves all "
        "hundred pairs. The more pairs share a pathway, the sooner it is learned. The thickness of "
        "a pathway is its largest hidden singular value.",
        "neural_race/race",
        tuple(f"neural_race/race/gates-groups-{size}" for size in (1, 2, 5, 10)),
    ),
    Race(
        "A common pathway and three contexts",
        "A gated network learns objects in three contexts, by a pathway that is always open and "
        "three pathways that are open in two of three contexts. The common one learns first, the "
        "others what it leaves. The thickness of a pathway is its largest singular value.",
        "make_haste/contextual",
        ("make_haste/contextual_stages/main",),
    ),
    Race(
        "Exclusive or",
        "A gated network with a pathway for each of the four examples of XoR. None has a head "
        "start, so that all four are learned together. The thickness of a pathway is the largest "
        "singular value of its second layer.",
        "neural_race/xor",
        ("neural_race/xor_gated/main",),
    ),
)
INTRODUCTION = """\
# The race, moving

For everyone who has read that pathways race, and wants to see it. Move the slider, or press Play:
pathways thicken as their singular values grow, and the loss falls beside them. Numbers are means
over the recorded runs; the dashed line is theory from the same initial weights.
"""
NO_RESULTS = """
```{note}
The pictures below do not move, as there were no results when the site was built. `make figures`,
then `make docs`, makes them move.
```
"""


def page(results: Path | None) -> str:
    """The page, in MyST Markdown.

    Args:
        results: the results folder; None where there are no results.
    """
    found = {race.title: _data(race, results) for race in RACES}
    missing = any(data is None for data in found.values())
    parts = [INTRODUCTION, NO_RESULTS if missing else ""]
    for race in RACES:
        parts += [f"\n## {race.title}\n\n{race.text}\n", _shown(race, found[race.title])]
    return "\n".join(parts)


def _shown(race: Race, data: dict[str, object] | None) -> str:
    still = f"figures/slim/{race.figure}.png"
    picture = f"![{race.title}: a still picture](figures/slim/{race.figure}.png)\n"
    if data is None:
        return picture
    content = json.dumps(data, separators=(",", ":"))
    return (
        "```{raw} html\n"
        f'<div class="race" role="group" aria-label="{race.title}">'
        f'<script type="application/json">{content}</script>'
        f'<noscript><img src="{still}" alt="{race.title}: a still picture"></noscript></div>\n'
        f"```\n\nAs a figure: [{race.figure}](#figure-{race.figure.replace('/', '-')}).\n"
    )


def _data(race: Race, results: Path | None) -> dict[str, object] | None:
    """Times, and for each pathway its name, thickness, loss and theory; None without results."""
    if results is None:
        return None
    try:
        cells = [open_results(results, [name])[name] for name in race.cells]
        times = cells[0].flow_time.values
        rows = list(_pathways(cells))
    except (UserError, KeyError):
        return None
    every = np.unique(np.linspace(0, len(times) - 1, MOST_TIMES).round().astype(int))
    shown = {"times": _numbers(times[every]), "unit": "gradient-flow time (units of τ)"}
    lines = [
        {key: value if isinstance(value, str) else _numbers(value[every]) for key, value in each}
        for each in (row.items() for row in rows)
    ]
    return shown | {"pathways": lines}


def _pathways(cells: Sequence[CellResults]) -> Iterator[dict[str, str | np.ndarray]]:
    """Name, thickness and loss of each pathway, along time."""
    if len(cells) > 1:  # a network each
        for cell in cells:
            pairs = int(cell.name.rpartition("-")[2]) ** 2
            hidden = cell.get("trajectory", "singular_values").isel(layer=1, singular_mode=0)
            name = "1 pair each" if pairs == 1 else f"{pairs} pairs share"
            yield {"name": name, "width": _mean(hidden)} | _losses(cell)
        return
    (cell,) = cells
    if "pathway_values" in cell.trajectory:
        values = cell.get("trajectory", "pathway_values").max("pathway_mode")
        names = ["common", *(f"all but context {n}" for n in range(1, values.sizes["pathway"]))]
        widths = [values.isel(pathway=index) for index in range(len(names))]
    else:
        values = cell.get("trajectory", "singular_values").isel(singular_mode=0)
        widths = [values.isel(layer=index) for index in range(1, values.sizes["layer"], 2)]
        names = [f"example {n}" for n in range(1, len(widths) + 1)]
    losses = _losses(cell)
    for name, width in zip(names, widths, strict=True):
        yield {"name": name, "width": _mean(width)} | losses
        losses = {}


def _losses(cell: CellResults) -> dict[str, np.ndarray]:
    losses = {"loss": _mean(cell.get("trajectory", "loss"))}
    if "solution" in cell.theory.dims:
        losses["theory"] = _mean(cell.get("theory", "loss").isel(solution=0))
    return losses


def _mean(values: xr.DataArray) -> np.ndarray:
    """The mean over seeds, from the smallest init scale."""
    if "init_scale" in values.dims:
        values = values.isel(init_scale=0)
    return values.mean("seed").values


def _numbers(values: np.ndarray) -> list[float]:
    return [float(f"{value:.{DIGITS}g}") for value in values.tolist()]
