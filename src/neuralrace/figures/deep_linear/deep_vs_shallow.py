"""What depth adds: the semantic hierarchy learned with and without a hidden layer."""

from matplotlib.figure import Figure as Canvas

from neuralrace.figures import style
from neuralrace.records.results import Results
from neuralrace.registry import Figure

NETWORKS = {
    "semantic_deep": ("aligned_modes", "one hidden layer"),
    "semantic_shallow": ("shallow_modes", "no hidden layer"),
}
"""Experiment: its theory and what to call it."""


@Figure(
    reads={
        "semantic_deep semantic_shallow": {
            "trajectory": "mode_strength",
            "theory": "mode_strength",
            "metrics": "half_time half_time_over_predicted",
        },
    }
)
def draw(results: Results) -> Canvas:
    """Mode strengths of both networks against theory, and the time that each mode takes in both.

    All at the smallest init scale, where the networks differ most.
    """
    figure, axes = style.panels(len(NETWORKS) + 1, height=1.45)
    times = axes[-1, 0]
    for index, (experiment, (solution, name)) in enumerate(NETWORKS.items()):
        cell = results.cell(experiment)
        ax, time = axes[index, 0], cell.flow_time
        at = {"init_scale": int(cell.trajectory["init_scale"].values.argmin())}
        modes = cell.get("trajectory", "mode_strength").isel(at)
        theory = cell.get("theory", "mode_strength", solution=solution).isel(at).mean("seed")
        half = cell.get("metrics", "half_time").isel(at)
        predicted = half / cell.get("metrics", "half_time_over_predicted").isel(at)
        look = {"color": style.distinct(index), "marker": style.marker(index)}
        for mode, colour in style.mode_colours(cell.strength).items():
            style.over_seeds(ax, time, modes.sel(mode=mode), color=colour)
            ax.plot(time, theory.sel(mode=mode), **style.THEORY)
            style.points(
                times, mode, half.sel(mode=mode), label=name if mode == 1 else None, **look
            )
        times.plot(predicted["mode"], predicted.mean("seed"), **style.THEORY)
        ax.set(ylabel="mode strength", xlim=(0, time[-1]))
        ax.sharex(axes[0, 0])
    axes[0, 0].tick_params(labelbottom=False)
    axes[1, 0].set_xlabel(style.FLOW_TIME)
    strength = cell.strength
    names = [
        f"{mode} ($s$ = {float(strength.sel(mode=mode)):.2f})" for mode in strength["mode"].values
    ]
    times.set_xticks(strength["mode"].values, names)
    times.set(xlabel="mode", ylabel="time to half\n" + r"(units of $\tau$)", ylim=(0, None))
    times.legend(loc="upper left")
    titles = [name for _, name in NETWORKS.values()]
    style.letters(axes[:, 0], [*titles, "time to half of each mode's target"])
    modes = style.mode_entries(strength)
    theory = style.entry("theory", **style.THEORY)
    style.legend(figure, [*modes, style.BAND, theory], columns=3)
    return figure
