"""The verdict on every sentence of the papers that was tested.

A tile for each quoted sentence, a block for each paper, in the order of the decision: what holds
first, what is wrong last. A sentence about which there are several claims has the status of the one
that says least for it. What holds for an analogue counts as holding, and so do identities, which
hold by algebra. The text on exact solutions is a summary of that paper. Each paper's page of claims
has the sentence, the number and the reason (docs/claims.md says what each status means).
"""

from collections import Counter

from matplotlib.axes import Axes
from matplotlib.patches import Patch, Rectangle

from neuralrace.claims.judge import known_claims
from neuralrace.claims.pages import HEADINGS
from neuralrace.claims.picture import TILES
from neuralrace.claims.sentences import STATUSES, Sentence, sentences
from neuralrace.claims.spec import read_claims
from neuralrace.config.load import paper_files
from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.overview import PAPERS
from neuralrace.results.cells import Results

COLUMNS = 40
"""Most tiles in a line."""
HOLDS = ("reproduced", "analogue", "identity")
"""Statuses of sentences that hold."""
ORDER = tuple(reversed(STATUSES))
SHORT = {"depends on": "depends on a choice that is not printed"}
"""Names of statuses in the legend, where they are not those of the pages."""


@Figure(layout="a", height=3.0, reads={}, claims=True)
def legend(results: Results) -> style.Handles:
    """Statuses of sentences, each with its sign."""
    known = {sentence.status for sentence in _tested()}
    return [
        Patch(
            facecolor=TILES[status].colour,
            edgecolor="0.5",
            linewidth=0.4,
            label=f"{TILES[status].sign} {SHORT.get(status, HEADINGS[status][0].lower())}",
        )
        for status in ORDER
        if status in known
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """A tile for each sentence that was tested. Numbers: how many of a paper hold."""
    top, tested, all_holding = 0.0, _tested(), 0
    for paper in dict.fromkeys(sentence.paper for sentence in tested):
        own = [sentence for sentence in tested if sentence.paper == paper]
        own.sort(key=lambda sentence: ORDER.index(sentence.status))
        counts = Counter(sentence.status for sentence in own)
        holding = sum(counts[status] for status in HOLDS)
        all_holding += holding
        text = f"{PAPERS.get(paper, paper)}: {holding} of {len(own)} hold"
        ax.text(0, top, text, va="bottom", fontsize=7)
        for place, sentence in enumerate(own):
            _draw(ax, place % COLUMNS, top + place // COLUMNS, sentence)
        top += -(-len(own) // COLUMNS) + 1.2
    ax.set(xlim=(0, COLUMNS), ylim=(top - 0.9, -1.0), aspect="equal")
    ax.set_axis_off()
    ax.set_title(f"{all_holding / max(len(tested), 1):.0%} of tested sentences hold")


def _draw(ax: Axes, x: int, y: float, sentence: Sentence) -> None:
    tile = TILES[sentence.status]
    edge = {"edgecolor": "0.5", "linewidth": 0.4}
    ax.add_patch(Rectangle((x + 0.04, y + 0.04), 0.92, 0.92, facecolor=tile.colour, **edge))
    ax.text(x + 0.5, y + 0.52, tile.sign, color=tile.ink, ha="center", va="center", fontsize=7)


def _tested() -> list[Sentence]:
    """All sentences that were tested, with their known status."""
    claims, _ = known_claims(read_claims(paper_files("claims.yaml")))
    return [sentence for sentence in sentences(claims) if sentence.status != "not assessed"]
