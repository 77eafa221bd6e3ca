r"""Gaps between layer norms and what bounds them, for every kind of start.

Basu, Mukherjee and Vasudevan, lemma 2 and its corollaries, have no figure of these. Rows are
starts: law, scale, and widths of the layers; of several pairs of layers, the largest value counts.
The gap of Frobenius norms keeps within the square root of the trace of the imbalance :math:`C` at
the start (a, b), of any two layers too (corollary 2.1). It is not invariant, as theorem 3 has it:
it is :math:`|\mathrm{tr}\,C|` over the sum of the norms, and shrinks as they grow (a, c). The bound
of eq. 11 on spectral norms lacks a root, and breaks for small weights (b). Balanced starts
(corollary 2.2) keep equal norms up to the step size; semi-orthogonal ones, which the corollary does
not mean, are not balanced.
"""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import style
from neuralrace.figures.sweeps import layer_widths
from neuralrace.results.cells import CellResults, Results
from neuralrace.theory.balance import norm_gap

EXPERIMENTS = ("balanced_start", "small_weights", "growth")
FLOOR = 1e-6
"""Smaller values are drawn at this value, with the marker `EDGE`."""
INITIAL = {"color": style.categorical(0), "marker": "o", "markerfacecolor": "white"}
FINAL = {"color": style.categorical(0), "marker": "o"}
BOUND = {"color": "black", "marker": "|", "markersize": 7, "markeredgewidth": 1.2}
IDENTITY = {"color": "black", "marker": "x", "markersize": 3}
EDGE = {"color": style.categorical(0), "marker": "<"}
TRACE = {"color": style.categorical(2), "marker": "^"}
ANY = {"color": style.categorical(1), "marker": "D", "markerfacecolor": "white"}
SPECTRAL = {"color": style.categorical(3), "marker": "s"}
WRITTEN = {"color": style.PAPER["color"], "marker": "v"}


