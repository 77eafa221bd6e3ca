"""From how many trained partners on untrained pairs of domains follow (fig. 5c)."""

from matplotlib.figure import Figure as Canvas

from neuralrace.figures import domains, style
from neuralrace.records.results import Results
from neuralrace.registry import Figure


@Figure(
    reads={
        "generalisation": {
            "trajectory": "",
            "metrics": "final_trained_error final_untrained_error",
        },
    }
)
def draw(results: Results) -> Canvas:
    """Error of trained and untrained pairs at the end against K/M, linear and logarithmic."""
    cells = domains.by_partners(results, "generalisation")
    figure, axes = style.panels(2, height=1.9, sharex=True)
    linear, logarithmic = axes[:, 0]
    for ax in (linear, logarithmic):
        for name, look in (("trained", domains.TRAINED), ("untrained", domains.UNTRAINED)):
            errors = [
                cell.get("metrics", f"final_{name}_error").isel(init_scale=0) for cell in cells
            ]
            domains.draw_by_partners(ax, cells, [e.clip(min=domains.FLOOR) for e in errors], look)
        ax.axvline(domains.SHARE, **style.PAPER)
        ax.set_ylabel("relative error")
    linear.set_ylim(0, None)
    logarithmic.set(yscale="log", xlabel=domains.PARTNERS)
    style.letters(axes[:, 0], ["error at the end of training", "the same, logarithmic"])
    entries = [
        style.entry("trained pairs", **domains.TRAINED),
        style.entry("untrained pairs", **domains.UNTRAINED),
        style.BAND,
        style.entry(f"Saxe et al.: {domains.SHARE:.0%}", **style.PAPER),
    ]
    style.legend(figure, entries, columns=2)
    return figure
