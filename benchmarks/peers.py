"""The package against plain JAX, written by hand for two works: whole processes, cold and warm.

- `race`: the routing network of figure 4 of the neural race (M = 7, K = 4, 64 hidden units, 10
  seeds, 500 epochs, float64), with its loss and all singular values every 2 epochs;
- `relu`: the ReLU network of three contexts of Make Haste Slowly (700 hidden units, 2 seeds, 8000
  epochs, float32), with its loss every 40 epochs.

Both sides have the same data and initial weights, which a first process takes from the package and
saves. Then whole processes alternate: `nr.simulate` as in the README, and functions of this file,
which import NumPy and JAX alone. Each process works twice: cold, and then warm, with other numbers
of the same shapes. No ratio is printed unless the losses of both sides agree.

    python benchmarks/peers.py
    python benchmarks/peers.py race --times 5
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

# JAX and the package are imported inside functions: imports are part of what is measured

Arrays = dict[str, Any]
Work = Callable[[Arrays], Any]
"""Trains from the saved data and weights, and returns losses (seed, time)."""
SPECIFICATIONS: dict[str, dict[str, Any]] = {
    "race": {
        "x": {"name": "routing", "count": 7},
        "network": {
            "name": "routing",
            "hidden": [64, 64],
            "gates": {"name": "always_on"},
            "pairs": {"name": "band", "partners": 4},
        },
        "init": "orthogonal",
        "init_scales": [0.2],
        "seeds": 10,
        "learning_rate": 0.02 / 28,
        "steps": 500,
        "records": 250,
        "loss": {"name": "squared_error", "normalisation": "sum"},
        "observables": ["singular_values"],
    },
    "relu": {
        "x": {"name": "contextual", "contexts": 3},
        "hidden": [700],
        "activation": "relu",
        "init_scales": [1e-4],
        "seeds": 2,
        "learning_rate": 1e-3,
        "steps": 8000,
        "records": 200,
        "loss": {"name": "squared_error", "normalisation": "half_sum"},
        "observables": [],
        "precision": "float32",
    },
}
"""Arguments of `nr.simulate`."""
AGREE = {"race": 1e-9, "relu": 1e-4}
"""Largest difference of losses, relative to the initial loss, that rounding explains. In float32 a
fall of the loss comes some steps earlier or later."""


def specification(work: str, warm: bool) -> dict[str, Any]:
    """Arguments of `nr.simulate`; the warm work has other data (race) or a larger start (relu)."""
    spec = SPECIFICATIONS[work]
    if warm and work == "race":
        return spec | {"x": spec["x"] | {"seed": 1}}
    return spec | {"init_scales": [2e-4]} if warm else spec


def plain_race(rate: float, every: int, records: int) -> Work:
    """The race in plain JAX."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    jax.config.update("jax_enable_x64", True)

    def loss(weights, x, y, mask):
        encoder, hidden, decoder = weights
        signal = jnp.einsum("gh,ihx,inx->ing", hidden, encoder, x)
        error = jnp.einsum("jyg,ing->ijny", decoder, signal) - y[None]
        return jnp.sum(mask * jnp.sum(error**2, axis=(2, 3)))

    def one_seed(weights, *data):
        def observe(weights):
            values = [jnp.linalg.svd(w, compute_uv=False) for w in weights]
            return loss(weights, *data), values

        def step(_, weights):
            slopes = jax.grad(loss)(weights, *data)
            return jax.tree.map(lambda w, slope: w - rate * slope, weights, slopes)

        def record(weights, _):
            weights = jax.lax.fori_loop(0, every, step, weights)
            return weights, observe(weights)

        _, seen = jax.lax.scan(record, weights, length=records)
        return observe(weights), seen

    train = jax.jit(jax.vmap(one_seed, (0, None, None, 0)))

    def work(start):
        weights = [start[name] for name in ("encoder", "hidden", "decoder")]
        (first, _), (losses, values) = train(weights, start["x"], start["y"], start["mask"])
        for each in values:
            np.asarray(each)
        return np.hstack([np.asarray(first)[:, None], losses])

    return work


