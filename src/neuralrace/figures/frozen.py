"""Gates that stay as they are: what they are called and how values with them are drawn."""

import xarray as xr
from matplotlib.axes import Axes

from neuralrace.config.cell import Cell
from neuralrace.errors import UserError
from neuralrace.figures import style
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
        UserError: the network has none that depends on samples.
    """
    network = cell.spec.network
    if not isinstance(network, Gated) or not isinstance(network.gates, SampleScheme):
        raise UserError(f"{cell.name}: network {network.name!r} has no gates by sample to draw")
    return network.gates


def scheme(gating: SampleScheme) -> str:
    """What to call a gating scheme."""
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


def sources(cell: CellResults) -> dict[str, str]:
    """Where frozen gates of `gate_prediction` are from, and what to call it."""
    # trajectories know nothing of candidates
    candidates = Cell.model_validate_json(cell.metrics.attrs["spec"]).candidates
    called: dict[str, str] = {
        name: scheme(network.gates)
        for name, network in candidates.items()
        if isinstance(network.gates, SampleScheme)
    }
    called |= {"initial": "ReLU, at the start", "trained": "ReLU, at the end"}
    return {
        name: called.get(name, name)
        for name in map(str, cell.get("metrics", "frozen_loss")["gates_from"].values)
    }


def draw_relu(ax: Axes, values: xr.DataArray, across: bool = False) -> None:
    """A value of ReLU networks: their mean as a line, their range over seeds as a band.

    `across` is for values along x.
    """
    low, mean, high = (float(each) for each in (values.min(), values.mean(), values.max()))
    band, line = (ax.axvspan, ax.axvline) if across else (ax.axhspan, ax.axhline)
    band(low, high, color=RELU["color"], alpha=0.2, linewidth=0)
    line(mean, zorder=0, **RELU)
