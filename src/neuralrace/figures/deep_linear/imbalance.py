"""Negative control: the exact solution needs a balanced start.

The exact solution holds where the layers start balanced. Here the last layer starts larger and the
first one smaller, by the exponential of half the imbalance each, with the map that both compute
unchanged. The further from balance, the further the solution is from gradient flow, past what the
step size of gradient descent accounts for; so that agreement elsewhere is not a matter of course.
"""

from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.results.cells import CellResults, Results

SOLUTION = {"color": style.categorical(4), "marker": "o"}
DESCENT = {"color": "0.25", "marker": "s"}
RUN = {"marker": "", "linewidth": 1.2, "alpha": 0.5}
"""Line of a single run."""
LEAST = 1e-3
"""Lower end of the axis of errors."""


@Figure(
    layout="ab",
    height=2.7,
    widths=(1.9, 1),
    reads={
        "imbalance": {
            "trajectory": "loss",
            "theory": "loss",
            "metrics": "approximation_error discretisation_error",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """What is compared to gradient flow."""
    return [
        style.handle("exact solution", **SOLUTION),
        style.handle("gradient descent", **DESCENT),
        style.handle("gradient flow", **style.THEORY),
        style.handle("median of 10 runs", color="0.2", linewidth=1.2),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Loss less that of gradient flow, over the initial loss, by imbalance of the start.

    Each line is one of 10 runs: the exact solution in colour, gradient descent in grey; dashed is
    gradient flow. From balance the solution is on the flow, up to rounding error.
    """
    cells = _cells(results)
    frames = style.split(ax, 1, len(cells), sharex=True, sharey=True, wspace=0.06)[0]
    ends = []
    for frame, cell in zip(frames, cells, strict=True):
        flow = cell.get("theory", "loss", solution="flow").isel(init_scale=0)
        exact = cell.get("theory", "loss", solution="exact").isel(init_scale=0)
        descent = cell.get("trajectory", "loss").isel(init_scale=0)
        for loss, props in ((descent, DESCENT), (exact, SOLUTION)):
            off = (loss - flow) / flow.isel(time=0)
            frame.plot(cell.flow_time, off.transpose("time", "seed"), **props | RUN)
        frame.axhline(0, **style.THEORY)
        ends.append(style.settling_time(flow, cell.flow_time))
        frame.set_title(_name(cell), loc="center")
    frames[0].set_xlim(0, max(ends))
    above = {"xycoords": "axes fraction", "fontsize": 6.5, "ha": "right", "va": "top"}
    for frame, name, height, props in (
        (frames[0], "gradient\ndescent", 0.45, DESCENT),
        (frames[-1], "exact\nsolution", 0.85, SOLUTION),
    ):
        frame.annotate(name, (0.98, height), color=props["color"], **above)
    frames[0].set_ylabel("(loss \u2212 flow's loss) / initial loss")
    frames[len(frames) // 2].set_xlabel(style.FLOW_TIME)
    ax.set_title("Without balance, the exact solution leaves gradient flow")


def panel_b(results: Results, ax: Axes) -> None:
    """Largest of these distances in each run, and medians.

    From balance that of the solution is rounding error, far below the axis.
    """
    cells = _cells(results)
    ax.set(yscale="log", ylim=(LEAST, 0.1), ylabel="largest gap to flow / initial loss")
    for column, cell in enumerate(cells):
        solution = cell.get("metrics", "approximation_error", solution="exact").isel(init_scale=0)
        descent = cell.get("metrics", "discretisation_error").isel(init_scale=0)
        for side, (errors, props) in enumerate(((descent, DESCENT), (solution, SOLUTION))):
            x = column + 0.4 * side - 0.2
            if float(errors.max()) > LEAST:
                style.single_runs(ax, x, errors, 0.12, **props | {"markersize": 2.2})
            else:
                low = 1.2 * LEAST  # the whole arrow, above the axis
                ax.plot([x], [low], **SOLUTION | {"marker": "v", "markersize": 5})
                ax.annotate(
                    "rounding\nerror", (x, low), (0, 6), textcoords="offset points",
                    ha="center", color=SOLUTION["color"], fontsize=6.5,
                )  # fmt: skip
    ax.set_xlabel("imbalance of the start")
    style.named_columns(ax, [f"{cell.spec.init.imbalance:g}" for cell in cells])
    ax.set_title("The solution's error grows with imbalance")


def _name(cell: CellResults) -> str:
    imbalance = cell.spec.init.imbalance
    return f"imbalance {imbalance:g}" if imbalance else "balanced"


def _cells(results: Results) -> list[CellResults]:
    """Cells, smallest imbalance first."""
    return sorted(results.cells("imbalance"), key=lambda cell: cell.spec.init.imbalance)