@Figure(
    layout="abc",
    height=3.9,
    widths=(1.15, 1.0, 1.0),
    cf={"a": "eq. 8", "b": "lemma 2", "c": "theorem 3"},
    reads={
        "growth small_weights balanced_start": {
            "trajectory": "imbalance_trace layer_norm",
            "metrics": (
                "any_pair_gap_over_bound final_norm_gap initial_norm_gap norm_gap_identity_error "
                "norm_gap_over_bound norm_gap_rise"
            ),
        },
        "growth small_weights": {
            "metrics": "spectral_gap_over_bound spectral_gap_over_written_bound",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Gaps, their bounds, and guides."""
    styles = {
        "gap at the start, c: largest": INITIAL,
        "gap at the end": FINAL,
        f"below {FLOOR:.0e}": EDGE,
        r"a: $\sqrt{|\mathrm{tr}\,C|}$": BOUND,
        r"a: $|\mathrm{tr}\,C|$ over sum of norms": IDENTITY,
        r"b: over $\sqrt{|\mathrm{tr}\,C|}$": TRACE,
        "b: any two layers": ANY,
        r"b: spectral, over $\sqrt{|C|_2}$": SPECTRAL,
        "b: Basu et al., over $|C|_2$": WRITTEN,
    }
    return [
        *(style.handle(name, linestyle="", **props) for name, props in styles.items()),
        style.handle("c: Basu et al.: invariant", **style.PAPER),
        style.handle("b: where a bound breaks", **style.GUIDE),
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Gap of adjacent layer norms at the start and at the end; bars are ranges over seeds. Black
    are means of the bound of the trace, and of the gap at the end by the identity, which is told
    how far it is off, in norms.
    """
    rows = _rows(results)
    error = 0.0
    for row, (cell, index) in enumerate(rows):
        at = {"init_scale": index}
        trace = cell.get("trajectory", "imbalance_trace").isel(at | {"time": 0})
        norms = cell.get("trajectory", "layer_norm").isel(at | {"time": -1})
        sums = norms.rolling(layer=2).sum().isel(layer=slice(1, None))
        trace = trace.transpose("seed", "pair")
        gap = norm_gap(trace.values, sums.transpose("seed", "layer").values)
        identity = trace.copy(data=gap)
        for values, props in (
            (cell.get("metrics", "initial_norm_gap").isel(at), INITIAL),
            (cell.get("metrics", "final_norm_gap").isel(at), FINAL),
            ((abs(trace) ** 0.5).max("pair").mean("seed").expand_dims("seed"), BOUND),
            (identity.max("pair").mean("seed").expand_dims("seed"), IDENTITY),
        ):
            _point(ax, row, values, props)
        error = np.fmax(error, cell.get("metrics", "norm_gap_identity_error").isel(at).max())
    _name(ax, rows)
    ax.set(xlabel="gap of norms", xlim=(FLOOR / 2, None))
    ax.set_title(rf"It is $|\mathrm{{tr}}\,C|$ over the sum to {float(error):.1g}")


def panel_b(results: Results, ax: Axes) -> None:
    """Largest gap over its bound, which breaks to the right of the grey line: of Frobenius norms
    over the root of the trace, of any two layers over that of all traces between, and of spectral
    norms over the norm of :math:`C`, as eq. 11 prints it, and over its root.
    """
    rows, worst = _rows(results), []
    for row, (cell, index) in enumerate(rows):
        for shift, name, props in (
            (-0.24, "norm_gap_over_bound", TRACE),
            (-0.08, "any_pair_gap_over_bound", ANY),
            (0.08, "spectral_gap_over_bound", SPECTRAL),
            (0.24, "spectral_gap_over_written_bound", WRITTEN),
        ):
            if not name.startswith("spectral") or cell.name.split("/")[1] != EXPERIMENTS[0]:
                values = cell.get("metrics", name).isel(init_scale=index)
                _point(ax, row + shift, values, props)
                worst += [values.max()] * (props is WRITTEN)
    ax.axvline(1, **style.GUIDE)
    _name(ax, rows, False)
    ax.set(xlabel="largest gap over bound", xlim=(0.01, None))
    ax.set_title(f"Eq. 11 is exceeded up to {float(np.nanmax(worst)):.2g} times")


def panel_c(results: Results, ax: Axes) -> None:
    """Gap at the end, and the largest one (open), over that at the start: medians over seeds.
    Starts without a gap have none to compare with.
    """
    rows, ends = _rows(results), []
    for row, (cell, index) in enumerate(rows):
        at = {"init_scale": index}
        start, end = (
            cell.get("metrics", f"{when}_norm_gap").isel(at) for when in ("initial", "final")
        )
        gaps = (end / start.where(start > FLOOR)).median("seed")
        rise = cell.get("metrics", "norm_gap_rise").isel(at).median("seed")
        if np.isfinite(gaps).any():
            ax.plot(gaps, [row] * gaps.size, linestyle="", **FINAL)
            ax.plot(rise, [row] * rise.size, linestyle="", **INITIAL)
            ends.append(float(gaps.max()))
    ax.axvline(1, **style.PAPER)
    _name(ax, rows, False)
    ax.set(xlabel="gap over that at the start")
    ax.set_title(f"Ends at {min(ends):.0%} to {max(ends):.0%}")


def _rows(results: Results) -> list[tuple[CellResults, int]]:
    """Cells with indices of init scales."""
    return [
        (cell, index)
        for experiment in EXPERIMENTS
        for cell in results.cells(experiment)
        for index in range(cell.metrics.sizes["init_scale"])
    ]


def _point(ax: Axes, row: int | float, values: xr.DataArray, props: dict[str, Any]) -> None:
    """Draws the largest value over pairs, (seed); values below the floor are drawn at it."""
    values = values.where(np.isfinite(values))
    values = values.max("pair") if "pair" in values.dims else values
    if values.notnull().any():
        low = float(values.max()) < FLOOR
        style.points(ax, row, values.clip(min=FLOOR), across=True, **(EDGE if low else props))


def _name(ax: Axes, rows: list[tuple[CellResults, int]], named: bool = True) -> None:
    ax.set_yticks(range(len(rows)), [_start(*row) if named else "" for row in rows])
    ax.set(xscale="log", ylim=(len(rows) - 0.5, -0.5))
    ax.grid(axis="y", color="0.9", linewidth=0.5)
    ax.tick_params(axis="y", length=0)


def _start(cell: CellResults, index: int) -> str:
    name = cell.spec.init.name.replace("_", "-").capitalize()
    return f"{name} {cell.spec.init_scales[index]:g}\n{'-'.join(map(str, layer_widths(cell)))}"
