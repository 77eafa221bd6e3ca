"""Whether input domains come to share one representation."""

import numpy as np
import xarray as xr
from jaxtyping import Float

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.describe import Values
from neuralrace.results.cells import CellResults


@Metric(
    requires="routing",
    observables="similarity",
    variables={
        "initial_similarity_across": (
            "",
            "mean cosine between the same item of two input domains, at the start",
        ),
        "final_similarity_across": (
            "",
            "mean cosine between the same item of two input domains, at the end",
        ),
        "initial_similarity_together": (
            "",
            "mean cosine between the same item of two input domains that share a trained "
            "output, at the start",
        ),
        "final_similarity_together": (
            "",
            "mean cosine between the same item of two input domains that share a trained "
            "output, at the end",
        ),
        "initial_similarity_never_together": (
            "",
            "mean cosine between the same item of two input domains that share no trained "
            "output, at the start",
        ),
        "final_similarity_never_together": (
            "",
            "mean cosine between the same item of two input domains that share no trained "
            "output, at the end",
        ),
        "initial_similarity_within": (
            "",
            "mean cosine between different items of one input domain, at the start",
        ),
        "final_similarity_within": (
            "",
            "mean cosine between different items of one input domain, at the end",
        ),
        "initial_dimension": (
            "",
            "participation ratio of the representations of all items, at the start",
        ),
        "final_dimension": (
            "",
            "participation ratio of the representations of all items, at the end",
        ),
        "final_weight_cosine": (
            "layer",
            "cosine between the weights of a layer at the start and at the end",
        ),
    },
)
def shared_representation(cell: CellResults) -> Values:
    """Mean cosines in the first hidden layer, at the start and at the end.

    Between the same item of two input domains: of any two, of two that are trained with a common
    output domain, and of two that never are, NaN where there are no such two. Between different
    items of one domain, for comparison: items of a hierarchy are alike by themselves.

    Source: Saxe, Sodhani, Lewallen 2022, fig. 4.
    """
    similarity = cell.trajectory["similarity"].isel(snapshot=[0, -1])
    domains = cell.spec.dataset.count
    items = similarity.sizes["domain_item"] // domains
    products = similarity.values.reshape(*similarity.shape[:3], domains, items, domains, items)
    length = np.sqrt(np.einsum("...iaia->...ia", products))
    cosine = products / (length[..., None, None] * length[..., None, None, :, :])
    # means over items, (init_scale, seed, snapshot, input domain, input domain)
    same = np.einsum("...iaja->...ij", cosine) / items
    own = np.einsum("...iaib->...", cosine) - np.einsum("...iaia->...", cosine)

    mask = cell.trained_pairs.astype(int)
    common = mask @ mask.mT > 0
    different = ~np.eye(domains, dtype=bool)
    pairs = {
        "across": np.broadcast_to(different, common.shape),
        "together": common & different,
        "never_together": ~common & different,
    }
    means = {
        name: np.einsum("...sxij,sij->...sx", same, chosen) / chosen.sum((-2, -1))[:, None]
        for name, chosen in pairs.items()
    }
    means["within"] = own / (domains * items * (items - 1))
    runs = {name: similarity[name] for name in ("init_scale", "seed")}
    values = {
        f"{when}_similarity_{name}": value[..., snapshot]
        for name, value in means.items()
        for snapshot, when in enumerate(("initial", "final"))
    } | _all_items(similarity.values)
    found = {
        name: xr.DataArray(value, runs, ("init_scale", "seed")) for name, value in values.items()
    }
    if "weight_cosine" in cell.trajectory:
        found["final_weight_cosine"] = cell.trajectory["weight_cosine"].isel(time=-1, drop=True)
    return found


def _all_items(
    gram: Float[np.ndarray, "*runs 2 item item"],
) -> dict[str, Float[np.ndarray, "*runs"]]:
    """Dimension of the representations of all items at once."""
    total = np.trace(gram, axis1=-2, axis2=-1)
    dimension = total**2 / (gram**2).sum((-2, -1))
    return {"initial_dimension": dimension[..., 0], "final_dimension": dimension[..., 1]}
