r"""Which second moments of gated inputs the Fourier transform diagonalises.

Inputs are a ring. The notes hope for a single basis that diagonalises :math:`\Sigma^{xx}` across
time, by its Toeplitz or circulant structure. A circulant matrix, such as the second moment of the
inputs by their law, is a diagonal in the Fourier basis. That holds behind one gate of any
half-space or bump, not of a tile, which sees one part of the ring more than others. Behind two
gates it holds of none but tilings, where there is nothing. Gates that are shifts of each other,
bumps and tilings, part the whole of :math:`A` into one block for each frequency of the joint shift
of pathways and inputs. Moments of gated inputs are over samples at every place of the ring and with
either sign, so that what is left is the doing of the gates. In training, one basis does for the
moment behind one gate of a ReLU network and not for that behind all gates.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Complex, Float
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from matplotlib.ticker import PercentFormatter

from neuralrace.extensions.registry import Figure
from neuralrace.figures import frozen_gates, style
from neuralrace.figures.sweeps import learning_rate, metric
from neuralrace.metrics.gates.gating_loss import sampled
from neuralrace.metrics.gates.ring_structure import at_every_place
from neuralrace.results.cells import CellResults, Results
from neuralrace.theory.frozen_gates import gated_moments

MISSED = {
    "one gate": "one\ngate",
    "all gates": "all\ngates",
    "all gates, other start": "all gates,\nbasis of\nanother run",
}
NONE = 1e-10
"""Shares up to this value are rounding error."""
DECADES = 3
"""Number of powers of ten below the largest entry that have different shades."""

Moment = Float[np.ndarray, "unit input unit input"]
Matrix = Float[np.ndarray, "row column"]


@Figure(
    layout="ab",
    height=3.9,
    widths=(2.4, 1.0),
    cf={"a": "sec. 5", "b": "sec. 5"},
    reads={
        "ring": {"metrics": "block_circulance_other block_circulance_same joint_violation"},
        "evolving": {"metrics": "basis_missed"},
    },
)
def legend(results: Results) -> style.Handles:
    """Nothing: matrices have names and a colour bar."""
    return []


def panel_a(results: Results, ax: Axes) -> None:
    """Sizes of entries in the Fourier basis, of the first sample, on a logarithmic scale.

    Rows are gating schemes. Columns are the second moment behind the first gate, that behind the
    first two gates, and the norms of the blocks of the whole of A by frequencies of the joint
    shift of pathways and inputs. Below each is the part of its norm that is off the diagonal, the
    mean of five samples.
    """
    cells = results.cells("ring")
    axes = style.split(ax, len(cells), len(PARTS))
    for row, cell in zip(axes, cells, strict=True):
        moment = _moment(cell)
        for frame, (name, (part, measure)) in zip(row, PARTS.items(), strict=True):
            sizes = part(moment)
            image = _picture(frame, sizes)
            off = cell.get("metrics", measure)
            missed = float(off.mean("seed"))
            diagonal = missed < NONE
            kept = "diagonal" if sizes.any() else "zero"
            frame.set_xlabel(kept if diagonal else f"{missed:.0%} off-diagonal")
            frame.xaxis.label.set_fontweight("bold" if diagonal and sizes.any() else "normal")
            if frame is row[-1]:
                frame.spines[:].set(visible=True, linewidth=1.6)
            frame.set_title(name if frame in axes[0] else "", loc="center")
        row[0].set_ylabel(_name(cell))
    bar = ax.figure.colorbar(image, ax=axes, aspect=30, shrink=0.8)
    bar.ax.set_title("size over\nlargest", loc="left", pad=8)
    lowest, *others = (f"$10^{{{n}}}$" for n in range(-DECADES, 1))
    bar.set_ticks(range(-DECADES, 1), labels=[rf"$\leq$ {lowest}", *others])
    ax.set_title("Joint frequencies (framed) diagonalise all but half-spaces")


def panel_b(results: Results, ax: Axes) -> None:
    """Share of the norm of a ReLU network's moment at the end that is off the diagonal in a basis.

    The basis is that of the moment at the start, or at the start of another run. Dots are five
    runs, and bars their medians.
    """
    cell = max(results.cells("evolving"), key=learning_rate)
    style.named_columns(ax, MISSED.values())
    ax.set(ylim=(-0.02, 0.5), ylabel="ReLU network: off-diagonal share")
    ax.set_xlabel("in the basis at the start")
    ax.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    dots = {"color": style.COLOURS["relu"], "marker": "o", "alpha": 0.6, "clip_on": False}
    for column, moment in enumerate(MISSED):
        missed = metric(cell, "basis_missed", moment=moment).round(10)
        style.single_runs(ax, column, missed, 0.2, **dots)
    marks = [
        style.handle("one run", linestyle="", **dots),
        style.handle("median", color="0.2", linewidth=1.2),
    ]
    ax.legend(handles=marks, loc="upper left")
    ax.set_title("One gate keeps its basis")


def in_fourier_basis(moment: Float[np.ndarray, "input input"]) -> Float[np.ndarray, "input input"]:
    """Sizes of the entries of a matrix in the Fourier basis; off its diagonal 0 if circulant."""
    return np.abs(np.fft.ifft(np.fft.fft(moment, axis=0), axis=1))


def by_joint_frequency(moment: Moment) -> Float[np.ndarray, "frequency frequency"]:
    """Norms of the parts that join two frequencies of the joint shift of pathways and inputs.

    Args:
        moment: of gated inputs; pathways lie evenly on the ring.

    Raises:
        ValueError: pathways do not divide inputs.
    """
    units, inputs = moment.shape[:2]
    if inputs % units:
        raise ValueError(f"{units} units cannot lie evenly on a ring of {inputs} inputs")
    unit = np.arange(units)
    site = (unit[:, None] * (inputs // units) + np.arange(inputs)) % inputs
    relative = moment[
        unit[:, None, None, None], site[:, :, None, None], unit[:, None], site[None, None]
    ]
    parts: Complex[np.ndarray, "frequency input frequency input"]
    parts = np.fft.ifft(np.fft.fft(relative, axis=0), axis=2)
    return np.linalg.norm(parts, axis=(1, 3))


def _moment(cell: CellResults) -> Moment:
    """Second moment of gated inputs, with samples at every position and with either sign."""
    data = at_every_place(sampled(cell.spec, 0))
    gates = cell.gated.gates.gates(data)
    return gated_moments(data.x, data.y[:, 0], gates)[1]


def _name(cell: CellResults) -> str:
    return frozen_gates.scheme_name(frozen_gates.gates(cell))


PARTS: dict[str, tuple[Callable[[Moment], Matrix], str]] = {
    "$A_{ii}$, one gate,\nby frequency": (
        lambda moment: in_fourier_basis(moment[0, :, 0]),
        "block_circulance_same",
    ),
    "$A_{ij}$, two gates,\nby frequency": (
        lambda moment: in_fourier_basis(moment[0, :, 1 % len(moment)]),
        "block_circulance_other",
    ),
    "$A$, all gates,\nby joint frequency": (by_joint_frequency, "joint_violation"),
}
"""Parts of the second moments that are drawn, and how far they are from a diagonal, by name."""


def _picture(ax: Axes, sizes: Matrix) -> AxesImage:
    """Draws sizes of entries over the largest, on a logarithmic scale."""
    largest = sizes.max() or 1.0
    shades = np.log10(np.maximum(sizes / largest, 10.0**-DECADES))
    return style.heat(ax, shades, -DECADES, 0, aspect="equal", cmap=style.HEAT)
