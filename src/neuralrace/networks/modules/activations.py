"""Activation functions by their names in a configuration."""

from collections.abc import Callable
from math import sqrt

import jax
from jax import Array
from jax.scipy.special import erf

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "linear": lambda h: h,
    "relu": jax.nn.relu,
    "erf": lambda h: erf(h / sqrt(2)),
    "sigmoid": jax.nn.sigmoid,
    "tanh": jax.numpy.tanh,
}
