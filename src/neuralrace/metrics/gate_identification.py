"""How many gating patterns of a ReLU network a gated linear network needs to imitate it."""

from contextlib import suppress
from itertools import product

import numpy as np
import xarray as xr
from jaxtyping import Int

from neuralrace.metrics.describe import Values, described
from neuralrace.records.evidence import Evidence

# Numbers of clusters that are tried.
CLUSTERS = np.arange(1, 9)
# Seeds that imitations are trained for, by the source of their gates.
SEEDS = {"training": 3, "start": 1, "end": 1}
# The elbow is the smallest number of clusters whose error is within this factor of the least.
ELBOW = 2.0


def gate_identification(evidence: Evidence) -> Values:
    """Gates by number of clusters, the error of networks with these gates, and its elbow.

    Gates are those of the networks of all seeds, one gating for each init scale: clustered over all
    of training and, as controls, at the start alone and at the end alone. Networks with these gates
    are trained for the first three seeds, controls for the first alone, and compared with the ReLU
    network of the same seed. Results are means over these seeds and not by seed, as most seeds have
    none. NaN where gates make no network: fewer distinct patterns or units than clusters, or
    samples on which no gate is open.

    Raises:
        UserError: the network is no ReLU network with one hidden layer and without biases.

    Source: Jarvis et al., "Make Haste Slowly", appendix B, figs. 8 and 9.
    """
    # here, as measuring other cells need not load JAX and scikit-learn
    from neuralrace.reln.gates import relu_network
    from neuralrace.reln.identification import SNAPSHOTS, NoGatingError, gate_patterns, identify
    from neuralrace.reln.imitation import imitate, loss_gap, output_error

    cell, data = evidence.cell, evidence.data
    units = relu_network(cell, "metrics: gate_identification", hidden=1).hidden[0]
    weights, outputs = evidence.weights(), evidence.recorded("outputs", "outputs")
    loss = evidence.trajectory["loss"]
    levels = loss.sel(time=outputs["snapshot"].values)
    axes = {
        "init_scale": evidence.trajectory["init_scale"].values,
        "source": list(SNAPSHOTS),
        "clusters": CLUSTERS,
        "pathway": CLUSTERS,
        "sample": list(data.item_names) or np.arange(len(data.x)),
    }

    def empty(*dims: str) -> xr.DataArray:
        return xr.DataArray(np.nan, {dim: axes[dim] for dim in dims}, dims)

    gates, centroids = (empty("init_scale", "clusters", "pathway", "sample") for _ in range(2))
    shares = empty("init_scale", "clusters", "pathway")
    errors, gaps = (empty("init_scale", "source", "clusters") for _ in range(2))
    spread = empty("init_scale", "clusters")
    for scale, (at, source) in product(range(len(cell.init_scales)), enumerate(SNAPSHOTS)):
        patterns = gate_patterns([weight[scale] for weight in weights], data.x, source)
        runs = [scale], slice(SEEDS[source])
        for row, clusters in enumerate(CLUSTERS.tolist()):
            with suppress(NoGatingError):
                gating = identify(patterns, clusters, units)
                if source == "training":
                    found = slice(len(gating.gates))
                    gates[scale, row, found] = gating.gates
                    centroids[scale, row, found] = gating.centroids
                    shares[scale, row, found] = gating.shares
                trained = imitate(cell, gating.network, [scale], cell.seed_numbers[runs[1]])
                error = output_error(
                    levels[runs].values, outputs[runs].values, trained, data.y
                ).max(axis=-1)
                errors[scale, at, row] = error.mean()
                gaps[scale, at, row] = loss_gap(loss[runs].values, trained.variables["loss"]).mean()
                if source == "training":
                    spread[scale, row] = error.max() - error.min()
    values = {
        "identified_gates": described(gates, "1 where a pathway is open, 0 where closed"),
        "identified_centroids": described(centroids, "share of a cluster's units that are open"),
        "identified_share": described(shares, "share of active units in a cluster"),
        "identification_error": described(
            errors, "largest |f - g|^2/|y|^2 from the ReLU network at equal loss, mean over seeds"
        ),
        "identification_error_spread": described(
            spread, "the same from gates of all of training, largest less smallest over seeds"
        ),
        "identification_gap": described(
            gaps, "largest distance of losses over initial loss, mean over seeds"
        ),
        "elbow": described(
            elbow(errors), f"fewest clusters with an error of at most {ELBOW:g} times the least"
        ),
    }
    if data.contexts is not None:
        values["identified_open_contexts"] = described(
            open_contexts(gates, data.contexts),
            "contexts that a pathway is open in; NaN if it is open in a part of one",
        )
    return values


def elbow(errors: xr.DataArray) -> xr.DataArray:
    """The fewest clusters whose error is within a factor of the least; NaN without any error."""
    within = errors <= ELBOW * errors.min("clusters")
    return errors["clusters"].where(within).min("clusters")


def open_contexts(gates: xr.DataArray, contexts: Int[np.ndarray, " sample"]) -> xr.DataArray:
    """Number of contexts that gates are open in; NaN for one that varies within a context."""
    shares = gates.groupby(xr.DataArray(contexts, dims="sample", name="context")).mean(skipna=False)
    return shares.where((shares == 0) | (shares == 1)).sum("context", skipna=False)
