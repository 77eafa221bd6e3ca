r"""Which second moments of gated inputs the Fourier transform diagonalises.

Inputs are a ring. The notes hope for a single basis that diagonalises :math:`\Sigma^{xx}` across
time, by its Toeplitz or circulant structure. Pictures are sizes of entries in the Fourier basis,
dark to light over three decades, of the first sample: a circulant matrix is a diagonal there. That
holds of the inputs, and behind one gate of any half-space or bump, not of a tile, which sees one
part of the ring more than others. Behind two gates it holds of none but tilings, where there is
nothing. Gates that are shifts of each other, bumps and tilings, part the whole of :math:`A` into
one block for each frequency of the joint shift of pathways and inputs. Moments of gated inputs are
over samples at every place of the ring and with either sign, so that what is left is the doing of
the gates. In training, one basis does for the moment behind one gate of a ReLU network and not for
that behind all gates.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Complex, Float
from matplotlib.axes import Axes

from neuralrace.extensions.registry import Figure
from neuralrace.figures import frozen_gates, style
from neuralrace.figures.sweeps import learning_rate, metric
from neuralrace.metrics.gates.gating_loss import sampled
from neuralrace.metrics.gates.ring_structure import at_every_place
from neuralrace.results.cells import CellResults, Results
from neuralrace.theory.frozen_gates import gated_moments

DISTANCES = {
    "block_circulance_same": "one gate, $A_{ii}$",
    "block_circulance_other": "two gates, $A_{ij}$",
    "joint_violation": "$A$, outside blocks",
    "joint_eigenvalue_error": "eigenvalues of blocks",
}
MISSED = {
    "one gate": "one gate",
    "all gates": "all gates",
    "all gates, other start": "all gates,\nother start",
}
SMALL = 0.1
"""Shares up to this value are small, as in the claims."""
DECADES = 3
"""Number of powers of ten below the largest entry that have different shades."""

Moment = Float[np.ndarray, "unit input unit input"]


@Figure(
    layout="abc;def",
    height=3.9,
    cf={"a": "sec. 5", "d": "sec. 5", "f": "sec. 5"},
    reads={
        "ring": {
            "metrics": (
                "block_circulance_other block_circulance_same input_circulance_law "
                "input_circulance_samples joint_eigenvalue_error joint_violation"
            ),
        },
        "evolving": {"metrics": "basis_missed"},
    },
)
def legend(results: Results) -> style.Handles:
    """Gating schemes."""
    return [
        style.handle(_name(cell), linestyle="", **props)
        for cell, props in zip(results.cells("ring"), _styles(results), strict=True)
    ]


def panel_a(results: Results, ax: Axes) -> None:
    """Second moment of the inputs by their law, and the same in the Fourier basis."""
    cell = results.cells("ring")[0]
    moment = cell.spec.dataset.mixture().covariances.mean(axis=0)
    left, right = style.split(ax, 1, 2)[0]
    style.heat(left, moment, -1, 1, aspect="equal")
    left.set(xlabel="inputs", anchor="N")
    _picture(right, in_fourier_basis(moment))
    right.set_xlabel("frequencies")
    names = ("input_circulance_law", "input_circulance_samples")
    law, samples = (float(cell.get("metrics", name).mean("seed")) for name in names)
    ax.set_title(f"Inputs: {law:.2f} from circulant ({samples:.2f} on samples)")


def panel_b(results: Results, ax: Axes) -> None:
    """Second moment behind the first gate in the Fourier basis, by gating scheme."""
    _pictures(results, ax, lambda moment: in_fourier_basis(moment[0, :, 0]))
    ax.set_title(f"Behind one gate: {_distance(results, 'block_circulance_same')} off")


def panel_c(results: Results, ax: Axes) -> None:
    """Second moment behind the first two gates in the Fourier basis, by gating scheme."""
    _pictures(results, ax, lambda moment: in_fourier_basis(moment[0, :, 1 % len(moment)]))
    ax.set_title(f"Behind two gates: {_distance(results, 'block_circulance_other')} off")


def panel_d(results: Results, ax: Axes) -> None:
    """Norms of the parts of A that join two frequencies of the joint shift, by gating scheme."""
    _pictures(results, ax, by_joint_frequency)
    ax.set_title(f"All of $A$: {_distance(results, 'joint_violation')} outside blocks")


def panel_e(results: Results, ax: Axes) -> None:
    """Relative distances from circulant, and of A from blocks; bars are ranges over seeds."""
    cells = results.cells("ring")
    rows = style.named_rows(ax, DISTANCES.values())
    for index, (cell, props) in enumerate(zip(cells, _styles(results), strict=True)):
        offset = 0.24 * (index - (len(cells) - 1) / 2)
        positions = [row + offset for row in range(len(DISTANCES))]
        distances = [cell.get("metrics", name) for name in DISTANCES]
        style.point_series(rows, positions, distances, across=True, **props)
    rows.set(ylim=(len(DISTANCES) - 0.5, -0.5), xlim=(-0.03, None), xlabel="relative distance")
    ax.set_title("Distances from the symmetry")


def panel_f(results: Results, ax: Axes) -> None:
    """Part of the moment of a ReLU network at the end off the diagonal in a basis of the start."""
    cell = max(results.cells("evolving"), key=learning_rate)
    rows = style.named_rows(ax, MISSED.values())
    means = {}
    for row, moment in enumerate(MISSED):
        props = {"color": style.COLOURS["relu"], "marker": style.marker(row), "markersize": 5}
        missed = metric(cell, "basis_missed", moment=moment)
        means[moment] = style.points(rows, row, missed, across=True, **props)
    rows.axvline(SMALL, **style.GUIDE)
    rows.set(ylim=(len(MISSED) - 0.5, -0.5), xlim=(-0.03, None), xlabel="share of the norm missed")
    ax.set_title(f"One basis across time misses {means['all gates']:.2f}")


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


def _styles(results: Results) -> list[dict[str, Any]]:
    """Colours and markers of gating schemes."""
    return [
        {"color": style.categorical(index), "marker": style.marker(index)}
        for index in range(len(results.cells("ring")))
    ]


def _distance(results: Results, metric: str) -> str:
    """Mean distances of all schemes."""
    return ", ".join(
        f"{float(cell.get('metrics', metric).mean('seed')):.2f}" for cell in results.cells("ring")
    )


def _pictures(
    results: Results, ax: Axes, part: Callable[[Moment], Float[np.ndarray, "row column"]]
) -> None:
    """Draws a part of the moments of each gating scheme."""
    cells = results.cells("ring")
    for frame, cell in zip(style.split(ax, 1, len(cells))[0], cells, strict=True):
        _picture(frame, part(_moment(cell)))
        frame.set_xlabel(_name(cell).replace(", ", ",\n"))


def _picture(ax: Axes, sizes: Float[np.ndarray, "row column"]) -> None:
    """Draws sizes of entries over the largest, on a logarithmic scale."""
    largest = sizes.max() or 1.0
    shades = np.log10(np.maximum(sizes / largest, 10.0**-DECADES))
    style.heat(ax, shades, -DECADES, 0, aspect="equal", cmap=style.HEAT)
    ax.set_anchor("N")
