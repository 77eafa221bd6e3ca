"""The same dynamics in any singular basis."""

from matplotlib.figure import Figure as Canvas

from neuralrace.figures import style
from neuralrace.records.results import Results
from neuralrace.registry import Figure

MARKED = 12
"""Times at which runs in other bases are marked."""


@Figure(
    reads={
        "rotation": {
            "trajectory": "mode_strength",
            "theory": "mode_strength",
        },
    }
)
def draw(results: Results) -> Canvas:
    """Mode strengths in each basis of the task, and how far they are from those in the first."""
    first, *others = results.cells("rotation")
    time = first.flow_time
    modes = first.get("trajectory", "mode_strength").isel(init_scale=0)
    closed = first.get("theory", "mode_strength", solution="aligned_modes").isel(init_scale=0)
    figure, axes = style.panels(2, height=1.7, sharex=True)
    strengths, gap = axes[:, 0]
    colours = style.mode_colours(first.strength)
    for mode, colour in colours.items():
        style.over_seeds(strengths, time, modes.sel(mode=mode), color=colour)
        strengths.plot(time, closed.sel(mode=mode).mean("seed"), **style.THEORY)
    entries = []
    for index, cell in enumerate(others):
        other = cell.get("trajectory", "mode_strength").isel(init_scale=0)
        look = {"linestyle": "", "marker": style.marker(index), "markerfacecolor": "white"}
        every = max(len(time) // MARKED, 1)
        for mode, colour in colours.items():
            marked = other.sel(mode=mode).mean("seed")[::every]
            strengths.plot(time[::every], marked, color=colour, zorder=4, **look)
        off = abs(other - modes).max("mode") / float(abs(first.strength).max())
        style.over_seeds(gap, time, off.where(off > 0), color=style.distinct(index))
        entries.append(style.entry(f"{cell.spec.dataset.basis} basis", color="0.3", **look))
    gap.set(yscale="log", ylim=(1e-18, 1), xlabel=style.FLOW_TIME, xlim=(0, time[-1]))
    gap.set_ylabel("difference over\nlargest strength")
    strengths.set_ylabel("mode strength")
    style.letters(axes[:, 0], ["modes in both bases", "difference between bases, same seed"])
    line = style.entry(f"{first.spec.dataset.basis} basis", color="0.3")
    theory = style.entry("closed form", **style.THEORY)
    style.legend(
        figure, [*style.mode_entries(first.strength), line, *entries, style.BAND, theory], 3
    )
    return figure
