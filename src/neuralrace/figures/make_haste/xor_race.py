"""XoR with a linear margin: either kind of pathway alone, and how far the race of both is ahead.

Gated networks with a linear pathway for each class or an XoR pathway for each example follow the
closed forms of Jarvis et al., "Make Haste Slowly" (appendix C, eqs. 22 and 23), and learn equally
fast about Delta* = sqrt(2/3), the vertical line. The paper has a ReLU network be as fast as the
faster kind alone (dotted at 1, from the ReLU network's own units of either kind). It holds units of
both kinds, which learn from one residual, and so is faster than either near Delta*; theory of this
race starts from its initial weights with nothing fitted. The larger the init scale, the further it
is ahead. Far from Delta* networks from small starts are 0.2 to 0.5% later than theory, as their
steps are finite; half the step halves this. Means and ranges over 10 runs.
"""

from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import margins, style
from neuralrace.figures.sweeps import metric_mean, smallest_scale
from neuralrace.results.cells import Results

LATE = 0.7
"""Half time over the time drawn from which a name has no room on the right of its curve."""


@Figure(
    layout="aab",
    height=2.7,
    widths=(1.3, 1.3, 1.4),
    cf={"a": "eqs. 22, 23"},
    reads={
        "xor_margin": {
            "metrics": "loss_half_time predicted_loss_half_time",
        },
        "xor_margin_gated": {
            "trajectory": "loss",
            "theory": "loss",
            "metrics": "loss_half_time",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Init scales of b, and theory."""
    return margins.legend(results.cells("xor_margin"))


def panel_a(results: Results, ax: Axes) -> None:
    """Losses of the two gated networks themselves from one strength of all pathways, 5 runs of
    each, with their closed forms on top. Numbers are half times: mean times to half of the loss.
    """
    pairs = margins.gated_pairs(results)
    axes = style.split(ax, 1, len(pairs), sharex=True, sharey=True)[0]
    for part, pair in zip(axes, pairs, strict=True):
        kinds = (("linear", margins.LINEAR), ("XoR", margins.XOR))
        halves = [metric_mean(cell, "loss_half_time") for cell in pair]
        for index, (cell, (name, props)) in enumerate(zip(pair, kinds, strict=True)):
            half, faster = halves[index], index == halves.index(min(halves))
            loss = smallest_scale(cell.get("trajectory", "loss"))
            closed = smallest_scale(cell.get("theory", "loss", solution="reduction")).mean("seed")
            style.over_seeds(part, cell.flow_time, loss, **props)
            part.plot(cell.flow_time, closed, **style.THEORY)
            # The faster kind has room on the left, the other on the right, unless it is too late.
            left = faster or half > LATE * float(cell.flow_time[-1])
            text = f"{name}\n{half:.1f}"
            level = float(loss.max()) * (0.15 if left else 0.65)
            time = float(cell.flow_time[int((loss.mean("seed") > level).sum()) - 1])
            part.annotate(text, (time, level), (-4 if left else 6, 0),
                          textcoords="offset points", ha="right" if left else "left",
                          va="center", fontsize=6.5, **props)  # fmt: skip
        part.set_title(margins.title(pair[0]), loc="center")
        part.set(xlabel=r"flow time ($\tau$)", ylim=(0, 1.2 * float(loss.max())))
        part.margins(x=0)
    axes[0].set_ylabel("loss")
    axes[0].text(0.02, 0.97, "numbers: half times", va="top", color="0.35", fontsize=6.5,
                 transform=axes[0].transAxes)  # fmt: skip
    ax.set_title(r"Linear and XoR pathways nearly tie at $\Delta^*$")


def panel_b(results: Results, ax: Axes) -> None:
    """Learning time of the ReLU network over that of the faster kind of pathway alone, at all init
    scales, moved a little apart; the race is dashed.
    """
    cells = margins.by_margin(results, "xor_margin")
    race = [margins.over_faster(cell, "margin_race") for cell in cells]
    own = list(map(margins.over_faster, cells))
    margins.draw_by_margin(ax, cells, own, race)
    ax.axhline(1, **style.PAPER)
    # The name of the crossover stands at the bottom.
    x, side = (0.02, "left") if sum(ax.get_xlim()) / 2 < margins.CROSSOVER else (0.98, "right")
    text = f"bars: range of {own[0].sizes['seed']} runs\ndotted: equally fast\n(Jarvis et al.)"
    ax.text(x, 0.02, text, ha=side, fontsize=6.5, transform=ax.transAxes)
    ax.set_ylabel("half time of ReLU network,\nover that of the faster kind")
    ax.set_title(r"ReLU beats the faster kind near $\Delta^*$")
