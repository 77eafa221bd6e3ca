"""Gated networks with frozen gates: names of gating schemes, and marks of the ReLU network."""

import xarray as xr
from matplotlib.axes import Axes

from neuralrace.config.cell import Cell
from neuralrace.figures import style
from neuralrace.figures.sweeps import cannot_draw
from neuralrace.networks.gated import Gated
from neuralrace.networks.gates.base import SampleScheme
from neuralrace.networks.gates.bumps import Bumps
from neuralrace.networks.gates.half_space import HalfSpace
from neuralrace.networks.gates.tiling import Tiling
from neuralrace.results.cells import CellResults

RELU = {"color": style.COLOURS["relu"], "linewidth": 1.6}


def gates(cell: CellResults) -> SampleScheme:
    """The gating scheme of a cell.

    Raises:
        UserError: the network has no gates that depend on samples.
    """
    network = cell.spec.network
    if not isinstance(network, Gated) or not isinstance(network.gates, SampleScheme):
        raise cannot_draw(cell, "network", "gates by sample")
    return network.gates


def scheme_name(gating: SampleScheme) -> str:
    """Name of a gating scheme, with its parameters."""
    if isinstance(gating, HalfSpace):
        kind = "antipodal pairs" if gating.antipodal else "half-spaces"
        return f"{kind}, {gating.copies} copies" if gating.copies > 1 else kind
    if isinstance(gating, Bumps):
        return f"bumps, width {gating.width:g}" if gating.width else "single inputs"
    if isinstance(gating, Tiling):
        if gating.width is None:
            return "tiling, random"
        return f"tiling, width {gating.width:g}" if gating.width else "tiling, single inputs"
    return gating.model_dump()["name"].replace("_", " ")


def source_names(cell: CellResults) -> dict[str, str]:
    """Labels of the coordinate `gates_from`, the source of frozen gates, with their names."""
    # Only the specification in the metrics file has candidates; that of a trajectory does not.
    candidates = Cell.model_validate_json(cell.metrics.attrs["spec"]).candidates
    names: dict[str, str] = {
        name: scheme_name(network.gates)
        for name, network in candidates.items()
        if isinstance(network.gates, SampleScheme)
    }
    names |= {"initial": "ReLU, at the start", "trained": "ReLU, at the end"}
    labels = map(str, cell.get("metrics", "frozen_loss")["gates_from"].values)
    return {label: names.get(label, label) for label in labels}


def draw_relu(ax: Axes, values: xr.DataArray, across: bool = False) -> float:
    """A measure of ReLU networks: the mean as a line, the range over seeds as a band.

    `across` is for measures along x. Returns the mean.
    """
    low, mean, high = float(values.min()), float(values.mean()), float(values.max())
    band, line = (ax.axvspan, ax.axvline) if across else (ax.axhspan, ax.axhline)
    band(low, high, color=RELU["color"], alpha=0.2, linewidth=0)
    line(mean, zorder=0, **RELU)
    return mean
