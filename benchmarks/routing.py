"""The routing network of figure 4 against the loops over pathways that one would write first.

All train M = 7 domains, K = 4 partners, 64 hidden units for 500 epochs and take singular values of
all layers every 2 epochs. The engine trains 10 seeds from a cold start; each loop trains one seed
for a few epochs, which is scaled up:

    python benchmarks/routing.py
    python benchmarks/routing.py --scaling    # cost of a step against pairs and samples
    python benchmarks/routing.py --scaling --plot scaling.png
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
from matplotlib.figure import Figure  # noqa: E402

from neuralrace.config.cell import Ensemble  # noqa: E402
from neuralrace.datasets import Domains  # noqa: E402
from neuralrace.networks.tasks.domains import RoutingTask  # noqa: E402
from neuralrace.training import trainer  # noqa: E402

IMPORTS = time.perf_counter() - began
SEEDS, EPOCHS, EVERY = 10, 500, 2


def run_of(domains: int = 7, partners: int = 4, **training: object) -> Ensemble:
    """The cell of figure 4, or the same with other domains and pairs."""
    spec = {
        "dataset": {"name": "routing", "count": domains},
        "network": {
            "name": "routing",
            "hidden": [64, 64],
            "gates": {"name": "always_on"},
            "pairs": {"name": "band", "partners": partners},
        },
        "init": {"name": "orthogonal"},
        "init_scales": [0.2],
        "seeds": SEEDS,
        "training": {
            "learning_rate": 0.02 / 28,
            "steps": EPOCHS,
            "loss": {"normalisation": "sum"},
            **training,
        },
        "record": {"every": EVERY, "observables": ["singular_values"]},
    }
    return Ensemble.model_validate_json(json.dumps(spec))


def one_seed(ensemble: Ensemble) -> tuple[list[np.ndarray], Domains, np.ndarray, float]:
    """Encoders, hidden weights and decoders of seed 0, the data, the pairs, and the step size."""
    domains = ensemble.dataset.domains()
    mask = ensemble.network.mask(domains.count, 0)
    task = ensemble.task()
    encoder, hidden, decoder = (w[0, 0, 0, 0] for w in task.weights([0.2], [0])[0])
    return [encoder, hidden, decoder], domains, np.argwhere(mask), ensemble.training.learning_rate


def numpy_loop(ensemble: Ensemble, epochs: int) -> np.ndarray:
    """Gradients written out, one pathway after the other, in NumPy."""
    (encoder, hidden, decoder), domains, pairs, rate = one_seed(ensemble)
    losses = []
    for epoch in range(epochs):
        loss, steps = 0.0, [np.zeros_like(w) for w in (encoder, hidden, decoder)]
        for i, j in pairs:
            below = encoder[i] @ domains.inputs[i].T
            above = hidden @ below
            error = decoder[j] @ above - domains.targets[j].T
            loss += np.sum(error**2)
            back = decoder[j].T @ error
            steps[2][j] += 2 * error @ above.T
            steps[1] += 2 * back @ below.T
            steps[0][i] += 2 * hidden.T @ back @ domains.inputs[i]
        losses.append(loss)
        if epoch % EVERY == 0:
            for w in (encoder, hidden, decoder):
                np.linalg.svd(w, compute_uv=False)
        encoder, hidden, decoder = (
            w - rate * g for w, g in zip((encoder, hidden, decoder), steps, strict=True)
        )
    return np.array(losses)


def autodiff_loop(ensemble: Ensemble, epochs: int) -> np.ndarray:
    """Automatic gradients, one pathway after the other, operation by operation."""
    with jax.enable_x64(True):
        weights, domains, pairs, rate = one_seed(ensemble)
        weights = [jnp.asarray(w) for w in weights]
        inputs, targets = jnp.asarray(domains.inputs), jnp.asarray(domains.targets)

        def loss(weights, i, j):
            encoder, hidden, decoder = weights
            answer = decoder[j] @ (hidden @ (encoder[i] @ inputs[i].T))
            return jnp.sum((answer - targets[j].T) ** 2)

        losses = []
        for epoch in range(epochs):
            total, steps = 0.0, [jnp.zeros_like(w) for w in weights]
            for i, j in pairs:
                value, gradient = jax.value_and_grad(loss)(weights, i, j)
                total += value
                steps = [s + g for s, g in zip(steps, gradient, strict=True)]
            losses.append(float(total))
            if epoch % EVERY == 0:
                for w in weights:
                    jnp.linalg.svd(w, compute_uv=False).block_until_ready()
            weights = [w - rate * s for w, s in zip(weights, steps, strict=True)]
    return np.array(losses)


def compare() -> None:
    """Times the engine and both loops and prints the ratios."""
    ensemble, compiling = run_of(), CompileTime()

    def timed(ensemble: Ensemble) -> tuple[np.ndarray, float, float]:
        """Losses of the first seed, seconds, and seconds without compilation."""
        start, before = time.perf_counter(), compiling.seconds
        losses = trainer.train(ensemble).variables["loss"][0, 0]
        seconds = time.perf_counter() - start
        return losses, seconds, seconds - (compiling.seconds - before)

    engine, seconds, _ = timed(ensemble)
    whole = time.perf_counter() - began
    _, _, training = timed(ensemble)
    bare = ensemble.model_copy(
        update={"record": ensemble.record.model_copy(update={"observables": ()})}
    )
    _, _, steps = timed(bare)
    print(f"routing network, M = 7, K = 4, 64 hidden units, {SEEDS} seeds x {EPOCHS} epochs")
    for what, value in (
        ("imports", IMPORTS),
        ("engine, cold", seconds),
        ("whole process up to here", whole),
        ("engine again, compilation left out", training),
        ("  the same without singular values", steps),
    ):
        print(f"{what:<40}{value:8.2f} s")
    for name, loop, epochs in (("NumPy", numpy_loop, 40), ("autodiff", autodiff_loop, 8)):
        loop(ensemble, 2)
        start = time.perf_counter()
        losses = loop(ensemble, epochs)
        each = (time.perf_counter() - start) / epochs
        # the same work, or no comparison
        np.testing.assert_allclose(losses[::EVERY], engine[: epochs // EVERY], rtol=1e-8)
        scaled = each * EPOCHS * SEEDS
        print(
            f"{name + ' loop over pathways, scaled up':<40}{scaled:8.2f} s  "
            f"{scaled / training:.1f} times that, {scaled / seconds:.1f} times the cold engine"
        )


def scaling(path: str | None) -> None:
    """Time of a step, recording left out, against trained pairs and against samples."""

    def step_time(task: RoutingTask, ensemble: Ensemble, steps: int = 200) -> float:
        engine = trainer.Trainer(ensemble, task=task)
        data, (members, fixed) = engine.data, engine.start()

        @jax.jit
        def advance(members):
            step = jax.vmap(engine.step, (0, 0, None, None))
            return jax.lax.fori_loop(
                0, steps, lambda _, now: step(now, fixed, data["loss"], jnp.asarray(0)), members
            )

        jax.block_until_ready(advance(members))
        times = []
        for _ in range(5):
            start = time.perf_counter()
            jax.block_until_ready(advance(members))
            times.append(time.perf_counter() - start)
        return min(times) / steps

    with jax.enable_x64(True):
        print("domains  partners  trained pairs  ms a step  us a step and pair")
        by_pairs: dict[str, list[tuple[int, float]]] = {"K = 0.4 M": [], "M = 20": []}
        sizes = ((5, 2), (10, 4), (20, 8), (40, 16), (20, 2), (20, 4), (20, 16))
        for domains, partners in sizes:
            ensemble = run_of(domains, partners)
            task = ensemble.task()
            seconds, pairs = step_time(task, ensemble), domains * partners
            for name, belongs in (
                ("K = 0.4 M", 5 * partners == 2 * domains),
                ("M = 20", domains == 20),
            ):
                if belongs:
                    by_pairs[name].append((pairs, 1e3 * seconds))
            print(
                f"{domains:7} {partners:9} {pairs:14} {1e3 * seconds:10.3f} "
                f"{1e6 * seconds / pairs:19.2f}"
            )
        print("samples of a pair  ms a step")
        ensemble = run_of(10, 4)
        base = ensemble.dataset.domains()
        by_samples = []
        for copies in (1, 100, 10_000):
            repeated = Domains(
                np.repeat(base.inputs, copies, axis=1), np.repeat(base.targets, copies, axis=1)
            )
            task = RoutingTask(ensemble.network, repeated, ensemble.init, ensemble.training)
            by_samples.append((4 * copies, 1e3 * step_time(task, ensemble)))
            print(f"{4 * copies:17} {by_samples[-1][1]:10.3f}")
    if path:
        figure = Figure(figsize=(6, 2.6), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True)
        for (name, points), look in zip(by_pairs.items(), ("o-", "s--"), strict=True):
            left.loglog(*zip(*sorted(points), strict=True), look, label=name)
        last, slowest = max(by_pairs["K = 0.4 M"])
        left.loglog([last / 16, last], [slowest / 16, slowest], "k:", label="linear")
        left.set(xlabel="trained pairs of domains", ylabel="milliseconds a step, 10 seeds")
        left.legend(frameon=False)
        right.loglog(*zip(*by_samples, strict=True), "o-")
        right.set(xlabel="samples of a pair (M = 10, K = 4)")
        figure.savefig(path, dpi=200)


def main() -> None:
    """Runs what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scaling", action="store_true", help="cost of a step instead")
    parser.add_argument("--plot", metavar="FILE", help="also draw the cost of a step")
    chosen = parser.parse_args()
    scaling(chosen.plot) if chosen.scaling else compare()


if __name__ == "__main__":
    main()
