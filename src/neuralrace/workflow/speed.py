"""Stage `speed`: the speed of this machine, relative to the reference of cost estimates."""

import time

import jax
import jax.numpy as jnp

from neuralrace.workflow.job import Job

SIZE, STEPS = 64, 40_000
REFERENCE = 0.17
"""Seconds that the benchmark takes on one core of the machine of `neuralrace.config.cost`."""


def run(job: Job) -> float:
    """Seconds of this machine per second of an estimate, by a loop of matrix products."""
    del job

    @jax.jit
    def benchmark(matrix: jax.Array) -> jax.Array:
        def step(_: int, state: jax.Array) -> jax.Array:
            return jnp.tanh(state @ matrix)

        return jax.lax.fori_loop(0, STEPS, step, matrix)

    matrix = jnp.eye(SIZE, dtype=jnp.float32)
    benchmark(matrix).block_until_ready()  # compiles
    begin = time.perf_counter()
    benchmark(matrix).block_until_ready()
    return (time.perf_counter() - begin) / REFERENCE
