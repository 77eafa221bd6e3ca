"""Identification of the gating patterns of a ReLU network by clustering its gates."""

from contextlib import suppress
from itertools import product

import numpy as np
import xarray as xr
from jaxtyping import Int

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.values import Values
from neuralrace.results.cells import CellResults

CLUSTERS = np.arange(1, 7)
"""Numbers of clusters."""
SOURCES = ("training", "start")
"""Gates that are clustered: those of all of training and, as a control, the initial ones."""
RUNS = 3
"""Number of seeds, the first of the cell, for which imitations are trained."""
ELBOW = 2.0
"""The elbow is the smallest number of clusters whose error is within this factor of the least."""


@Metric(
    requires="layered relu full_batch",
    observables="outputs weights",
    trains=True,
    variables={
        "identified_gates": (
            "source clusters pathway sample",
            "1 where a pathway is open, 0 where closed",
        ),
        "identified_centroids": (
            "source clusters pathway sample",
            "share of a cluster's units that are open",
        ),
        "identified_share": ("source clusters pathway", "share of active units in a cluster"),
        "identification_error": (
            "source clusters run",
            "largest |f - g|^2/|y|^2 from the ReLU network at equal loss",
        ),
        "identification_gap": (
            "source clusters run",
            "largest distance of losses over initial loss",
        ),
        "identification_mse": (
            "source clusters run",
            "mean squared distance of outputs from the ReLU network at equal times",
        ),
        "elbow": (
            "source run",
            "fewest clusters with a mean squared error of at most 2 times the least",
        ),
        "reln_gates_found": (
            "source clusters",
            "share of the gates of all and of all but one context that are identified",
        ),
    },
)
def gate_identification(cell: CellResults) -> Values:
    """Gates by number of clusters, the error of networks with these gates, and its elbow.

    Gates are those of the last hidden layer. With several hidden layers they make no network of
    parallel pathways, and there are no errors and no elbow.

    Gates of all seeds are clustered together, for each init scale: over all of training and, as a
    control, at the start alone. Networks with the identified gates are trained for the first three
    seeds, on the axis `run`, and compared with the ReLU network of the same seed. Errors are 0 for
    perfect imitation. They are NaN if the gates make no network: fewer distinct patterns or units
    than clusters, or a sample on which no gate is open.

    The mean squared error is over samples, outputs and snapshots, at equal times. The elbow is the
    fewest clusters whose mean squared error is at most twice the least one. On a task with
    contexts, `reln_gates_found` is the share of the gates of the paper's network that are
    identified. These gates are open in all contexts, or in all but one.

    Source: Jarvis et al., "Make Haste Slowly", appendix B, figs. 8 and 9.
    """
    # imported here, so that other metrics do not load JAX and scikit-learn
    from neuralrace.theory.reln.identification import NoGatingError, gate_patterns, identify
    from neuralrace.theory.reln.imitation import altered, imitate, loss_gap, output_error

    spec, data = cell.spec, cell.data
    *below, units = spec.layered.hidden
    weights, outputs = cell.weights(), cell.trajectory["outputs"]
    loss = cell.trajectory["loss"]
    levels = loss.sel(time=outputs["snapshot"].values)
    moments = np.searchsorted(loss["time"].values, outputs["snapshot"].values)
    trained_runs = spec.seed_numbers[:RUNS]
    axes = {
        "init_scale": cell.trajectory["init_scale"].values,
        "source": list(SOURCES),
        "clusters": CLUSTERS,
        "run": np.array(trained_runs),
        "pathway": CLUSTERS,
        "sample": list(data.item_names) or np.arange(len(data.x)),
    }

    def empty(*dims: str) -> xr.DataArray:
        return xr.DataArray(np.nan, {dim: axes[dim] for dim in dims}, dims)

    gates, centroids = (
        empty("init_scale", "source", "clusters", "pathway", "sample") for _ in range(2)
    )
    shares = empty("init_scale", "source", "clusters", "pathway")
    errors, gaps, squares = (empty("init_scale", "source", "clusters", "run") for _ in range(3))
    for scale, (at, source) in product(range(len(spec.init_scales)), enumerate(SOURCES)):
        patterns = gate_patterns([weight[scale] for weight in weights], data.x, source)
        runs = [scale], slice(len(trained_runs))
        own_scale = spec.init_scales[scale : scale + 1]
        imitated = altered(spec, init_scales=own_scale, seeds=len(trained_runs))
        for row, clusters in enumerate(CLUSTERS.tolist()):
            with suppress(NoGatingError):
                gating = identify(patterns, clusters, units)
                pathways = slice(len(gating.gates))
                gates[scale, at, row, pathways] = gating.gates
                centroids[scale, at, row, pathways] = gating.centroids
                shares[scale, at, row, pathways] = gating.shares
                if below:
                    continue
                trained = imitate(imitated, gating.network)
                relu = outputs[runs].values
                error = output_error(levels[runs].values, relu, trained, data.y)
                errors[scale, at, row] = error.max(axis=-1)[0]
                gaps[scale, at, row] = loss_gap(loss[runs].values, trained.variables["loss"])[0]
                difference = relu - trained.variables["outputs"][:, :, moments]
                squares[scale, at, row] = np.mean(difference**2, axis=(-3, -2, -1))[0]
    values = {
        "identified_gates": gates,
        "identified_centroids": centroids,
        "identified_share": shares,
    }
    if not below:
        values |= {
            "identification_error": errors,
            "identification_gap": gaps,
            "identification_mse": squares,
            "elbow": elbow(squares),
        }
    if data.contexts is not None:
        values["reln_gates_found"] = reln_gates_found(gates, data.contexts)
    return values


def elbow(errors: xr.DataArray) -> xr.DataArray:
    """The fewest clusters whose error is at most `ELBOW` times the least; NaN without errors."""
    within = errors <= ELBOW * errors.min("clusters")
    return errors["clusters"].where(within).min("clusters")


def reln_gates_found(gates: xr.DataArray, contexts: Int[np.ndarray, " sample"]) -> xr.DataArray:
    """Share of the paper's gates, open in all contexts or in all but one, that are identified."""
    members = contexts == np.unique(contexts)[:, None]
    expected = xr.DataArray(
        np.vstack([np.ones_like(contexts, dtype=bool), ~members]).astype(float),
        dims=("gate", "sample"),
    )
    return (gates == expected).all("sample").any("pathway").mean("gate")
