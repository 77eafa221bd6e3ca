"""Per-sample losses; `spec.Loss` states how they are normalised over samples."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

LossFunction = Callable[[Float[Array, "sample output"], Float[Array, "sample output"]], Array]

LOSSES: dict[str, LossFunction] = {
    "squared_error": lambda out, y: 0.5 * jnp.sum((y - out) ** 2, axis=-1),
    "cross_entropy": lambda out, y: -jnp.sum(y * jax.nn.log_softmax(out), axis=-1),
}
