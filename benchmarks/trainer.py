"""The training engine against the loop that one would write first.

Both train the same cell (a 10-6-3 linear network from 20 seeds), record loss and layer norms at the
same stride, and are timed in one process from a cold start, compilation included:

    python benchmarks/trainer.py
"""

import argparse
import json
import os
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")
began = time.perf_counter()

import jax  # noqa: E402 (imports are part of what is measured)
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from compile_time import CompileTime  # noqa: E402

from neuralrace.config.cell import Ensemble  # noqa: E402
from neuralrace.networks.initial_weights import initial_weights  # noqa: E402
from neuralrace.training import trainer  # noqa: E402

IMPORTS = time.perf_counter() - began


def run_of(steps: int, every: int, seeds: int, samples: int) -> Ensemble:
    """The cell that both train."""
    dataset = {"samples_per_component": samples, "inputs": 10, "outputs": 3}
    spec = {
        "dataset": {"name": "gaussian_mixture"} | dataset,
        "network": {"name": "layered", "hidden": [6]},
        "init": {"name": "normal"},
        "init_scales": [0.1],
        "seeds": seeds,
        "training": {"learning_rate": 1e-3, "steps": steps},
        "record": {"every": every, "observables": ["layer_norm"]},
    }
    return Ensemble.model_validate_json(json.dumps(spec))


def plain_loop(ensemble: Ensemble) -> dict[str, np.ndarray]:
    """One jitted step, called from Python for every seed and step."""
    data = ensemble.dataset.load()
    widths = (data.x.shape[1], *ensemble.network.hidden, data.y.shape[1])
    with jax.enable_x64(True):
        x, y = jnp.asarray(data.x), jnp.asarray(data.y)

        def loss(weights):
            hidden = x @ weights[0].T
            return 0.5 * jnp.mean(jnp.sum((hidden @ weights[1].T - y) ** 2, axis=1))

        @jax.jit
        def step(weights):
            gradient = jax.grad(loss)(weights)
            rate = ensemble.training.learning_rate
            return [w - rate * g for w, g in zip(weights, gradient, strict=True)]

        @jax.jit
        def observe(weights):
            return loss(weights), jnp.stack([jnp.linalg.norm(w) for w in weights])

        losses, norms = [], []
        for seed in range(ensemble.seeds):
            start = initial_weights(ensemble.init, widths, data.modes, ensemble.init_scales, [seed])
            weights = [jnp.asarray(w[0, 0]) for w in start]
            seen = [observe(weights)]
            for number in range(1, ensemble.training.steps + 1):
                weights = step(weights)
                if number % ensemble.record.every == 0:
                    seen.append(observe(weights))
            losses.append([float(value) for value, _ in seen])
            norms.append([np.asarray(norm) for _, norm in seen])
    return {"loss": np.array([losses]), "layer_norm": np.array([norms])}


def main() -> None:
    """Times both and prints seconds, where the engine's go, and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--every", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--samples", type=int, default=400, help="per component of the mixture")
    ensemble = run_of(**vars(parser.parse_args()))
    compiling = CompileTime()

    start = time.perf_counter()
    engine = trainer.train(ensemble).variables
    engine_seconds, engine_compile = time.perf_counter() - start, compiling.seconds

    start = time.perf_counter()
    plain = plain_loop(ensemble)
    plain_seconds = time.perf_counter() - start

    for name, values in plain.items():  # the same work, or no comparison
        np.testing.assert_allclose(engine[name], values, rtol=1e-9, atol=1e-12)

    steps = ensemble.seeds * ensemble.training.steps
    print(
        f"10-6-3 linear network, {ensemble.seeds} seeds x {ensemble.training.steps} steps, float64"
    )
    for what, seconds, note in (
        ("imports, for both", IMPORTS, ""),
        ("engine", engine_seconds, f"{steps / engine_seconds:.3g} steps/s"),
        ("  trace and compile", engine_compile, ""),
        ("  run and collect", engine_seconds - engine_compile, ""),
        ("plain loop", plain_seconds, f"{steps / plain_seconds:.3g} steps/s"),
    ):
        print(f"{what:<20}{seconds:8.2f} s  {note}".rstrip())
    print(f"{'ratio':<20}{plain_seconds / engine_seconds:8.1f}")


if __name__ == "__main__":
    main()
