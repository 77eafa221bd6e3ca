"""A picture of all verdicts: a tile for each sentence, a row for each paper, as SVG."""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from types import MappingProxyType
from typing import NamedTuple

from neuralrace.claims.judge import ClaimRow
from neuralrace.claims.pages import HEADINGS
from neuralrace.claims.sentences import STATUSES, sentences
from neuralrace.claims.spec import Status


class Tile(NamedTuple):
    """How the tile of a status looks; signs differ, so that colour is not needed."""

    colour: str
    sign: str
    ink: str = "white"


TILES: dict[Status, Tile] = {
    "wrong": Tile("#b2182b", "✕"),
    "not reproduced": Tile("#e08214", "○", "black"),
    "depends on": Tile("#fdb863", "↔", "black"),
    "undecided": Tile("#d9d9d9", "?", "black"),
    "analogue": Tile("#92c5de", "≈", "black"),
    "reproduced": Tile("#2166ac", "✓"),
    "identity": Tile("#d1e5f0", "=", "black"),
    "not assessed": Tile("#ffffff", "·", "black"),
}
SIZE, GAP, ROW, COLUMNS = 18, 2, 12, 35
"""Side of a tile, space between tiles and between papers, in pixels; most tiles in a line."""
LABEL, LINE, LEGEND = 16, 20, 3
"""Height of a paper's name, height of a line of the legend, and columns of the legend."""


def picture(
    rows: Sequence[ClaimRow],
    link: Callable[..., str],
    titles: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """The picture as SVG.

    Args:
        rows: claims of all papers.
        link: the address of a claim, given `paper` and `claim`.
        titles: what papers are called; by their identifiers when absent.
    """
    body, y, step = list[str](), 0, SIZE + GAP
    order = {status: place for place, status in enumerate(reversed(STATUSES))}
    found = sentences(rows)
    for paper in dict.fromkeys(row.paper for row in rows):
        body.append(f'<text x="0" y="{y + 11}">{escape(titles.get(paper, paper))}</text>')
        y += LABEL
        tiles = [sentence for sentence in found if sentence.paper == paper]
        # the sort is stable: sentences of one status stand in the order of the paper
        for place, tile in enumerate(sorted(tiles, key=lambda each: order[each.status])):
            x, line = place % COLUMNS * step, y + place // COLUMNS * step
            address = escape(link(paper=paper, claim=tile.deciding.id))
            title = escape(f"{tile.status}: {' '.join(tile.rows[0].quote.split())}")
            drawn = _tile(x, line, tile.status)
            body.append(f'<a href="{address}"><title>{title}</title>{drawn}</a>')
        y += -(-len(tiles) // COLUMNS) * step + ROW
    shown: list[Status] = [
        s for s in reversed(STATUSES) if any(sentence.status == s for sentence in found)
    ]
    width = COLUMNS * step // LEGEND
    for place, status in enumerate(shown):
        x, line = place % LEGEND * width, y + place // LEGEND * (LINE + GAP)
        body.append(_tile(x, line, status))
        body.append(
            f'<text x="{x + SIZE + 6}" y="{line + 13}">{HEADINGS[status][0].lower()}</text>'
        )
    height = y + -(-len(shown) // LEGEND) * (LINE + GAP)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {COLUMNS * step} {height}" '
        f'width="{COLUMNS * step}" height="{height}" font-family="sans-serif" font-size="12" '
        'role="img" aria-label="Verdicts on the sentences of each paper">\n'
        + "\n".join(body)
        + "\n</svg>\n"
    )


def _tile(x: int, y: int, status: Status) -> str:
    colour, sign, ink = TILES[status]
    middle = f'x="{x + SIZE / 2}" y="{y + SIZE / 2 + 4}" text-anchor="middle" fill="{ink}"'
    return (
        f'<rect x="{x}" y="{y}" width="{SIZE}" height="{SIZE}" fill="{colour}" stroke="#888" '
        f'stroke-width="0.5"/><text {middle}>{sign}</text>'
    )
