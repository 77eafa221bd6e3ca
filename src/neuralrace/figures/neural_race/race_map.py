"""Shared against dedicated pathways: how many pairs make the shared pathway win.

Not in the slides of Saxe, Sodhani, Lewallen (2022), whose Fig. 5b races pathways one at a time.
Here a pathway that all pairs share stands beside a dedicated pathway for every pair, and starts
with a quarter of their weights. M input domains are trained with K output domains each, so that
P = MK pairs share. Theory times either kind alone, from wide random weights with nothing fitted: a
dedicated pathway takes K times as long with K partners, the shared one as long with any. The
dashed line is where both reach half of the strongest mode at the same time.
"""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import maps, style
from neuralrace.figures.sweeps import cannot_draw
from neuralrace.networks.initialisers.scaled import Scaled
from neuralrace.results.cells import CellResults, Results
from neuralrace.theory.routing import routing_mode, routing_start

STEPS = 4000
"""Times at which theory is evaluated."""


@Figure(
    layout="a.b",
    height=2.9,
    widths=(1.15, 0.04, 1.0),
    reads={"race_map": {"trajectory": "", "metrics": "trained_pathway_share"}},
)
def legend(results: Results) -> style.Handles:
    """Theory."""
    return [style.handle("theory: shared and dedicated pathways are equally fast", **style.THEORY)]


def panel_a(results: Results, ax: Axes) -> None:
    """Share of the shared pathway in the squared maps of trained pairs at the end, mean over three
    runs. Numbers are P, the pairs that share.
    """
    cells = results.cells("race_map")
    table = shares(cells)
    image = maps.draw_map(ax, table, "share of the shared pathway")
    for column, domains in enumerate(table["x"].values):
        for row, partners in enumerate(table["y"].values):
            share = float(table[row, column])
            if np.isfinite(share):
                text = f"{domains * partners:.0f}"
                style.write_entry(ax, image, (row, column), share, text)
    text = "numbers: pairs $P$;\n$K$ is at most $M$;\nthe shared pathway\n"
    text += "wins above the line,\ndedicated ones below"
    style.note_at(ax, text, (0, 1), (5, -5), xycoords="axes fraction", va="top")
    equal = equal_partners(cells)
    rows = maps.position(table, "y", list(equal.values()))
    middles = np.arange(len(equal))
    ax.plot(np.r_[-0.5, middles, len(equal) - 0.5], np.r_[rows[0], rows, rows[-1]], **maps.BOUNDARY)
    ax.set(xlabel="number of domains $M$", ylabel="partners of each domain, $K = P/M$")
    ax.set_title("Enough partners let the shared pathway win")


def panel_b(results: Results, ax: Axes) -> None:
    """The same share against the number of partners over that of equal speed, 1 in theory; bars are
    ranges over runs.
    """
    cells = results.cells("race_map")
    equal = equal_partners(cells)
    for count, props in style.styled(list(equal)):
        own = sorted((cell for cell in cells if _domains(cell) == count), key=_partners)
        x = [_partners(cell) / equal[count] for cell in own]
        values = [_share(cell) for cell in own]
        ax.plot(x, [float(value.mean()) for value in values], color=props["color"], linewidth=1)
        hollow = props | {"markerfacecolor": "white", "markersize": 4.5, "markeredgewidth": 0.9}
        style.point_series(ax, x, values, label=f"{count}", **hollow)
    ax.axvline(1, **style.THEORY)
    for side, name in ((-1, "dedicated\nfaster"), (1, "shared\nfaster")):
        ax.annotate(
            name,
            (1, 0.42 if side < 0 else 0.06),
            (5 * side, 0),
            ax.get_xaxis_transform(),
            "offset points",
            fontsize=6.5,
            ha="right" if side < 0 else "left",
        )
    ax.set(xlabel="partners $K$ / $K$ of equal speed (theory)")
    ax.set(ylabel="share of the shared pathway", ylim=(-0.05, 1.05))
    ax.legend(title="domains $M$\n(bars: ranges)", loc="upper left")
    ax.set_title("The number of domains does not matter")


def shares(cells: Sequence[CellResults]) -> xr.DataArray:
    """Mean share of the shared pathway, by partners (y) and domains (x)."""
    return maps.grid(
        {(_domains(cell), _partners(cell)): float(_share(cell).mean()) for cell in cells}
    )


def equal_partners(cells: Sequence[CellResults]) -> dict[int, float]:
    """Partners with which both kinds of pathways are equally fast, by the number of domains.

    Each kind alone, from wide random weights. A dedicated pathway has the share 1/(MK) of the loss,
    so that its time is K times that with one partner.

    Raises:
        UserError: an initialiser without factors for families of pathways.
    """
    equal = {}
    for cell in sorted(cells, key=_domains):
        count, init = _domains(cell), cell.spec.init
        if not isinstance(init, Scaled) or len(init.edges) != 1:
            raise cannot_draw(cell, "init", "factor of the shared pathway")
        (factor,) = init.edges.values()
        scale = cell.spec.init_scales[0]
        data = cell.domains
        strongest = np.linalg.svd(np.linalg.pinv(data.inputs[0]) @ data.targets[0])[1][0]
        d = 1 / data.inputs.shape[1]
        shared = half_time(strongest * d, d, count, 1 / count, factor * scale)
        equal[count] = shared / half_time(strongest * d, d, 1, 1 / count, scale)
    return equal


def half_time(s: float, d: float, domains: int, share: float, scale: float) -> float:
    """Flow time to half of a mode, of a wide orthogonal pathway block of several domains.

    Args:
        s: singular value of a pair.
        d: variance of inputs.
        domains: input domains, and output domains, of the block.
        share: part of the loss in one input domain.
        scale: factor on orthogonal weights.
    """
    # in wide layers random directions of domains are perpendicular to each other
    directions = scale * np.eye(2 * domains)[:, :, None]
    start = routing_start(
        directions[:domains],
        scale * np.eye(2 * domains),
        directions[domains:].mT,
        *np.ones((2, domains, 1, 1)),
    )
    time = np.linspace(0, 2 / (share * s * scale), STEPS)
    path = routing_mode(time, np.array([s]), np.array([d]), start, domains, share)
    return float(np.interp(s / d / 2, path.prod(axis=-2)[:, 0], time))


def _share(cell: CellResults) -> xr.DataArray:
    return cell.get("metrics", "trained_pathway_share").isel(init_scale=0, drop=True)


def _domains(cell: CellResults) -> int:
    return cell.spec.dataset.count


def _partners(cell: CellResults) -> int:
    return cell.routing.partners(_domains(cell))
