"""Similarity of the representations of input domains."""

import numpy as np

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.values import Values, per_run
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
    """Mean cosines of items in the first hidden layer, at the start and at the end.

    The cosine of the same item in two input domains is 1 for a fully shared representation. Its
    mean is over all pairs of domains, over pairs that are trained with a common output domain, and
    over pairs that are not; NaN if there is no such pair. The mean cosine of different items of one
    domain is a reference, as items of a hierarchy are similar in themselves.

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
    within = np.einsum("...iaib->...", cosine) - np.einsum("...iaia->...", cosine)

    mask = cell.trained_pairs.astype(int)
    common = mask @ mask.mT > 0
    different = ~np.eye(domains, dtype=bool)
    pairs = {
        "across": np.broadcast_to(different, common.shape),
        "together": common & different,
        "never_together": ~common & different,
    }
    means = {
        f"similarity_{name}": np.einsum("...sxij,sij->...sx", same, members)
        / members.sum((-2, -1))[:, None]
        for name, members in pairs.items()
    }
    means["similarity_within"] = within / (domains * items * (items - 1))
    # participation ratio of the eigenvalues of the inner products of all items
    gram = similarity.values
    means["dimension"] = np.trace(gram, axis1=-2, axis2=-1) ** 2 / (gram**2).sum((-2, -1))
    values = {
        f"{when}_{name}": per_run(cell, mean[..., snapshot])
        for name, mean in means.items()
        for snapshot, when in enumerate(("initial", "final"))
    }
    if "weight_cosine" in cell.trajectory:
        values["final_weight_cosine"] = cell.trajectory["weight_cosine"].isel(time=-1, drop=True)
    return values
