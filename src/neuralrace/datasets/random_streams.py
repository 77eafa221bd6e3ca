"""Random streams, keyed by seed and name."""

import zlib

import numpy as np


def stable_hash(name: str) -> int:
    """A 32-bit number that depends on the name alone, on every machine and in every process."""
    return zlib.crc32(name.encode())


def generator(seed: int, name: str) -> np.random.Generator:
    """The random stream `name` of `seed`.

    Streams are keyed by name and never by order of use, so that adding a layer, a gate or an
    observable leaves all other draws as they were, and runs with one seed are paired.
    """
    return np.random.default_rng([seed, stable_hash(name)])
