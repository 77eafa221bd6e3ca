"""The verdict on every sentence of the papers that was tested.

A tile for each quoted sentence, a row for each paper, in the order of the decision: what holds
first, what is wrong last. A sentence about which there are several claims has the status of the one
that says least for it. What holds for an analogue counts as holding, and so do identities, which
hold by algebra. The text on exact solutions is a summary of that paper. Each paper's page of claims
has the sentence, the number and the reason (docs/claims.md says what each status means).
"""

from collections.abc import Sequence
from itertools import zip_longest

from matplotlib.axes import Axes
from matplotlib.patches import Patch, Rectangle

from neuralrace.claims.judge import known_claims
from neuralrace.claims.pages import HEADINGS
from neuralrace.claims.picture import TILES
from neuralrace.claims.sentences import STATUSES, Sentence, sentences
from neuralrace.claims.spec import Status, read_claims
from neuralrace.config.load import paper_files
from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.overview import PAPERS
from neuralrace.results.cells import Results

TALL = 0.36
"""Half the height of a tile, in rows."""
HOLDS: tuple[Status, ...] = ("reproduced", "analogue", "identity")
"""Statuses of sentences that hold."""
ORDER = tuple(reversed(STATUSES))
EDGE = {"edgecolor": "0.5", "linewidth": 0.4}


@Figure(layout="a", height=2.75, reads={}, claims=True)
def legend(results: Results) -> style.Handles:
    """None: it stands below the tiles."""
    return []


def panel_a(results: Results, ax: Axes) -> None:
    """A tile for each sentence that was tested. Numbers: how many of a paper hold."""
    tested = _tested()
    papers: dict[str, list[Sentence]] = {}
    for sentence in sorted(tested, key=lambda sentence: ORDER.index(sentence.status)):
        papers.setdefault(sentence.paper, []).append(sentence)
    order = list(dict.fromkeys(sentence.paper for sentence in tested))
    names = [f"{PAPERS.get(p, p)}\n{_holding(papers[p])} of {len(papers[p])} hold" for p in order]
    rows = style.named_rows(ax, names)
    for row, paper in enumerate(order):
        for place, sentence in enumerate(papers[paper]):
            tile, at = TILES[sentence.status], (place + 0.04, row - TALL)
            rows.add_patch(Rectangle(at, 0.92, 2 * TALL, facecolor=tile.colour, **EDGE))
            ink = {"color": tile.ink, "fontsize": 6, "ha": "center", "va": "center"}
            rows.text(place + 0.5, row, tile.sign, **ink)
    rows.set(xlim=(-0.3, max(map(len, papers.values()), default=0) + 1), xlabel="sentences")
    rows.spines[["left", "bottom"]].set_visible(False)
    rows.tick_params(length=0)
    shown: list[Status] = [
        status for status in ORDER if any(sentence.status == status for sentence in tested)
    ]
    lines = (
        [style.handle("hold:", linestyle=""), *(_handle(s) for s in shown if s in HOLDS)],
        [style.handle("others:", linestyle=""), *(_handle(s) for s in shown if s not in HOLDS)],
    )
    columns = max(map(len, lines))
    blank = style.handle("", linestyle="")
    # A legend is filled column by column; each column has one of either line.
    handles = [each for pair in zip_longest(*lines, fillvalue=blank) for each in pair]
    tight = {"columnspacing": 0.9, "handlelength": 1.0}
    place = {"loc": "upper right", "bbox_to_anchor": (1, -0.18)}
    rows.legend(handles=handles, ncols=columns, **tight, **place)
    share = _holding(tested) / max(len(tested), 1)
    ax.set_title(f"{share:.0%} of sentences hold, identities included")


def _handle(status: Status) -> Patch:
    """Legend handle of a status."""
    tile = TILES[status]
    return Patch(facecolor=tile.colour, label=f"{tile.sign} {HEADINGS[status][0].lower()}", **EDGE)


def _holding(tested: Sequence[Sentence]) -> int:
    """Number of sentences that hold."""
    return sum(sentence.status in HOLDS for sentence in tested)


def _tested() -> list[Sentence]:
    """All sentences that were tested, with their known status."""
    claims, _ = known_claims(read_claims(paper_files("claims.yaml")))
    return [sentence for sentence in sentences(claims) if sentence.status != "not assessed"]
