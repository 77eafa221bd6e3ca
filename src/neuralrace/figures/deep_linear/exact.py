"""The exact solution from random zero-balanced starts, at any width of the hidden layer."""

from matplotlib.figure import Figure as Canvas

from neuralrace.figures import style
from neuralrace.records.results import CellResults, Results
from neuralrace.registry import Figure


@Figure(
    reads={
        "exact": {
            "trajectory": "loss",
            "theory": "loss",
            "metrics": "approximation_error",
        },
        "step_size": {
            "metrics": "loss_error_sup",
        },
    }
)
def draw(results: Results) -> Canvas:
    """Loss at each hidden width; the error of the solution, and of gradient descent against it."""
    cells, steps = results.cells("exact"), results.cells("step_size")
    scales = cells[0].trajectory["init_scale"].values
    looks = [
        {"color": colour, "marker": style.marker(index)}
        for index, colour in enumerate(style.ordered(len(scales)))
    ]
    figure, axes = style.panels(len(cells) + 2, height=1.25)
    losses, (error, descent) = axes[:-2, 0], axes[-2:, 0]

    ends = []
    for ax, cell in zip(losses, cells, strict=True):
        loss = cell.get("trajectory", "loss")
        exact = cell.get("theory", "loss", solution="exact").mean("seed")
        for index, look in enumerate(looks):
            at = {"init_scale": index}
            style.over_seeds(ax, cell.flow_time, loss.isel(at), color=look["color"])
            ax.plot(cell.flow_time, exact.isel(at), **style.THEORY)
        ax.set(ylabel="training loss", ylim=(0, None))
        ax.sharex(losses[-1])
        ax.tick_params(labelbottom=ax is losses[-1])
        ends.append(style.settled(exact, cell.flow_time))
    losses[-1].set(xlabel=style.FLOW_TIME, xlim=(0, max(ends)))

    for position, cell in enumerate(cells):
        off = cell.get("metrics", "approximation_error", solution="exact")
        for index, look in enumerate(looks):
            shift = 0.15 * (index - (len(looks) - 1) / 2)
            style.points(error, position + shift, off.isel(init_scale=index), **look)
    error.set(yscale="log", ylim=(1e-16, 1), xlabel="hidden units", ylabel="error (initial loss)")
    error.set_xticks(range(len(cells)), [_width(cell) for cell in cells])

    rates = [cell.spec.training.learning_rate for cell in steps]
    errors = [
        cell.get("metrics", "loss_error_sup", solution="exact").isel(init_scale=0) for cell in steps
    ]
    for rate, off in zip(rates, errors, strict=True):
        style.points(descent, rate, off, color="0.4", marker="o")
    style.slope_one(descent, rates, float(errors[rates.index(max(rates))].mean("seed")))
    style.loglog(descent, rates)
    descent.set(xlabel="learning rate", ylabel="error (initial loss)")

    widths = [f"{_width(cell)} hidden units" for cell in cells]
    others = [
        "exact solution against numerical gradient flow",
        "gradient descent against exact solution",
    ]
    style.letters(axes[:, 0], [*widths, *others])
    entries = [
        style.entry(f"init scale {scale:g}", **look)
        for scale, look in zip(scales, looks, strict=True)
    ]
    theory = style.entry("exact solution", **style.THEORY)
    slope = style.entry("slope 1", **style.GUIDE)
    style.legend(figure, [*entries, style.BAND, theory, slope], columns=3)
    return figure


def _width(cell: CellResults) -> str:
    return "-".join(map(str, cell.spec.layered.hidden))
