"""Random number generators, keyed by seed and name."""

import zlib

import numpy as np


def stable_hash(name: str) -> int:
    """A 32-bit number from a name, the same on every machine and in every process."""
    return zlib.crc32(name.encode())


def generator(seed: int, name: str) -> np.random.Generator:
    """The random number generator of a stream.

    Streams are keyed by name and never by order of use. So a new layer, gate or observable changes
    no other draw, and runs with the same seed are paired.
    """
    return np.random.default_rng([seed, stable_hash(name)])
