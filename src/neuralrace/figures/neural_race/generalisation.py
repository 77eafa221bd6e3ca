"""From how many trained partners on untrained pairs of domains follow.

Figure 5c of Saxe, Sodhani and Lewallen (2022): error at the end of training of trained and of
untrained pairs of domains, against the share of output domains that each input domain is trained
with. With few partners training fits its own pairs and says nothing about the others; with more,
the shared solution wins and untrained pairs follow. The dotted line is the share that the source
names. On a logarithmic axis the error goes on falling past it: there is no sharp threshold, and
what sets the share apart is that no single run fails. Errors are squared, and relative to a network
that answers zero.
"""

from collections.abc import Sequence

from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import domains, style
from neuralrace.results.cells import CellResults, Results

SMALL = 0.1
"""Errors up to this value are small, as in the claims."""


@Figure(
    layout="abc",
    height=2.5,
    widths=(1.15, 1.15, 1.0),
    cf={"a": "Fig. 5c", "b": "Fig. 5c"},
    reads={
        "generalisation": {
            "trajectory": "",
            "metrics": "final_trained_error final_untrained_error",
        },
        "mask_contrast": {
            "metrics": "final_untrained_error",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Trained and untrained pairs, and the share that the paper names."""
    return [
        style.handle("trained pairs", **domains.TRAINED),
        style.handle("untrained pairs", **domains.UNTRAINED),
        style.BAND,
        style.handle(f"Saxe et al.: {domains.PAPER_SHARE:.0%}", **style.PAPER),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Errors as the source draws them: means over seeds with their range."""
    cells = domains.by_partners(results, "generalisation")
    _errors(ax, cells)
    ax.set_ylim(0, None)
    ends = [float(domains.untrained_error(cell).mean()) for cell in cells]
    shares = map(domains.partner_share, cells)
    small = [share for share, end in zip(shares, ends, strict=True) if end <= SMALL]
    finding = f"is small from {min(small):.0%} on" if small else f"falls to {min(ends):.1g}"
    ax.set_title(f"Mean error on untrained pairs {finding}")


def panel_b(results: Results, ax: Axes) -> None:
    """The same on a logarithmic axis; errors below 1e-8 are drawn at it."""
    cells = domains.by_partners(results, "generalisation")
    _errors(ax, cells)
    ax.set(yscale="log")
    trained = max(float(cell.get("metrics", "final_trained_error").max()) for cell in cells)
    ax.set_title(f"Trained pairs are learned, to {trained:.0e} at worst")


def panel_c(results: Results, ax: Axes) -> None:
    """Single runs around the share that the source names, and their medians (bars); sixty of them
    at 30%. The line is an error of a tenth.
    """
    sweep = domains.by_partners(results, "generalisation")
    near = domains.nearest_first(sweep)[:3]
    many = [c for c in results.cells("mask_contrast") if c.routing.pairs.name == "band"]
    shown = {round(domains.partner_share(cell), 3): cell for cell in (*near, *many)}
    medians = {}
    dots = {key: domains.UNTRAINED[key] for key in ("color", "marker")}
    for position, (share, cell) in enumerate(sorted(shown.items())):
        errors = domains.untrained_error(cell)
        medians[share] = style.single_runs(ax, position, errors, 0.3, markersize=2, **dots)
    ax.axhline(SMALL, **style.GUIDE)
    ax.set_xticks(range(len(shown)), [f"{share:.0%}" for share in sorted(shown)])
    ax.set(yscale="log", ylabel="relative error, run by run", xlabel="trained share, $K/M$")
    cell = (many or list(shown.values()))[0]
    share, worst = domains.partner_share(cell), float(domains.untrained_error(cell).max())
    median = medians[round(share, 3)]
    ax.set_title(f"At {share:.0%} the median is {median:.2g}, the worst {worst:.2g}")


def _errors(ax: Axes, cells: Sequence[CellResults]) -> None:
    """Draws errors of trained and of untrained pairs, and the threshold of the paper."""
    for name, props in (("trained", domains.TRAINED), ("untrained", domains.UNTRAINED)):
        errors = [cell.get("metrics", f"final_{name}_error").isel(init_scale=0) for cell in cells]
        domains.draw_by_partners(ax, cells, [e.clip(min=domains.FLOOR) for e in errors], props)
    ax.axvline(domains.PAPER_SHARE, **style.PAPER)
    ax.set(ylabel="relative error", xlabel=domains.PARTNER_LABEL)
