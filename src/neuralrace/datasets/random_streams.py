"""Random numbers: NumPy generators keyed by seed and name, and normal numbers of JAX keys."""

import zlib
from typing import Any

import numpy as np
from jaxtyping import Float

NUMERATOR = 1.25331414, 0.4320651, 0.083907783, 0.0109355068, 9.08041548e-4, 3.51717208e-5
DENOMINATOR = 1.0, 0.0829389393, 0.0322021805, 1.85072853e-3, 1.81726238e-4, 1.33277467e-6
"""Coefficients in w = -log(1 - x^2) of z/x, for z the normal quantile of (1 + x)/2. They were
fitted for the least relative error over all w of `standard_normal`: it is 9e-9."""


def stable_hash(name: str) -> int:
    """A 32-bit number from a name, the same on every machine and in every process."""
    return zlib.crc32(name.encode())


def generator(seed: int, name: str) -> np.random.Generator:
    """The random number generator of a stream.

    Streams are keyed by name and never by order of use. So a new layer, gate or observable changes
    no other draw, and runs with the same seed are paired.
    """
    return np.random.default_rng([seed, stable_hash(name)])


def standard_normal(key: Any, shape: tuple[int, ...]) -> Float[Any, "*shape"]:
    """Standard normal numbers of a JAX key, in JAX's default precision.

    Samples of each training step are new, so that these numbers are most of the time of training.
    `jax.random.normal` computes a block of 64 random bits (threefry) for every number, and keeps 32
    of them. In single precision, two numbers share a block here, each with as many random bits as
    in JAX (23), and their quantiles need one logarithm and no branches: 3 ns a number in place of
    6. In double precision, numbers are those of `jax.random.normal`.

    Args:
        key: key of the numbers; another use of the same key repeats random bits.
        shape: shape of the result, of less than 2^32 numbers.
    """
    import jax  # imported here because configuration must load without JAX
    import jax.numpy as jnp
    from jax.extend.random import threefry_2x32

    if jax.dtypes.canonicalize_dtype(float) == np.float64:
        return jax.random.normal(key, shape)
    # keys may be of another generator: two words of any key are a key of threefry
    counts = jnp.arange(np.prod(shape, dtype=int), dtype=jnp.uint32)
    bits = threefry_2x32(jax.random.bits(key, (2,)), counts).reshape(shape)
    two_to_four = jax.lax.bitcast_convert_type((bits >> 9) | np.uint32(0x40000000), np.float32)
    return normal_quantile(two_to_four - 3 + np.float32(2**-23))


def normal_quantile(x: Float[Any, "*shape"]) -> Float[Any, "*shape"]:
    """Normal quantiles of (1 + x)/2, for JAX arrays in single precision.

    The relative error is at most 4e-7, for all x that are odd multiples of 2^-23 between -1 and 1.
    1 - x and 1 + x are exact for these.
    """
    import jax.numpy as jnp

    w = -jnp.log((1 - x) * (1 + x))
    numerator, denominator = (
        jnp.polyval(np.array(each[::-1], np.float32), w) for each in (NUMERATOR, DENOMINATOR)
    )
    return x * (numerator / denominator)
