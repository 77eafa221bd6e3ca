"""Singular values of the hidden layer of a routing network over those of its outer layers."""

import numpy as np
import xarray as xr
from xarray import ufuncs

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.values import Values, crossing_time, time_ratio
from neuralrace.results.cells import CellResults


@Metric(
    requires="routing several_hidden",
    observables="singular_values",
    variables={
        "hidden_over_input_over_sqrt_m": (
            "mode",
            "final singular value of the hidden over the input layer, over sqrt(M) of M domains "
            "in a block",
        ),
        "hidden_over_input_over_sqrt_k": (
            "mode",
            "final singular value of the hidden over the input layer, over sqrt(K) of K trained "
            "partners in a block",
        ),
        "hidden_over_output_over_sqrt_m": (
            "mode",
            "final singular value of the hidden over the output layer, over sqrt(M) of M "
            "domains in a block",
        ),
        "hidden_over_output_over_sqrt_k": (
            "mode",
            "final singular value of the hidden over the output layer, over sqrt(K) of K "
            "trained partners in a block",
        ),
        "hidden_over_input_speed": (
            "mode",
            "largest rate of a singular value of the hidden over the input layer",
        ),
        "hidden_over_input_time": (
            "mode",
            "time to half of the final value of the input layer, hidden over input layer",
        ),
        "hidden_over_input_own_time": (
            "mode",
            "time to half of the own final value, hidden over input layer",
        ),
        "value_error_mean": (
            "solution layer mode",
            "mean distance of a singular value from theory over its final value by theory",
        ),
    },
)
def value_ratio(cell: CellResults) -> Values:
    """Singular values of the hidden layer over those of the outer layers, by mode.

    From a small start, a hidden matrix that M input and M output domains share grows to sqrt(M)
    times the outer layers, as gradient flow conserves M b_in^2 - b_h^2. The final ratio over
    sqrt(M) is 1 for perfect agreement. The number K of output domains that an input domain is
    trained with does not matter; the ratio over sqrt(K) is a control. M and K are those of the
    first block. The k-th value of a layer counts as that of mode k of the task, which holds once
    the mode has outgrown its initial value.

    The growth of the hidden and the input layer is compared in three ways. These are the largest
    rate, the time to half of the input layer's final value, and the time to half of each layer's
    own final value. If theory is solved, values are compared with it over all of training.

    Source: Saxe, Sodhani, Lewallen 2022, fig. 4.
    """
    curves = cell.trajectory["singular_values"]
    s = cell.data.modes.s
    modes = {"mode": cell.modes}
    learned = xr.DataArray(s > 1e-9 * s.max(), modes, ("mode",))
    curves = curves.rename(singular_mode="mode").reindex(modes).where(learned)
    values = curves.isel(time=-1, drop=True)
    hidden = values.isel(layer=slice(1, -1)).mean("layer", skipna=False)
    size = cell.routing.families(cell.spec.dataset.count)[0].size
    partners = cell.trained_pairs[:, :size, :size].sum((1, 2)) / size
    numbers = {
        "m": xr.DataArray(size),
        "k": xr.DataArray(partners, {"seed": values["seed"]}, ("seed",)),
    }
    ratios = {
        f"hidden_over_{side}_over_sqrt_{letter}": hidden
        / values.isel(layer=layer, drop=True)
        / ufuncs.sqrt(number)
        for side, layer in (("input", 0), ("output", -1))
        for letter, number in numbers.items()
    }
    return ratios | _growth(curves, cell.flow_time) | _theory_error(curves, cell)


def _growth(curves: xr.DataArray, time: xr.DataArray) -> Values:
    """Rates and times of the hidden layer over those of the input layer."""
    outer = curves.isel(layer=0, drop=True)
    hidden = curves.isel(layer=slice(1, -1)).mean("layer", skipna=False)

    def rate(curve: xr.DataArray) -> xr.DataArray:
        axis = curve.get_axis_num("time")
        return curve.copy(data=np.gradient(curve.values, time.values, axis=axis)).max(
            "time", skipna=False
        )

    def to_half(curve: xr.DataArray, reference: xr.DataArray) -> xr.DataArray:
        reached = crossing_time(curve, reference.isel(time=-1, drop=True) / 2, time)
        return reached.where(curve.notnull().all("time"))

    return {
        "hidden_over_input_speed": rate(hidden) / rate(outer),
        "hidden_over_input_time": time_ratio(to_half(hidden, outer), to_half(outer, outer)),
        "hidden_over_input_own_time": time_ratio(to_half(hidden, hidden), to_half(outer, outer)),
    }


def _theory_error(curves: xr.DataArray, cell: CellResults) -> Values:
    """Distance of the singular values of every layer from theory, if it is solved."""
    if "singular_values" not in cell.theory:
        return {}
    theory = cell.theory["singular_values"].rename(singular_mode="mode")
    theory = theory.reindex(mode=curves["mode"])
    distance = abs(theory - curves).mean("time", skipna=False)
    return {"value_error_mean": distance / theory.isel(time=-1, drop=True)}
