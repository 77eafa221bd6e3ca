"""Modes of a task: their strengths over time, and the decomposition that they come from."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from neuralrace.figures import style
from neuralrace.figures.ends import label_ends
from neuralrace.results.cells import CellResults


def draw_strengths(ax: Axes, cell: CellResults, solution: str, init_scale: int = 0) -> None:
    """The strength of each mode of the target, with theory on top.

    Args:
        ax: axes to draw on.
        cell: has recorded mode strengths.
        solution: label of the solution that is drawn as theory, as its mean over seeds.
        init_scale: index of the init scale.
    """
    modes = cell.get("trajectory", "mode_strength").isel(init_scale=init_scale)
    solved = cell.get("theory", "mode_strength", solution=solution).isel(init_scale=init_scale)
    draw_modes(ax, cell, modes, solved)
    end = learning_end(cell, solved.mean("seed"))
    ax.set(xlabel=style.FLOW_TIME, ylabel="mode strength", xlim=(0, end))


def label_modes(ax: Axes, s: xr.DataArray, target: xr.DataArray | None = None) -> None:
    """The singular value of each mode at the right end of its strength.

    Args:
        ax: axes with strengths over time, with their final limits.
        s: singular values by mode; modes of equal ones share a label.
        target: final strengths by mode, if they are not the singular values.
    """
    target = s if target is None else target
    colours = style.mode_colours(s)
    by_value = {f"{float(s.sel(mode=mode)):.3g}": mode for mode in colours}
    label_ends(
        ax,
        [
            (float(target.sel(mode=mode)), f"$s$ = {text}", colours[mode])
            for text, mode in by_value.items()
        ],
    )


def learning_end(cell: CellResults, curves: xr.DataArray) -> float:
    """The flow time at which the curves of all modes of the target have settled."""
    return style.settling_time(curves.where(cell.strength != 0, 0), cell.flow_time)


def signed_vectors(cell: CellResults) -> tuple[np.ndarray, np.ndarray]:
    """Singular vectors of the task, (output, mode) and (item, mode), in a `fixed_basis`."""
    modes = cell.data.modes
    return fixed_basis(modes.u, modes.s, modes.v)


def fixed_basis(u: np.ndarray, s: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Singular vectors with a fixed basis of equal modes, and a fixed sign.

    Vectors of equal singular values are determined up to a rotation, and each up to its sign. Here
    the first item vector of equal modes is what they span of the first item, the next one of the
    next item, and so on, each with a positive entry for its item.
    """
    u, v = u.copy(), v.copy()
    for group in equal_modes(s):
        turn = _first_items(v[:, group])
        u[:, group], v[:, group] = u[:, group] @ turn, v[:, group] @ turn
    return u, v


def equal_modes(s: np.ndarray) -> list[list[int]]:
    """Indices of modes of one singular value, but for rounding, largest first."""
    groups: list[list[int]] = []
    for index in np.argsort(-s, kind="stable").tolist():
        if groups and s[groups[-1][0]] - s[index] <= 1e-9 * s.max():
            groups[-1].append(index)
        else:
            groups.append([index])
    return groups


def _first_items(v: np.ndarray) -> np.ndarray:
    """The rotation of orthonormal columns that spans the items one by one, from the first on."""
    turn = np.zeros((v.shape[1], 0))
    for row in v:  # the part of each item in the space of the columns
        rest = row - turn @ (turn.T @ row)
        if turn.shape[1] < v.shape[1] and np.linalg.norm(rest) > 1e-6:
            turn = np.column_stack([turn, rest / np.linalg.norm(rest)])
    return turn


def draw_decomposition(
    ax: Axes,
    cell: CellResults,
    matrices: Sequence[np.ndarray],
    symbols: Sequence[str],
    output_names: Sequence[str] = (),
) -> np.ndarray:
    """A map from items to outputs and its three factors side by side, entries from -1 to 1.

    Strengths of modes can be larger than 1: they are written on grey, which is no shade of the map.

    Args:
        ax: axes of a panel, which are split.
        cell: a cell of the task, for the names of items, outputs and modes.
        matrices: the map, output vectors, strengths of the modes and item vectors.
        symbols: titles of the matrices.
        output_names: names of the rows of the output vectors; none when absent.

    Returns:
        The axes of the matrices.
    """
    data = cell.data
    modes = [str(mode) for mode in cell.strength["mode"].values]
    rows = (data.output_names, output_names, modes, modes)
    columns = (data.item_names, modes, modes, data.item_names)
    total, vectors, strengths, items = matrices
    written = np.where(np.eye(len(strengths), dtype=bool), np.nan, strengths)
    axes = style.split(ax, 1, len(matrices))[0]
    images = [
        style.heat(part, matrix, -1, 1, left, below)
        for part, matrix, left, below in zip(
            axes, (total, vectors, written, items), rows, columns, strict=True
        )
    ]
    axes[2].set_facecolor("0.88")  # seen through the entries without a shade
    for mode, value in enumerate(strengths.diagonal()):
        axes[2].text(mode, mode, f"{value:.1f}", fontsize=6, ha="center", va="center")
    for part, symbol in zip(axes, symbols, strict=True):
        part.set_title(symbol, loc="center")
    ax.figure.colorbar(
        images[-1], ax=list(axes), ticks=(-1, 0, 1), aspect=12, pad=0.02, label="entry"
    )
    return axes


def draw_task(ax: Axes, cell: CellResults) -> None:
    """The correlation of items and outputs, and the modes that it splits into.

    These are output vectors, singular values and item vectors. The correlation and the singular
    values are over the variance of inputs.

    Args:
        ax: axes of a panel, which are split.
        cell: a cell of the task.
    """
    data, modes = cell.data, cell.data.modes
    # entries on the edge between two colours have the same one on every machine
    u, v = (vectors.round(9) for vectors in signed_vectors(cell))
    values = cell.target.values  # singular values over the variance of inputs
    total = data.sigma_yx * values[0] / modes.s[0]
    symbols = (
        r"$\Sigma^{yx}$ over input variance",
        "$=$ $U$",
        r"$\times$ $S$ (values written)",
        r"$\times$ $V^T$",
    )
    matrices = (total, u, np.diag(values), v.T)
    axes = draw_decomposition(ax, cell, matrices, symbols, data.output_names)
    for part in axes[1:3]:
        part.set_xlabel("mode")


def draw_modes(
    ax: Axes, cell: CellResults, curves: xr.DataArray, theory: xr.DataArray, **props: Any
) -> None:
    """Curves (seed, time, mode) of the modes of the target, with their mean theory on top.

    Modes of one strength share a dashed line: several, out of step, would look solid.
    """
    mean, learned = theory.mean("seed"), cell.strength[cell.strength.values != 0]
    for mode, colour in style.mode_colours(cell.strength).items():
        style.over_seeds(ax, cell.flow_time, curves.sel(mode=mode), color=colour, **props)
    for group in equal_modes(learned.values):
        ax.plot(cell.flow_time, mean.sel(mode=learned["mode"][group]).mean("mode"), **style.THEORY)
