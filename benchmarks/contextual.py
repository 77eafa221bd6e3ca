"""The contextual task at the paper's size: a ReLU network, and a gated network's singular values.

The ReLU network (700 hidden units, three contexts, 8000 epochs, float32) is trained from 10 seeds
at once, and beside it the five matrix products of a step run alone, at the same shapes. The gated
network (7 pathways of 100 units) is trained with the singular values of every pathway in every
epoch, and so by a loop that makes one step a Python call and decomposes every pathway's map in
full, with the step compiled and without:

    python benchmarks/contextual.py
"""

import argparse
import json
import os
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
from compile_time import CompileTime

from neuralrace.config.cell import Ensemble
from neuralrace.training import trainer

RELU = {"name": "layered", "hidden": [700], "activation": "relu"}
GATED = {"name": "gated", "hidden": [100], "gates": {"name": "contexts", "open_in": [1, 2]}}


def run_of(network: dict, steps: int, seeds: int, every: int, observables: list[str]) -> Ensemble:
    """The cell of section 5 with three contexts."""
    spec = {
        "dataset": {"name": "contextual", "contexts": 3},
        "network": network,
        "init": {"name": "normal"},
        "init_scales": [1e-4],
        "seeds": seeds,
        "training": {
            "learning_rate": 1e-3,
            "steps": steps,
            "loss": {"normalisation": "half_sum"},
        },
        "record": {"every": every, "observables": observables},
        "precision": "float32",
    }
    return Ensemble.model_validate_json(json.dumps(spec))


def timed(ensemble: Ensemble, compiling: CompileTime) -> tuple[dict[str, np.ndarray], float, float]:
    """What was recorded, seconds without compilation, and those of compilation."""
    before, start = compiling.seconds, time.perf_counter()
    variables = trainer.train(ensemble).variables
    compiled = compiling.seconds - before
    return variables, time.perf_counter() - start - compiled, compiled


def products(ensemble: Ensemble, repeats: int) -> tuple[float, float]:
    """Seconds that the products of a step take by themselves, of all runs, and operations."""
    data, (hidden,) = ensemble.dataset.load(), ensemble.layered.hidden
    samples, outputs, inputs = len(data.x), data.y.shape[1], data.x.shape[1]
    shapes = [  # rows, contracted, columns
        (hidden, inputs, samples),
        (outputs, hidden, samples),
        (hidden, outputs, samples),
        (outputs, samples, hidden),
        (hidden, samples, inputs),
    ]
    rng = np.random.default_rng(0)
    total = 0.0
    for rows, inner, columns in shapes:
        left = jnp.asarray(rng.normal(size=(ensemble.seeds, rows, inner)), jnp.float32)
        right = jnp.asarray(rng.normal(size=(ensemble.seeds, inner, columns)), jnp.float32)

        @jax.jit
        def repeated(left, right):
            def again(_, state):  # the next product waits for the last one
                return left @ (right + 0 * state[:, :1, :1])

            return jax.lax.fori_loop(0, repeats, again, left @ right)

        jax.block_until_ready(repeated(left, right))
        start = time.perf_counter()
        jax.block_until_ready(repeated(left, right))
        total += (time.perf_counter() - start) / repeats
    return total, 2.0 * ensemble.seeds * sum(a * b * c for a, b, c in shapes)


def plain_loop(ensemble: Ensemble, compiled: bool) -> np.ndarray:
    """Singular values of every pathway, from one step a call and a decomposition each."""
    task = ensemble.task()
    factor = ensemble.training.loss.factor(task.samples)
    batch = jax.tree.map(lambda a: jnp.asarray(a, jnp.float32), task.arrays["loss"])

    def step(weights):
        gradient = jax.grad(lambda w: factor * task.loss(task.network(w), batch, {}))(weights)
        return jax.tree.map(lambda w, g: w - ensemble.training.learning_rate * g, weights, gradient)

    def values(weights):
        ((first, second),) = weights
        pathways = zip(first, second, strict=True)
        return [np.asarray(jnp.linalg.svd(above @ below)[1]) for below, above in pathways]

    seen, advance = [], jax.jit(step) if compiled else step
    for seed in range(ensemble.seeds):
        weights = jax.tree.map(
            lambda w: jnp.asarray(w[0, 0], jnp.float32), task.weights(ensemble.init_scales, [seed])
        )
        path = [values(weights)]
        for _ in range(ensemble.training.steps):
            weights = advance(weights)
            path.append(values(weights))
        seen.append(path)
    return np.array([seen])


def main() -> None:
    """Times all of it and prints seconds and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=8000)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--loop-steps", type=int, default=200, help="epochs of the plain loops")
    asked = parser.parse_args()
    compiling = CompileTime()

    ensemble = run_of(RELU, asked.steps, asked.seeds, 40, [])
    _, seconds, compiled = timed(ensemble, compiling)
    alone, operations = products(ensemble, 300)
    alone *= asked.steps
    print(f"ReLU network, 700 units, {asked.seeds} seeds x {asked.steps} epochs, float32")
    print(f"  compile                  {compiled:8.2f} s")
    print(f"  train                    {seconds:8.2f} s, {seconds / asked.seeds:.2f} s a seed")
    print(f"  its matrix products      {alone:8.2f} s, {operations * asked.steps / alone / 1e9:.0f}"
          " GFLOP/s")  # fmt: skip
    print(f"  share of their rate      {alone / seconds:8.2f}")

    ensemble = run_of(GATED, asked.steps, asked.seeds, 1, ["pathway_values"])
    _, seconds, compiled = timed(ensemble, compiling)
    _, unseen, _ = timed(run_of(GATED, asked.steps, asked.seeds, 1, []), compiling)
    per_epoch = seconds / asked.seeds / asked.steps
    short = run_of(GATED, asked.loop_steps, 1, 1, ["pathway_values"])
    found = trainer.train(short).variables["pathway_values"]
    print(f"gated network, 7 pathways, values in every epoch, {asked.seeds} seeds")
    print(f"  compile                  {compiled:8.2f} s")
    print(f"  engine                   {seconds:8.2f} s, {1e6 * per_epoch:.0f} us a seed and epoch")
    print(f"    without the values     {unseen:8.2f} s")
    for name, with_compiled in (("compiled step a call", True), ("plain step a call", False)):
        start = time.perf_counter()
        looped = plain_loop(short, with_compiled)
        per_loop = (time.perf_counter() - start) / asked.loop_steps
        # the same work, or no comparison: to the rounding of float32, by the largest value
        np.testing.assert_allclose(found, looped, rtol=0, atol=1e-4 * looped.max())
        told = f"{1e6 * per_loop:.0f} us a seed and epoch, {per_loop / per_epoch:.0f} times as long"
        print(f"  {name:<24} {per_loop * asked.steps * asked.seeds:8.1f} s scaled up, {told}")


if __name__ == "__main__":
    main()
