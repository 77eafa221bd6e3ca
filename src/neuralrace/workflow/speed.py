"""How fast this machine is, beside the one that estimates of cost were measured on."""

import time

import jax
import jax.numpy as jnp

from neuralrace.workflow.job import Job

SIZE, STEPS = 64, 40_000
REFERENCE = 0.17
"""Seconds that the probe takes on one core of the machine of `neuralrace.config.cost`."""


def run(job: Job) -> float:
    """Seconds of this machine for one of the estimate's: matrix products in a compiled loop."""
    del job

    @jax.jit
    def probe(matrix: jax.Array) -> jax.Array:
        def step(_: int, state: jax.Array) -> jax.Array:
            return jnp.tanh(state @ matrix)

        return jax.lax.fori_loop(0, STEPS, step, matrix)

    matrix = jnp.eye(SIZE, dtype=jnp.float32)
    probe(matrix).block_until_ready()
    begin = time.perf_counter()
    probe(matrix).block_until_ready()
    return (time.perf_counter() - begin) / REFERENCE
