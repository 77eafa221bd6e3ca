"""Pages of the benchmark: the board of the release, and the theories with where they hold."""

import inspect
import re
from pathlib import Path

import xarray as xr

from neuralrace.board.build import BASELINES
from neuralrace.board.pages import holding_scales, markdown
from neuralrace.board.stored import stored_board, stored_findings
from neuralrace.board.theories import Theory, theories
from neuralrace.config.requirements import REQUIREMENTS

PICTURES = "figures/slim/benchmark"
THEORIES = """# Which theory applies to my network?

For anyone who has a network and looks for the theory of its learning. Every solution is solved from
the initial weights, with nothing fitted. All assume one task and squared error; what else they
assume is told below, in [words that are explained there](#what-the-words-mean); *derived for* names
initial weights for which a theory is derived, where it can be computed for others. Where a theory
holds is what the [benchmark](benchmark.md) found: the init scales at which it misses the loss by
less than a tenth, on each [task](board.md).

`neuralrace theories` prints the same, `neuralrace theories deep_linear/exact` says which apply to
an experiment and why others do not, and `nr.theories(x, y, hidden=[16])` does so for your own data.
"""
MAPS = (
    "Error of the loss, the largest over training and the mean over seeds, at each setting: an "
    "init scale and a value of the other axis. Dark is good; the solid line is around settings at "
    "which an entry *holds*, with an error below a tenth. At a cross, it misses the loss by a "
    "tenth before the first step. Only settings to which an entry applies are drawn, and counted "
    "in the title."
)
CONTENTS = """\
:::{toctree}
:hidden:

Which theory applies <which_theory>
Test your own theory <benchmark>
A package of your own <own_package>
:::"""
HEADING = "| theory | says | data | start | derived for |\n|---|---|---|---|---|"
KINDS = {
    "Linear networks": {"layered", "linear"},
    "ReLU networks": {"relu"},
    "Networks that route domains": {"routing"},
    "Networks with given gates": {"given gates", "context family"},
}
"""Headings, and words one of which a theory's network has; the last that fits counts."""


def pages(repository: Path) -> dict[str, str]:
    """The pages by where they stand in the site."""
    path = repository / "config" / "benchmark" / "board.json"
    board = stored_board(path)
    title, _, rest = markdown(board, stored_findings(path)).partition("\n\n")
    groups = {
        heading: sorted({theory.solution for theory in group} - set(BASELINES))
        for heading, group in _grouped().items()
    }
    maps = []
    for heading, entries in (groups | {"Baselines": BASELINES}).items():
        drawn = [e for e in entries if (repository / PICTURES / "maps" / f"{e}.png").is_file()]
        pictures = [f"#### {e}\n\n![Where {e} holds]({PICTURES}/maps/{e}.png)" for e in drawn]
        maps += [f"### {heading}", *pictures] if drawn else []
    picture = f"![Error of every theory on every task]({PICTURES}/board.png)"
    parts = [title, picture, CONTENTS, rest.rstrip(), "## Maps", MAPS, *maps]
    tables = [THEORIES.rstrip()]
    for heading, group in _grouped().items():
        tables += [f"## {heading}", "\n".join([HEADING, *map(_row, group)])]
        tables += [_details(theory, board) for theory in group]
    tables += ["## What the words mean", "\n".join(["| word | meaning |", "|---|---|", *_words()])]
    return {
        name: "\n\n".join(texts) + "\n"
        for name, texts in (("board.md", parts), ("which_theory.md", tables))
    }


def _grouped() -> dict[str, list[Theory]]:
    groups: dict[str, list[Theory]] = {}
    for theory in theories():
        words = set(theory.network.split(", "))
        fitting = [heading for heading, one_of in KINDS.items() if words & one_of]
        groups.setdefault(fitting[-1] if fitting else "Others", []).append(theory)
    return groups


def _row(theory: Theory) -> str:
    name = f"[`{theory.solution}`](#{theory.solution})"
    any_start = theory.start or "any"
    cells = (name, theory.says, theory.data or "any", any_start, theory.derived_for or any_start)
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def _details(theory: Theory, board: xr.DataTree) -> str:
    """What a theory assumes, its source, and a line for each task on which it is tested."""
    assumed = (theory.network, theory.data, theory.start, theory.training)
    lines = [
        f"### {theory.solution}\n",
        f"{theory.says}\n",
        f"- Assumes: {'; '.join(filter(None, assumed))}",
        f"- Source: {theory.source}",
    ]
    if theory.derived_for:
        lines.append(f"- Derived for: {theory.derived_for}")
    held = holding_scales(board, theory.solution).items()
    lines += [f"- Holds on [{task}](board.md#{task}): init scales {text}" for task, text in held]
    return "\n".join(lines if held else [*lines, "- Not tested by the benchmark"])


def _words() -> list[str]:
    """A row for each word that says what a theory assumes, from the docstring of its test."""
    columns = ((each.network, each.training, each.data, each.start) for each in theories())
    listed = ", ".join(text for row in columns for text in row if text)
    meanings = {
        word: inspect.getdoc(REQUIREMENTS[word.replace(" ", "_")]) or ""
        for word in re.split(", | or ", listed)
    }
    return [f"| {word} | {' '.join(meanings[word].split())} |" for word in sorted(meanings)]
