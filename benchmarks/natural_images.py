"""Figure 7 at scale: the cost of a step against the number of images, and of the whole on a GPU.

    python benchmarks/natural_images.py            # MNIST, M = 20, K = 8, on the processor
    python benchmarks/natural_images.py --hidden 32    # the same, as config/neural_race/mnist.yaml
    python benchmarks/natural_images.py --gpu      # MNIST, M = 100, K = 40, on a GPU
    python benchmarks/natural_images.py --gpu --domains 10 --steps 20    # the same, tried small

The first compares a step on the moments of all images, along the eigenvectors of each domain, with
a step on the correlations of all pairs one by one, and with going through all images in
mini-batches, which is what a step on the whole training set takes otherwise. The second measures
steps per second, their share of the rate at which the same device multiplies large matrices, and
the time of the whole sweep over K/M. MNIST is read from `--folder`, or fetched into it.
"""

import argparse
import json
import os
import sys
import time

if "--gpu" not in sys.argv:
    os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp

from neuralrace.config.cell import Ensemble
from neuralrace.networks.tasks.domains import RoutingTask
from neuralrace.training import trainer
from neuralrace.training.task import Task

SHARES = tuple(n / 10 for n in range(1, 10))


def run_of(chosen: argparse.Namespace, images: int, share: float, **training: object) -> Ensemble:
    """One seed of the linear network on MNIST, in single precision."""
    spec = {
        "dataset": {
            "name": "transformed_images",
            "count": chosen.domains,
            "images": {"name": "mnist", "folder": chosen.folder, "samples": images},
        },
        "network": {
            "name": "routing",
            "hidden": [chosen.hidden, chosen.hidden],
            "gates": {"name": "always_on"},
            "pairs": {"name": "band", "share": share},
        },
        "init": {"name": "glorot"},
        "init_scales": [0.1],
        "seeds": 1,
        "training": {
            "learning_rate": 0.1,
            "optimiser": {"name": "momentum", "momentum": 0.9},
            "steps": chosen.steps,
        }
        | training,
        "record": {"every": chosen.steps},
        "precision": "float32",
        "matmul_precision": chosen.precision,
    }
    return Ensemble.model_validate_json(json.dumps(spec))


def step_time(
    ensemble: Ensemble, repeats: int = 3, task: Task | None = None
) -> tuple[float, float]:
    """Seconds of a step, without recording and compilation, and its floating-point operations."""
    with jax.default_matmul_precision(ensemble.matmul_precision):
        engine = trainer.Trainer(ensemble, task=task)
        data, (members, fixed) = engine.data, engine.start()
        full = ensemble.training.batch.name == "full"

        def one(step, members):
            members, batch = engine.batch(members, fixed, data, step)
            return jax.vmap(engine.step, (0, 0, None if full else 0, None))(
                members, fixed, batch, step
            )

        steps = ensemble.training.steps
        advance = jax.jit(lambda members: jax.lax.fori_loop(0, steps, one, members)).lower(members)
        single = jax.jit(one).lower(jnp.asarray(0), members).compile().cost_analysis() or {}
        advance = advance.compile()
        times = []
        for _ in range(repeats + 1):  # the first warms up
            start = time.perf_counter()
            jax.block_until_ready(advance(members))
            times.append((time.perf_counter() - start) / steps)
        return min(times[1:]), float(single.get("flops", float("nan")))


def matrix_rate(precision: str, side: int = 8192, repeats: int = 10) -> float:
    """Floating-point operations a second in products of large matrices."""
    with jax.default_matmul_precision(precision):
        x = jax.random.normal(jax.random.key(0), (side, side), jnp.float32) / side**0.5
        product = jax.jit(lambda x: jax.lax.fori_loop(0, repeats, lambda _, y: x @ y, x))
        jax.block_until_ready(product(x))
        start = time.perf_counter()
        jax.block_until_ready(product(x))
        return 2 * side**3 * repeats / (time.perf_counter() - start)


def images(chosen: argparse.Namespace) -> None:
    """A step on moments against all images in mini-batches, for more and more images."""
    print(f"MNIST, M = {chosen.domains}, K/M = .4, {chosen.hidden} hidden units, one seed")
    few = run_of(chosen, 100, 0.4)  # correlations are as large for any number
    pairs, _ = step_time(few, task=RoutingTask(few, few.network, few.dataset.domains()))
    along, _ = step_time(few)
    print(f"pairs one by one: {1e3 * pairs:.1f} ms a step, {pairs / along:.0f} times as long")
    print("images   step on moments   all images in batches of 100   ratio")
    for count in (1000, 10_000, 60_000):
        moments, _ = step_time(run_of(chosen, count, 0.4))
        batch = {"name": "mini", "size": 100}
        mini, _ = step_time(run_of(chosen, count, 0.4, batch=batch))
        whole = mini * count / 100
        print(f"{count:6}   {1e3 * moments:12.1f} ms   {whole:25.2f} s   {whole / moments:5.0f}")


def gpu(chosen: argparse.Namespace) -> None:
    """Steps per second, their share of the matrix rate, and the time of the sweep over K/M."""
    device = jax.devices()[0]
    print(f"device: {device.platform}, {device.device_kind}; products at {chosen.precision}")
    rate = matrix_rate(chosen.precision, 8192 if device.platform == "gpu" else 1024)
    print(f"products of large matrices: {rate / 1e12:.2f} TFLOP/s")
    for name, training in (
        ("moments of 60,000 images", {}),
        (
            "cross-entropy, batches of 100",
            {
                "loss": {"name": "cross_entropy", "normalisation": "mean"},
                "batch": {"name": "mini", "size": 100},
            },
        ),
    ):
        seconds, flops = step_time(run_of(chosen, 60_000, 0.4, **training))
        print(
            f"{name}: {1 / seconds:.1f} steps/s, {flops / 1e9:.1f} GFLOP a step, "
            f"{100 * flops / seconds / rate:.0f}% of the matrix rate"
        )
    start = time.perf_counter()
    for share in SHARES:
        ensemble = run_of(chosen, 60_000, share)
        observables = ("pair_error", "pair_accuracy")
        every = chosen.steps // 20 or 1
        record = ensemble.record.model_copy(update={"every": every, "observables": observables})
        losses = trainer.train(ensemble.model_copy(update={"record": record})).variables
        print(
            f"K/M = {share:.1f}: trained {losses['trained_error'][0, 0, -1]:.3f}, "
            f"untrained {losses['untrained_error'][0, 0, -1]:.3f}, "
            f"{time.perf_counter() - start:.0f} s so far",
            flush=True,
        )


def main() -> None:
    """Runs what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpu", action="store_true", help="figure 7 at its size on a GPU")
    parser.add_argument("--folder", default="data/mnist", help="where the MNIST files lie")
    parser.add_argument("--domains", type=int, help="M; 20, with --gpu 100")
    parser.add_argument("--hidden", type=int, default=128, help="units in each hidden layer")
    parser.add_argument("--steps", type=int, help="steps; 10, with --gpu 10,000 as at full scale")
    parser.add_argument("--precision", default="highest", help="of matrix products")
    chosen = parser.parse_args()
    chosen.domains = chosen.domains or (100 if chosen.gpu else 20)
    chosen.steps = chosen.steps or (10_000 if chosen.gpu else 10)
    gpu(chosen) if chosen.gpu else images(chosen)


if __name__ == "__main__":
    main()
