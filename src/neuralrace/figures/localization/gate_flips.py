"""How many gates of a ReLU network flip while it learns, and when.

A gate is that of one unit on one sample of a fixed sample. The notes observe that weights grow
uniformly for much of the training, and take from it that gates may be relatively constant. Here
about three gates in ten end up other than they started, where half would by chance, and six in ten
never flip. The share follows the angle between the weights then and now (dashed, from the weights
of the simulation and the covariances of the classes with nothing fitted), which is exact for
Gaussian inputs: those at the lower gain are next to Gaussian, and as many gates flip there, where
nothing localises. Gates that flip do so early.
"""

import xarray as xr
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.receptive_fields import draw_by_scale, marginal_name, scale_styles
from neuralrace.results.cells import CellResults, Results

CLOCK = "snapshot_flow_time"
FEW = 0.1
"""Gates are constant if at most this share flips, as in the claims."""
TEXT = {"color": "0.4", "fontsize": 6.5}
"""Text at a guide."""
BY_CHANCE = 0.5
"""Share of gates that differ between two unrelated half-spaces."""


@Figure(
    layout="abc;dde",
    height=3.9,
    heights=(1.0, 1.15),
    cf={"a": "sec. 2.1", "c": "sec. 2.1"},
    reads={
        "gate_flips": {
            "metrics": (
                "final_gate_flips flips_before_localisation gate_flip_fraction gate_flips_between "
                "never_changed predicted_gate_flips"
            ),
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Init scales, and the formula."""
    handles = style.scale_handles(scale_styles(results.cells("gate_flips")[0]))
    return [*handles, style.BAND, style.handle("Gaussian formula", **style.THEORY)]


def panel_a(results: Results, ax: Axes) -> None:
    """Gates unlike those at the start over time, at the gain at which fields localise."""
    _flips(results.cells("gate_flips")[0], ax)


def panel_b(results: Results, ax: Axes) -> None:
    """The same at the lower gain, where nothing localises."""
    _flips(results.cells("gate_flips")[-1], ax)


def panel_c(results: Results, ax: Axes) -> None:
    """Gates that differ at the end (full markers), and those that never flip (hollow)."""
    cells = results.cells("gate_flips")
    middles, never = [], []
    for index, cell in enumerate(cells):
        scales = len(cell.spec.init_scales)
        first = scales * 1.4 * index
        for name, fill in (("final_gate_flips", "full"), ("never_changed", "none")):
            draw_by_scale(ax, cell, _first_layer(cell, name), first, fillstyle=fill)
        never.append(float(_first_layer(cell, "never_changed").mean("seed").min()))
        middles.append(first + (scales - 1) / 2)
    for level, text in ((FEW, "few"), (BY_CHANCE, "chance")):
        ax.axhline(level, **style.GUIDE)
        ax.text(1, level, text, ha="right", va="bottom", transform=ax.get_yaxis_transform(), **TEXT)
    ax.set_xticks(middles, map(marginal_name, cells))
    ax.set(xlim=(-0.8, None), ylim=(0, 1), ylabel="share of gates")
    ax.legend(
        handles=[
            style.handle(label, linestyle="", marker="o", color="0.3", fillstyle=fill)
            for label, fill in (("never flip", "none"), ("differ at the end", "full"))
        ],
        loc="upper left",
    )
    ax.set_title(f"{min(never):.0%} or more never flip")


def panel_d(results: Results, ax: Axes) -> None:
    """Gates that differ between two times, at the largest init scale: early flips are at edges."""
    cells = results.cells("gate_flips")
    axes = style.split(ax, 1, len(cells), sharey=True)[0]
    for part, cell in zip(axes, cells, strict=True):
        values = _first_layer(cell, "gate_flips_between")
        slowest = float(values["init_scale"].max())
        shown = values.sel(init_scale=slowest).mean("seed")
        time = shown[CLOCK]
        shades = part.pcolormesh(time, time, shown, vmin=0, vmax=BY_CHANCE, cmap=style.HEAT)
        part.set_aspect("equal")
        part.set_xlabel(f"flow time, {marginal_name(cell)}")
    axes[0].set_ylabel("flow time")
    ax.figure.colorbar(shades, ax=list(axes), label="gates that differ", aspect=14)
    ax.set_title(f"Gates that differ between any two times, init scale {slowest:g}")


def panel_e(results: Results, ax: Axes) -> None:
    """Flips up to the time when participation is half way, over those at the end."""
    cell = results.cells("gate_flips")[0]
    share = cell.get("metrics", "flips_before_localisation")
    draw_by_scale(ax, cell, share)
    ax.axhline(0.5, **style.GUIDE)
    ax.text(-0.4, 0.51, "as even as localisation", va="bottom", **TEXT)
    style.named_columns(ax, [f"{scale:g}" for scale in scale_styles(cell)])
    ax.set(xlabel="init scale", ylabel="share of all flips", ylim=(0, 1.1))
    least = float(share.mean("seed").min())
    ax.set_title(f"{least:.0%} or more precede localisation")


def _first_layer(cell: CellResults, metric: str) -> xr.DataArray:
    """A metric of the first hidden layer."""
    return cell.get("metrics", metric).sel(layer=1, drop=True)


def _flips(cell: CellResults, ax: Axes) -> None:
    """Draws the share of gates unlike the start, by init scale, with theory on top."""
    flips = _first_layer(cell, "gate_flip_fraction")
    predicted = cell.get("metrics", "predicted_gate_flips").mean("seed")
    for scale, props in scale_styles(cell).items():
        style.over_seeds(ax, flips[CLOCK], flips.sel(init_scale=scale), **props)
        ax.plot(predicted[CLOCK], predicted.sel(init_scale=scale), **style.THEORY)
    ax.axhline(FEW, **style.GUIDE)
    ax.set(xlabel=style.FLOW_TIME, ylabel="gates unlike the start")
    ax.set(xlim=(0, float(flips[CLOCK][-1])), ylim=(0, 0.5))
    end = float(flips.isel(snapshot=-1).mean())
    ax.set_title(f"{marginal_name(cell).capitalize()}: {end:.0%} end up flipped")
