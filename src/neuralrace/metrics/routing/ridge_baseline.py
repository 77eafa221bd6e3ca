"""Ridge regression of each input domain: a baseline without any network."""

import numpy as np
import xarray as xr
from jaxtyping import Float

from neuralrace.datasets.image_domains import ImageDomains
from neuralrace.extensions.registry import Metric
from neuralrace.metrics.values import Values
from neuralrace.results.cells import CellResults
from neuralrace.theory.ridge import relative_squared_error, ridge

Y_POWER = 1.0
"""<|y|^2> of one-hot targets."""


@Metric(
    requires="domains_of_images",
    variables={
        "ridge_penalty": ("input_domain", "penalty of least generalised cross-validation"),
        "ridge_training_error": (
            "input_domain",
            "relative squared error of ridge on training images",
        ),
        "ridge_held_out_error": (
            "input_domain",
            "relative squared error of ridge on held-out images",
        ),
        "ridge_misclassified": (
            "input_domain",
            "share of held-out images that ridge misclassifies",
        ),
        "least_squares_training_error": (
            "input_domain",
            "relative squared error of least squares on training images",
        ),
    },
)
def ridge_baseline(cell: CellResults) -> Values:
    """Errors of ridge regression of the classes on the images of each input domain.

    Squared errors are relative to those of outputs of zero: 0 for perfect outputs. The penalty
    minimises generalised cross-validation on the training images alone. Least squares, without a
    penalty, is a lower bound for linear networks on the training images of trained pairs.

    One regression holds for all output domains. An output domain renames the classes, which
    permutes the rows of targets and weights, and changes neither errors nor the penalty.

    Source: derived here; fig. 7 of Saxe, Sodhani, Lewallen 2022 shows networks alone.
    """
    images = cell.image_domains
    fits, weights = zip(*(_fit(images, domain) for domain in range(images.count)), strict=True)
    values = {name: [fit[name] for fit in fits] for name in fits[0]}
    values["ridge_misclassified"] = _misclassified(images, np.stack(weights))
    domains = {"input_domain": np.arange(1, images.count + 1)}
    return {name: xr.DataArray(np.asarray(each), domains) for name, each in values.items()}


def _fit(
    images: ImageDomains, domain: int
) -> tuple[dict[str, float], Float[np.ndarray, "output input"]]:
    """Penalty and relative squared errors of ridge regression in one input domain; its weights."""
    values, vectors = (modes[domain] for modes in images.moments.modes)
    fit = ridge(values, vectors, images.moments.sigma_yx[domain], Y_POWER, images.items)
    penalty = fit.best_penalty
    weights = fit.weights(penalty)
    least, error = fit.training_error(np.array([0.0, penalty]))
    sigma_xx = images.held_out_moments.sigma_xx[domain]
    sigma_yx = images.held_out_moments.sigma_yx[domain]
    return {
        "ridge_penalty": penalty,
        "ridge_training_error": float(error),
        "ridge_held_out_error": float(relative_squared_error(weights, sigma_xx, sigma_yx, Y_POWER)),
        "least_squares_training_error": float(least),
    }, weights


def _misclassified(
    images: ImageDomains, weights: Float[np.ndarray, "domain output input"]
) -> list[float]:
    """Share of the held-out images whose class does not have the largest output, by domain."""
    held_out = images.images.held_out_pixels, images.images.held_out_labels
    shares = []
    for domain, fitted in enumerate(weights):
        wrong = [
            np.count_nonzero(np.argmax(x @ fitted.T, axis=1) != np.argmax(classes, axis=1))
            for x, classes in images.of_batches(domain, *held_out)
        ]
        shares.append(sum(wrong) / len(held_out[0]))
    return shares
