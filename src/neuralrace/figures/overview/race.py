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
    width=6.7,
    height=2.5,
    widths=(0.8, 1.05, 1.2),
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
    """None: lines are named in the panels."""
    return []


def panel_a(results: Results, ax: Axes) -> None:
    """A pathway for each pair of three input (left) and three output domains (right), and one that
    all pairs share, in the colours of such networks in panel b.
    """
    names = {1: "one for each pair", DOMAINS: "one for all pairs"}
    for part, (size, name) in zip(style.split(ax, 2)[:, 0], names.items(), strict=True):
        draw_network(part, results.cells("race"), DOMAINS, size, units=2, shape=1.6)
        part.set_title(name, loc="center")
    ax.set_title("Pairs share pathways")


def panel_b(results: Results, ax: Axes) -> None:
    """Largest singular value of a hidden matrix for pathways that 1 to 100 pairs of ten domains
    share: means and ranges over ten runs.
    """
    draw_race(ax, results, lambda cell: f"{sharing(cell)} pair{'s' if sharing(cell) > 1 else ''}")
    mean = style.handle("", color="0.4", **style.SIMULATION)
    key = {"theory": style.handle("", **style.THEORY), "mean and range": (style.BAND, mean)}
    ax.legend(key.values(), key, loc="upper right", bbox_to_anchor=(1, 0.74))
    ax.set_title("Shared pathways learn sooner")


def panel_c(results: Results, ax: Axes) -> None:
    """Errors of trained and of untrained pairs of domains at the end of training, against the share
    of partners that are trained: means and ranges over ten runs.
    """
    domains.draw_errors(ax, domains.by_partners(results, "generalisation"))
    ax.axhline(1, **style.GUIDE)
    style.name_level(ax, 1, "answering zero")
    ax.set_ylim(-0.05, max(1.2, ax.get_ylim()[1]))
    beside = {"untrained": ((domains.PAPER_SHARE, 0.5), (6, 0)), "trained": ((0.6, 0), (0, 7))}
    for name, (at, shift) in beside.items():
        style.note_at(ax, f"{name} pairs", at, shift, color=domains.PAIRS[name]["color"])
    ax.set_xlabel("trained share, $K/M$ (bars: ranges)")
    ax.set_title("Untrained pairs are answered from 40%")
