"""Zero-shot error: pairs of an input and an output domain that are never trained.

The error of a pair (i, j) is relative to an output of zero, <|y_j - W_ij x_i|^2>/<|y_j|^2> over the
items of the domains, where W_ij is the map of the network from input domain i to output domain j.

Source: Saxe, Sodhani, Lewallen 2022, "The Neural Race Reduction", figs. 4 and 5.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float

from neuralrace.datasets import Domains
from neuralrace.datasets.second_moments import eigenmodes
from neuralrace.theory.ridge import relative_squared_error, ridge


def untrained_error(
    domains: Domains,
    trained: Bool[np.ndarray, "input_domain output_domain"],
    pair_map: Callable[[int, int], Float[np.ndarray, "*runs output input"]],
) -> Float[np.ndarray, "*runs"]:
    """Mean error over all untrained pairs; a single NaN if there are none.

    Args:
        domains: inputs and targets.
        trained: which pairs are trained.
        pair_map: the map W_ij from the numbers of an input and an output domain.
    """
    errors = [
        relative_squared_error(
            pair_map(i, j), domains.sigma_xx[i], domains.sigma_yx[i, j], domains.y_power[j]
        )
        for i, j in np.argwhere(~trained).tolist()
    ]
    return np.asarray(np.mean(errors, axis=0) if errors else np.nan)


def ridge_maps(
    domains: Domains, trained: Bool[np.ndarray, "input_domain output_domain"]
) -> Float[np.ndarray, "input_domain output_domain output input"]:
    """Ridge regression of the outputs of all domains on the inputs of all domains.

    It sees trained pairs alone, one sample for each item of each pair, which is zero outside the
    domains of the pair. The penalty is that of the least generalised cross-validation.

    Args:
        domains: inputs and targets.
        trained: which pairs are trained.
    """
    data = domains.flat(np.argwhere(trained))
    values, vectors, _ = eigenmodes(data.sigma_xx, "input correlation")
    fit = ridge(values, vectors, data.sigma_yx, data.y_power, len(data.x))
    weights = fit.weights(fit.best_penalty)
    blocks = weights.reshape(domains.count, -1, domains.count, domains.inputs.shape[2])
    return blocks.transpose(2, 0, 1, 3)
