"""XoR with a linear margin: units of both kinds answer it together near equal speed."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from neuralrace.figures import margins, style
from neuralrace.records.results import CellResults, Results
from neuralrace.registry import Figure


@Figure(
    reads={
        "xor_margin": {
            "metrics": "nonlinearity_index predicted_xor_share xor_share",
        },
    }
)
def draw(results: Results) -> Canvas:
    """Output that XoR units carry, and how nonlinear the boundary is, by margin."""
    cells = margins.by_margin(results, "xor_margin")
    figure, axes = style.panels(2, height=1.75, sharex=True)
    shares, indices = axes[:, 0]
    for ax, metric in ((shares, "xor_share"), (indices, "nonlinearity_index")):
        _draw(ax, cells, metric)
        margins.draw_crossover(ax)
    places = [margins.margin(cell) for cell in cells]
    for scale in margins.scales(cells[0]):
        predicted = [
            cell.get("metrics", "predicted_xor_share").sel(init_scale=scale) for cell in cells
        ]
        shares.plot(places, [float(each.mean("seed")) for each in predicted], **style.THEORY)
    indices.plot(places, [2 / (2 + place**2) for place in places], **style.THEORY)
    shares.set_ylabel("share of output")
    indices.set(xlabel=margins.LABEL, ylabel="nonlinearity index")
    style.letters([shares, indices], ["carried by XoR units", "boundary without the margin"])
    theory = style.entry("theory", **style.THEORY)
    style.legend(figure, [*margins.entries(cells[0]), theory], columns=3)
    return figure


def _draw(ax: Axes, cells: list[CellResults], metric: str) -> None:
    """A metric by margin, all init scales."""
    places = [margins.margin(cell) for cell in cells]
    for scale, look in margins.scales(cells[0]).items():
        values = [cell.get("metrics", metric).sel(init_scale=scale) for cell in cells]
        for place, each in zip(places, values, strict=True):
            style.points(ax, place, each, **look)
        means = [float(each.mean("seed")) for each in values]
        ax.plot(places, means, color=look["color"], linewidth=1.0)
    ax.set_ylim(-0.05, 1.05)
