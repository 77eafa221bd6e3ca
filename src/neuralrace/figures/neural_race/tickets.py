"""Lottery tickets of XoR: small networks of the units that theory names as winners.

The slides mention the lottery ticket hypothesis only in their discussion. Hidden units of the ReLU
network of figure 3 are kept by a rule and trained again from the same initial weights. Winners
contribute most to the initial strength of each example's pathway, losers least; both follow from
the initial weights. Random units are a control, and so are those with the largest weights after
training, as tickets are usually found. Theory starts from the kept weights, with nothing fitted.
Bars are ranges over 20 runs at learning rate 0.04.
"""

from typing import Any

from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.sweeps import smallest_scale
from neuralrace.results.cells import CellResults, Results

TICKETS: dict[str, dict[str, Any]] = {
    "winners": {"color": style.categorical(0), "marker": "o"},
    "largest": {"color": style.categorical(2), "marker": "D", "fillstyle": "none"},
    "random": {"color": "0.55", "marker": "s"},
    "losers": {"color": style.categorical(3), "marker": "v"},
}
"""Colour and marker of each rule."""
CURVES = 1 / 16
"""Share of the units that is kept in panel a."""
ALL_UNITS = {"color": "0.2"}
"""Colour of the whole network."""
LABELLED = {"winners": 0.06, "random": 0.7, "losers": 0.6}
"""Heights at which curves are labelled."""
EARLIEST = 10
"""First time that is shown."""
SHIFTS = (1.08, 1.02, 0.98, 0.92)
"""Factors on the share that is kept, so that markers of different rules stand side by side."""


@Figure(
    layout="abc",
    height=2.7,
    widths=(1.3, 1, 1),
    reads={
        "xor_tickets": {
            "trajectory": "loss",
            "theory": "loss",
            "metrics": (
                "ticket_loss ticket_predicted_loss ticket_half_time_over_whole "
                "ticket_predicted_half_time_over_whole ticket_final_loss ticket_lost_examples"
            ),
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Rules by which units are kept, and theory."""
    rules = [style.handle(rule, linestyle="", **props) for rule, props in TICKETS.items()]
    whole = style.handle("all units", **style.SIMULATION | ALL_UNITS)
    return [whole, *rules, style.handle("theory", **style.THEORY)]


def panel_a(results: Results, ax: Axes) -> None:
    """Loss over initial loss of the whole network and of a sixteenth of its units: means over runs,
    with ranges as bands.
    """
    cell = results.cell("xor_tickets")
    time = cell.flow_time
    whole = smallest_scale(cell.get("trajectory", "loss"))
    first = whole.isel(time=0, drop=True)
    curves = {"all units": (whole, smallest_scale(cell.get("theory", "loss", solution="xor_race")))}
    for rule in ("winners", "random", "losers"):
        loss, theory = (
            smallest_scale(cell.get("metrics", name, ticket=rule)).sel(kept=CURVES)
            for name in ("ticket_loss", "ticket_predicted_loss")
        )
        curves[rule] = loss, theory
    for name, (loss, theory) in curves.items():
        style.over_seeds(ax, time, loss / first, color=TICKETS.get(name, ALL_UNITS)["color"])
        ax.plot(time, (theory / first).mean("seed"), **style.THEORY)
    ends = EARLIEST, style.settling_time(curves["losers"][1].mean("seed"), time)
    ax.set(xlabel=style.FLOW_TIME, ylabel="loss over initial loss", xlim=ends, ylim=(0, 1.05))
    for rule, height in LABELLED.items():
        below = (curves[rule][1] / first).mean("seed") <= height
        at = max(float(time[int(below.argmax("time"))]), EARLIEST)
        style.note_at(ax, rule, (at, height), (5, 3), color=TICKETS[rule]["color"])
    ax.set_title("Winners learn nearly as fast as all")


def panel_b(results: Results, ax: Axes) -> None:
    """Time to half of the initial loss over that of the whole network, by the share of units that
    is kept. Shares at which a run never gets there are left out.
    """
    cell = results.cell("xor_tickets")
    for rule in ("winners", "random", "losers"):
        time, theory = (
            smallest_scale(cell.get("metrics", f"ticket_{name}half_time_over_whole", ticket=rule))
            for name in ("", "predicted_")
        )
        reached = time.notnull().all("seed").values
        time, theory = (times.isel(kept=reached).transpose("kept", ...) for times in (time, theory))
        style.point_series(ax, time["kept"].values, time, **TICKETS[rule])
        ax.plot(time["kept"], theory.mean("seed"), **style.THEORY)
    ax.axhline(1, **style.GUIDE)
    _by_share(ax, cell)
    ax.set(ylabel="half time over that of all units")
    style.note(ax, f"bars: ranges of {cell.spec.seeds} runs", "upper left")
    ax.set_title("Theory tells when tickets learn")


def panel_c(results: Results, ax: Axes) -> None:
    """Loss that remains at the end, by the share of units that is kept. Theory is the share of
    examples that no kept unit joins.
    """
    cell = results.cell("xor_tickets")
    for shift, (rule, props) in zip(SHIFTS, TICKETS.items(), strict=True):
        final, lost = (
            smallest_scale(cell.get("metrics", f"ticket_{name}", ticket=rule))
            for name in ("final_loss", "lost_examples")
        )
        style.point_series(ax, final["kept"].values * shift, final.transpose("kept", ...), **props)
        ax.plot(lost["kept"], lost.mean("seed"), **style.THEORY)
    _by_share(ax, cell)
    ax.set(ylabel="final loss over initial loss")
    style.note(ax, f"bars: ranges of {cell.spec.seeds} runs", "upper left")
    ax.set_title("Tickets fail by lost examples")


def _by_share(ax: Axes, cell: CellResults) -> None:
    """The share of units that is kept along x, most on the left."""
    kept = cell.metrics["kept"].values
    ax.set(xscale="log", xlabel=f"share of {cell.spec.layered.hidden[0]} units that is kept")
    ax.set_xticks(kept, [f"1/{1 / share:.0f}" for share in kept])
    ax.set_xticks([], minor=True)
    ax.invert_xaxis()
