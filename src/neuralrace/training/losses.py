"""Per-sample losses; `descent.Loss` states how they are normalised over samples."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

LossFunction = Callable[[Float[Array, "*samples output"], Float[Array, "*samples output"]], Array]


def _cross_entropy(
    out: Float[Array, "*samples output"], y: Float[Array, "*samples output"]
) -> Float[Array, "*samples"]:
    """-log p of the softmax; of the logistic function where there is one output."""
    if out.shape[-1] == 1:
        return (jax.nn.softplus(out) - y * out)[..., 0]
    return -jnp.sum(y * jax.nn.log_softmax(out), axis=-1)


LOSSES: dict[str, LossFunction] = {
    "squared_error": lambda out, y: 0.5 * jnp.sum((y - out) ** 2, axis=-1),
    "cross_entropy": _cross_entropy,
}
