"""Localisation: online training with its sampling, and the closed form of frozen gates.

A ReLU network (40 inputs, 40 hidden units, averaged) is trained for 4000 steps on fresh batches of
1000 samples, from 5 seeds at once, and beside it the same batches are drawn alone. The closed form
has 40 units x 40 inputs = 1600 unknowns and is asked for the weights at 200 times:

    python benchmarks/localization.py
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
from neuralrace.theory.frozen_gates import FrozenGates
from neuralrace.training import trainer

UNITS, BATCH, TIMES = 40, 1000, 200


def run_of(steps: int, seeds: int) -> Ensemble:
    """Published sizes of the nonlinear Gaussian process."""
    spec = {
        "dataset": {"name": "nonlinear_gaussian", "xi": [5.0, 1.0]},
        "network": {
            "name": "layered",
            "hidden": [UNITS],
            "activation": "relu",
            "readout": "mean",
        },
        "init": {"name": "glorot"},
        "init_scales": [0.1],
        "seeds": seeds,
        "training": {
            "learning_rate": 0.1 * UNITS,
            "steps": steps,
            "batch": {"name": "fresh", "size": BATCH},
        },
        "record": {"every": steps // 20, "observables": ["weights"]},
        "precision": "float32",
    }
    return Ensemble.model_validate_json(json.dumps(spec))


def training(ensemble: Ensemble, compiling: CompileTime) -> float:
    """Seconds of training without compilation."""
    before, start = compiling.seconds, time.perf_counter()
    trainer.train(ensemble)
    return time.perf_counter() - start - (compiling.seconds - before)


def sampling(ensemble: Ensemble) -> float:
    """Seconds that the batches of all steps take by themselves."""
    sample = ensemble.dataset.sampler()
    keys = jax.vmap(jax.random.key)(jnp.arange(ensemble.seeds))

    @jax.jit
    def draw(keys):
        def step(number, total):
            x, y = jax.vmap(lambda key: sample(jax.random.fold_in(key, number), BATCH))(keys)
            return total + x.sum() + y.sum()  # every number is needed

        return jax.lax.fori_loop(0, ensemble.training.steps, step, jnp.float32(0))

    jax.block_until_ready(draw(keys))
    start = time.perf_counter()
    jax.block_until_ready(draw(keys))
    return time.perf_counter() - start


def closed_form(ensemble: Ensemble) -> dict[str, float]:
    """Seconds of the parts of the closed form, from the law and random half-spaces."""
    law = ensemble.dataset.mixture()
    rng = np.random.default_rng(0)
    normals, start = rng.normal(size=(2, UNITS, ensemble.dataset.inputs))
    seconds, began = {}, time.perf_counter()

    def lap(name: str) -> None:
        nonlocal began
        now = time.perf_counter()
        seconds[name], began = now - began, now

    frozen = FrozenGates.from_gaussian(law.covariances, law.targets, normals)
    lap("correlations")
    _ = frozen.modes
    lap("decomposition")
    path = frozen.weights(np.linspace(0, 1e4, TIMES), start)
    lap(f"weights at {TIMES} times")
    frozen.loss(path)
    lap("losses")
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    compiling = CompileTime()
    ensemble = run_of(options.steps, options.seeds)
    whole, drawn = training(ensemble, compiling), sampling(ensemble)
    print(f"online training, batch {BATCH}, {options.seeds} seeds x {options.steps} steps, float32")
    print(f"  compile                  {compiling.seconds:8.2f} s")
    print(f"  train                    {whole:8.2f} s, {whole / options.seeds:.2f} s a seed")
    print(f"  its samples alone        {drawn:8.2f} s, {100 * drawn / whole:.0f}% of it")
    parts = closed_form(ensemble)
    print(f"closed form, {UNITS * ensemble.dataset.inputs} unknowns, {sum(parts.values()):.2f} s")
    for name, seconds in parts.items():
        print(f"  {name:<24} {seconds:8.2f} s")


if __name__ == "__main__":
    main()
