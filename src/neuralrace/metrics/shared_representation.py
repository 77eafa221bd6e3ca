"""Whether input domains come to share one representation."""

import numpy as np
import xarray as xr
from jaxtyping import Float

from neuralrace.metrics.describe import Values, described
from neuralrace.records.evidence import Evidence


def shared_representation(evidence: Evidence) -> Values:
    """Mean cosines in the first hidden layer, at the start and at the end.

    Between the same item of two input domains: of any two, of two that are trained with a common
    output domain, and of two that never are, NaN where there are no such two. Between different
    items of one domain, for comparison: items of a hierarchy are alike by themselves.

    Source: Saxe, Sodhani, Lewallen 2022, fig. 4.
    """
    similarity = evidence.recorded("similarity", "similarity").isel(snapshot=[0, -1])
    domains = evidence.cell.dataset.count
    items = similarity.sizes["domain_item"] // domains
    products = similarity.values.reshape(*similarity.shape[:3], domains, items, domains, items)
    length = np.sqrt(np.einsum("...iaia->...ia", products))
    cosine = products / (length[..., None, None] * length[..., None, None, :, :])
    # means over items, (init_scale, seed, snapshot, input domain, input domain)
    same = np.einsum("...iaja->...ij", cosine) / items
    own = np.einsum("...iaib->...", cosine) - np.einsum("...iaia->...", cosine)

    mask = evidence.trained_pairs.astype(int)
    common = mask @ mask.mT > 0
    different = ~np.eye(domains, dtype=bool)
    pairs = {
        "across": (np.broadcast_to(different, common.shape), "two input domains"),
        "together": (common & different, "two input domains that share a trained output"),
        "never_together": (~common & different, "two input domains that share no trained output"),
    }
    means = {
        name: (
            np.einsum("...sxij,sij->...sx", same, chosen) / chosen.sum((-2, -1))[:, None],
            f"mean cosine between the same item of {of}",
        )
        for name, (chosen, of) in pairs.items()
    }
    means["within"] = (
        own / (domains * items * (items - 1)),
        "mean cosine between different items of one input domain",
    )
    runs = {name: similarity[name] for name in ("init_scale", "seed")}
    values = {
        f"{when}_similarity_{name}": (value[..., snapshot], f"{long_name}, {at}")
        for name, (value, long_name) in means.items()
        for snapshot, when, at in ((0, "initial", "at the start"), (1, "final", "at the end"))
    } | _all_items(similarity.values)
    found = {
        name: described(xr.DataArray(value, runs, ("init_scale", "seed")), long_name)
        for name, (value, long_name) in values.items()
    }
    if "weight_cosine" in evidence.trajectory:
        found["final_weight_cosine"] = described(
            evidence.trajectory["weight_cosine"].isel(time=-1, drop=True),
            "cosine between the weights of a layer at the start and at the end",
        )
    return found


def _all_items(
    gram: Float[np.ndarray, "*runs 2 item item"],
) -> dict[str, tuple[Float[np.ndarray, "*runs"], str]]:
    """Dimension of the representations of all items at once."""
    total = np.trace(gram, axis1=-2, axis2=-1)
    dimension = total**2 / (gram**2).sum((-2, -1))
    of = "participation ratio of the representations of all items"
    return {
        "initial_dimension": (dimension[..., 0], f"{of}, at the start"),
        "final_dimension": (dimension[..., 1], f"{of}, at the end"),
    }
