"""Networks learn by a race between pathways, which shared ones win.

Pathways that more pairs of domains share learn sooner (Saxe, Sodhani and Lewallen 2022). From small
weights the shared one wins, and pairs of domains that were never trained are answered as well, from
about two fifths of trained partners on. Theory starts from the same initial weights; nothing is
fitted. Errors are squared, over those of a network that answers zero.
"""

from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import domains, style
from neuralrace.figures.pathway_sharing import draw_network, draw_race, sharing
from neuralrace.results.cells import Results

DOMAINS = 3
"""Number of domains in the diagrams."""


@Figure(
    layout="abc",
    width=6.2,
    height=2.5,
    widths=(0.9, 1.0, 1.0),
    cf={"b": "Fig. 5b", "c": "Fig. 5c"},
    reads={
        "neural_race/race": {
            "trajectory": "singular_values",
            "theory": "singular_values",
            "metrics": "",
        },
        "neural_race/generalisation": {
            "trajectory": "",
            "metrics": "final_trained_error final_untrained_error",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Theory, and trained and untrained pairs."""
    return [
        style.handle("theory", **style.THEORY),
        style.handle("trained pairs", **domains.TRAINED),
        style.handle("untrained pairs", **domains.UNTRAINED),
        style.handle(f"Saxe et al.: {domains.PAPER_SHARE:.0%}", **style.PAPER),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """A pathway for each pair of three input (left) and three output domains (right), and one that
    all pairs share.
    """
    cell = results.cells("race")[0]
    for part, size in zip(style.split(ax, 2)[:, 0], (1, DOMAINS), strict=True):
        draw_network(part, cell, DOMAINS, size, units=2, shape=1.6)
    ax.set_title("Own pathways, or one for all")


def panel_b(results: Results, ax: Axes) -> None:
    """Largest singular value of a hidden matrix for pathways that are shared by P pairs, of ten
    domains: means and ranges over ten runs.
    """
    draw_race(ax, results, lambda cell: f"$P$ = {sharing(cell)}")
    ax.set_title("Shared pathways win")


def panel_c(results: Results, ax: Axes) -> None:
    """Errors of trained and of untrained pairs of domains at the end of training, against the share
    of partners that are trained: means and ranges over ten runs.
    """
    domains.draw_errors(ax, domains.by_partners(results, "generalisation"))
    ax.axhline(1, **style.GUIDE)
    inside = ax.get_yaxis_transform()
    ax.annotate(
        "answering zero", (0.98, 1), (0, 3), inside, "offset points", ha="right", fontsize=6.5
    )
    ax.set_ylim(-0.05, max(1.2, ax.get_ylim()[1]))
    ax.set_xlabel("trained share, $K/M$")
    ax.set_title("Untrained pairs follow")
