"""The table of panels has every panel, in the row of the paper's panel to compare with."""

import re

from builders import REPOSITORY
from neuralrace.config.load import paper_files
from neuralrace.extensions.registry import FIGURES

TEXT = (REPOSITORY / "docs" / "panels.md").read_text(encoding="utf-8")
HERE = re.compile(
    r"\[(\w+/\w+)\]\(\.\./figures/slim/(\w+/\w+)\.png\)((?: [a-z](?:, [a-z](?!\w))*)?)"
)


ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in TEXT.splitlines()
    if line.startswith("| ") and not line.endswith("what differs |")
]


OF_PAPERS = [
    name
    for name in FIGURES
    if name.partition("/")[0] in {path.parent.name for path in paper_files()}
]
"""Figures that are drawn for one paper."""


def panels(cell: str) -> dict[str, set[str]]:
    """Letters of panels by figure, in a cell of a table."""
    return {figure: set(re.findall(r"\w", letters)) for figure, _, letters in HERE.findall(cell)}


def declared(figure: str) -> set[str]:
    return {letter for letter in FIGURES[figure].declaration.layout if letter.isalpha()}


def test_rows_name_existing_figures_and_panels():
    assert ROWS
    for row in ROWS:
        assert len(row) == 4, row
        _, shows, here, drawn = row
        assert HERE.sub("", here).strip(", ") in ("", "none"), row
        assert all(figure == picture for figure, picture, _ in HERE.findall(here)), row
        assert shows or drawn, row
        for figure, letters in panels(here).items():
            assert figure in FIGURES, row
            assert letters <= declared(figure), row


def test_panels_are_in_rows_of_the_panels_to_compare_with():
    assert OF_PAPERS
    for figure in OF_PAPERS:
        rows = [(panels(row[2]).get(figure, set()), " ".join(row).lower()) for row in ROWS]
        assert set().union(*(letters for letters, _ in rows)) == declared(figure), figure
        for letter, panel in FIGURES[figure].declaration.cf.items():
            found = any(letter in letters and panel.lower() in text for letters, text in rows)
            assert found, f"{figure}: panel {letter}, to compare with {panel}"
