"""Blocks of samples: a mean over many samples, computed on a few at a time.

The activations of a network on many samples take far more memory than its weights, and do not fit
into the cache.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp


def mean_over_blocks(function: Callable[[Any], Any], samples: Any, rows: int) -> Any:
    """The mean over samples of a function that is itself a mean over samples.

    Args:
        function: maps samples to a pytree of arrays, each a mean over them.
        samples: pytree of arrays with a leading axis of samples.
        rows: most samples in a block. Blocks are of one size, and a smaller one takes the rest.

    Returns:
        `function(samples)`, summed in another order.
    """
    count = len(jax.tree.leaves(samples)[0])
    if count <= rows:
        return function(samples)
    size = -(-count // -(-count // rows))
    blocks, rest = divmod(count, size)
    equal = jax.tree.map(lambda a: a[rest:].reshape(blocks, size, *a.shape[1:]), samples)

    def add(total: Any, block: Any, share: float = size / count) -> tuple[Any, None]:
        return jax.tree.map(lambda a, mean: a + share * mean, total, function(block)), None

    shapes = jax.eval_shape(function, jax.tree.map(lambda a: a[0], equal))
    total, _ = jax.lax.scan(add, jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), shapes), equal)
    if rest:
        total, _ = add(total, jax.tree.map(lambda a: a[:rest], samples), rest / count)
    return total
