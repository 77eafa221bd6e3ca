"""The more pairs of domains share a pathway, the sooner it learns (fig. 5b)."""

from matplotlib.figure import Figure as Canvas

from neuralrace.figures import style
from neuralrace.records.results import CellResults, Results
from neuralrace.registry import Figure

STRONGEST = {"init_scale": 0, "layer": 1, "singular_mode": 0}


@Figure(
    reads={
        "race": {
            "trajectory": "singular_values",
            "theory": "singular_values",
            "metrics": "loss_half_time predicted_loss_half_time",
        },
    }
)
def draw(results: Results) -> Canvas:
    """Largest hidden singular value over time, and the time to half of the initial loss."""
    cells = sorted(results.cells("race"), key=_sharing)
    figure, axes = style.panels(2, height=1.95)
    values, half = axes[:, 0]
    half.set(xscale="log", xlabel="pairs of domains $P$ that share a pathway")
    half.set_yscale("log", base=2)
    half.yaxis.set_major_formatter("{x:g}")
    sharing, expected, ends, entries = [_sharing(cell) for cell in cells], [], [], []
    for index, (cell, colour) in enumerate(zip(cells, style.ordered(len(cells)), strict=True)):
        look = {"color": colour, "marker": style.marker(index)}
        simulated = cell.get("trajectory", "singular_values").isel(STRONGEST)
        predicted = cell.get("theory", "singular_values", solution="routing_race").isel(STRONGEST)
        style.over_seeds(values, cell.flow_time, simulated, color=colour)
        values.plot(cell.flow_time, predicted.mean("seed"), **style.THEORY)
        ends.append(style.settled(simulated, cell.flow_time))
        measured = cell.get("metrics", "loss_half_time").isel(init_scale=0)
        style.points(half, sharing[index], measured, **look)
        solved = cell.get("metrics", "predicted_loss_half_time", solution="routing_race")
        expected.append(float(solved.isel(init_scale=0).mean("seed")))
        entries.append(style.entry(f"$P$ = {sharing[index]}", **look))
    half.plot(sharing, expected, **style.THEORY)
    style.epochs(values, cells[0].flow_time)
    values.set(xlabel=style.FLOW_TIME, xlim=(0, max(ends)))
    values.set(ylabel="largest singular value\nof the hidden layer", ylim=(0, None))
    half.set_xticks(sharing, [str(count) for count in sharing])
    half.set_xticks([], minor=True)
    half.set_ylabel("time to half the initial\n" + r"loss (units of $\tau$)")
    style.letters(axes[:, 0], ["first mode", "half of the loss"])
    theory = style.entry("theory", **style.THEORY)
    style.legend(figure, [*entries, style.BAND, theory], columns=3)
    return figure


def _sharing(cell: CellResults) -> int:
    """Pairs of domains P that share a block."""
    return cell.routing.families(cell.spec.dataset.count)[0].size ** 2