def plain_relu(rate: float, every: int, records: int) -> Work:
    """The ReLU network in plain JAX."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    def loss(weights, x, y):
        first, second = weights
        return 0.5 * jnp.sum((jax.nn.relu(x @ first.T) @ second.T - y) ** 2)

    def one_seed(weights, x, y):
        def step(_, weights):
            slopes = jax.grad(loss)(weights, x, y)
            return jax.tree.map(lambda w, slope: w - rate * slope, weights, slopes)

        def record(weights, _):
            weights = jax.lax.fori_loop(0, every, step, weights)
            return weights, loss(weights, x, y)

        _, losses = jax.lax.scan(record, weights, length=records)
        return loss(weights, x, y), losses

    train = jax.jit(jax.vmap(one_seed, (0, None, None)))

    def work(start):
        single = {name: array.astype(np.float32) for name, array in start.items()}
        weights = [single[name] for name in ("first", "second")]
        first, losses = train(weights, single["x"], single["y"])
        return np.hstack([np.asarray(first)[:, None], losses])

    return work


PLAIN = {"race": plain_race, "relu": plain_relu}


def ours(work: str) -> Callable[[bool], Any]:
    """The work by the package, which makes data and weights itself."""
    import neuralrace as nr

    def run(warm: bool) -> Any:
        tree = nr.simulate(**specification(work, warm), theory=None, progress=False)
        return tree["trajectory"]["loss"].values[0]

    return run


def plain(work: str, folder: Path) -> Callable[[bool], Any]:
    """The work by the functions of this file."""
    import numpy as np

    spec = SPECIFICATIONS[work]
    train = PLAIN[work](spec["learning_rate"], spec["steps"] // spec["records"], spec["records"])
    return lambda warm: train(dict(np.load(folder / f"{work}-{warm}.npz")))


def save_start(work: str, folder: Path) -> None:
    """Saves data and initial weights of the cold and the warm work, as the package has them."""
    import numpy as np

    import neuralrace as nr

    for warm in (False, True):
        cell = nr.specify(**specification(work, warm))
        task, seeds = cell.task(), cell.seed_numbers
        weights = task.weights(cell.init_scales, seeds)
        if work == "race":
            ((encoder, hidden, decoder),), _ = weights
            arrays = {
                "encoder": encoder[0, :, 0, 0],
                "hidden": hidden[0, :, 0, 0],
                "decoder": decoder[0, :, 0, 0],
                "x": task.arrays["inputs"],
                "y": task.arrays["targets"],
                "mask": task.per_run(seeds)["mask"],
            }
        else:
            arrays = {name: task.arrays[name] for name in ("x", "y")}
            arrays |= {"first": weights[0][0], "second": weights[1][0]}
        np.savez(folder / f"{work}-{warm}.npz", **arrays)


def measure(side: str, work: str, folder: Path, began: float) -> None:
    """Runs in a process of its own: works cold and warm, and saves losses and what they cost."""
    run = ours(work) if side == "ours" else plain(work, folder)
    cold = run(False)
    cold_cpu, cold_ends = time.process_time(), time.time()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # in kB on Linux
    losses = [cold, run(True)]
    costs = {
        "cold_cpu": cold_cpu,
        "cold_wall": cold_ends - began,
        "warm_cpu": time.process_time() - cold_cpu,
        "warm_wall": time.time() - cold_ends,
        "memory": memory,
    }
    (folder / f"{side}.json").write_text(json.dumps(costs), encoding="utf-8")

    import numpy as np

    np.save(folder / f"{side}.npy", np.stack(losses))


def child(*arguments: str) -> None:
    """Runs this file in a process of its own, with the time at which it starts."""
    # one thread for each: how two cores are shared would otherwise decide the ratio of wall times
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "OMP_NUM_THREADS": "1"}
    # installed packages have bytecode; without it, a checkout is compiled anew in every process
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, __file__, *arguments, "--began", repr(time.time())]
    subprocess.run(command, env=environment, check=True)


def compare(work: str, times: int) -> None:
    """Runs both sides in alternation and reports what they cost."""
    costs: dict[str, list[dict[str, float]]] = {"ours": [], "plain": []}
    with TemporaryDirectory() as name:
        folder = Path(name)
        child(work, "--side", "start", "--folder", name)
        for _ in range(times):
            for side, seen in costs.items():
                child(work, "--side", side, "--folder", name)
                seen.append(json.loads((folder / f"{side}.json").read_text(encoding="utf-8")))

        import numpy as np

        report(work, costs, np.load(folder / "ours.npy"), np.load(folder / "plain.npy"))


def report(work: str, costs: dict[str, list[dict[str, float]]], found: Any, expected: Any) -> None:
    """Compares the losses of both sides, and prints medians of costs and their ratios.

    Args:
        work: name of the work.
        costs: costs of each process, by side.
        found: losses of the package (cold or warm, seed, time).
        expected: losses of plain JAX.

    Raises:
        SystemExit: the losses differ by more than rounding.
    """
    import numpy as np

    apart = float(np.max(abs(found - expected) / expected[..., :1]))
    print(f"{work}: largest difference of losses, relative to the first: {apart:.1e}")
    if not apart <= AGREE[work]:
        raise SystemExit(f"{work}: more than {AGREE[work]:.0e}: not the same work, so no ratio")
    print(f"  median of {len(costs['ours']):<15}{'neuralrace':>12}{'plain JAX':>12}{'ratio':>8}")
    for key in costs["ours"][0]:
        mine, theirs = (median(each[key] for each in costs[side]) for side in costs)
        unit = "MiB" if key == "memory" else "s"
        title = f"{key.replace('_', ', ')}, {unit}"
        print(f"  {title:<25}{mine:12.2f}{theirs:12.2f}{mine / theirs:8.2f}")


def main() -> None:
    """Compares the works that are named, or does one side of one of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("works", nargs="*", help=" or ".join(PLAIN))
    parser.add_argument("--times", type=int, default=3, help="processes of each side")
    for name in ("--side", "--folder", "--began"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    works = chosen.works or [*PLAIN]
    if unknown := set(works) - set(PLAIN):
        parser.error(f"no such work: {', '.join(sorted(unknown))}; there are {', '.join(PLAIN)}")
    if chosen.side == "start":
        save_start(works[0], Path(chosen.folder))
    elif chosen.side:
        measure(chosen.side, works[0], Path(chosen.folder), float(chosen.began))
    else:
        for work in works:
            compare(work, chosen.times)


if __name__ == "__main__":
    main()
