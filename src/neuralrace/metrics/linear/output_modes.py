"""Learning time of each mode in the outputs of a network, linear or not."""

import numpy as np
import xarray as xr

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.linear.learning_times import in_order
from neuralrace.metrics.values import Values, crossing_time, time_ratio
from neuralrace.results.cells import CellResults
from neuralrace.theory.modes import aligned_initial_mode, deep_half_time


@Metric(
    requires="layered one_hidden trained_readout squared_error gradient_flow",
    observables="outputs",
    variables={
        "output_half_time": ("mode", "flow time at which outputs have half of a mode", "tau"),
        "output_half_time_over_linear": (
            "mode",
            "time to half of a mode in the outputs, over that of a linear network",
        ),
        "output_modes_in_order": ("", "1 if outputs have half of stronger modes first"),
    },
)
def output_modes(cell: CellResults) -> Values:
    """Time at which outputs have half of each mode, and its ratio to that of a linear network.

    The strength of a mode is u^T <yhat x^T> v over the variance of the inputs along v. In a linear
    network it is the effective singular value. The time of a linear network is the closed form
    log(s/(d a0) - 1)/(2 s) from the same initial weights. Modes without a target are NaN, and so
    are those that outputs never have half of.

    Source: Saxe, McClelland, Ganguli 2013, for linear networks.
    """
    data, spec = cell.data, cell.spec
    modes, target = data.modes, cell.target
    outputs = cell.trajectory["outputs"]
    at = outputs["snapshot"].values
    correlation = np.einsum("...no,ni->...oi", outputs.values, data.x) / len(data.x)
    strength = xr.DataArray(
        np.einsum("ok,...oi,ik->...k", modes.u, correlation, modes.v) / modes.d,
        {"init_scale": outputs["init_scale"], "seed": outputs["seed"], "time": at,
         "mode": cell.modes},
        ("init_scale", "seed", "time", "mode"),
    )  # fmt: skip
    learned = target > 0
    half = crossing_time(strength, target / 2, cell.flow_time.sel(time=at)).where(learned)
    encoder, decoder = spec.resolved.initial(
        spec.init, spec.resolved.examples(spec.dataset), spec.init_scales, spec.seed_numbers
    )
    start = aligned_initial_mode(encoder, decoder, modes.u, modes.v)
    linear = half.copy(data=deep_half_time(modes.s, modes.d, start))
    return {
        "output_half_time": half,
        "output_half_time_over_linear": time_ratio(half, linear),
        "output_modes_in_order": in_order(half, cell.strength.where(learned)),
    }
