"""Core-seconds and memory of training over seeds, width, depth, steps, samples, records, domains.

One axis at a time departs from a base: a ReLU network 20-100-10 on 400 samples, 10 seeds, 2,000
steps, 200 records of the loss, float32; with singular values along `records`, and a routing network
of the neural race along `domains`. Every point has a process of its own, with one thread:

    taskset -c 0 python benchmarks/scaling.py
    python benchmarks/scaling.py --quick --axes samples domains    # two points of each

It prints a table, and writes results/scaling.json and results/scaling.png.
"""

import argparse
import json
import os
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from neuralrace.results.atomic import replacing, write_text
from neuralrace.training.environment import set_up_environment

Point = dict[str, Any]
BASE = {"seeds": 10, "width": 100, "depth": 1, "steps": 2000, "samples": 400}
BASE |= {"records": 200, "domains": 10}
AXES = {
    "seeds": (1, 10, 100, 400),
    "width": (25, 100, 400, 1600),
    "depth": (1, 2, 4, 8, 16),
    "steps": (500, 2000, 8000),
    "samples": (25, 100, 400, 1600, 6400, 25_600, 100_000),
    "records": (20, 200, 2000),
    "domains": (5, 10, 20, 40),
}
BUDGET = 0.5
"""Least core-seconds of the steps that are measured; more than that are scaled up."""
MARGIN = 0.15
"""Least difference of exponents of time and work that counts; two runs differed by up to 0.09."""
MANY, LIMIT = 300_000, 1000
"""Samples whose layers take more than a limit of memory, and that limit in MiB."""


def ensemble_of(axis: str, sizes: dict[str, int]) -> Any:
    """The runs of one point."""
    from neuralrace.config.cell import Ensemble

    spec: dict[str, Any] = {
        "init_scales": [0.5],
        "seeds": sizes["seeds"],
        "training": {"learning_rate": 1e-4, "steps": sizes["steps"]},
        "record": {"every": BASE["steps"] // sizes["records"]},
        "init": {"name": "orthogonal" if axis == "domains" else "glorot"},
        "precision": "float32",
    }
    if axis == "records":
        spec["record"]["observables"] = ["singular_values"]
    if axis == "domains":
        pairs = {"name": "band", "partners": 2 * sizes["domains"] // 5}
        routes = {"hidden": [64, 64], "gates": {"name": "always_on"}, "pairs": pairs}
        spec["dataset"] = {"name": "routing", "count": sizes["domains"]}
        spec["network"] = {"name": "routing"} | routes
    else:
        mixture = {"name": "gaussian_mixture", "components": 1, "inputs": 20, "outputs": 10}
        hidden = [sizes["width"]] * sizes["depth"]
        spec["dataset"] = mixture | {"samples_per_component": sizes["samples"]}
        spec["network"] = {"name": "layered", "hidden": hidden, "activation": "relu"}
    return Ensemble.model_validate_json(json.dumps(spec))


def peak() -> float:
    """Peak resident memory of this process, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(axis: str, sizes: dict[str, int], budget: float) -> Point:
    """Core-seconds of all steps, scaled up from the difference of two trainings; peak memory."""
    from neuralrace.config.cost import multiply_adds
    from neuralrace.training.trainer import train

    before = {"imports": time.process_time(), "imports_mib": peak()}
    ensemble = ensemble_of(axis, sizes)
    training, few, whole = ensemble.training, ensemble.record.every, sizes["steps"]
    forward = ensemble.resolved.arithmetic(
        ensemble.dataset, ensemble.dataset.sizes, ensemble.init, training
    )

    def core_seconds(steps: int) -> float:
        begin = time.process_time()
        changed = {"training": training.model_copy(update={"steps": steps})}
        train(ensemble.model_copy(update=changed))
        return time.process_time() - begin

    cold, short = core_seconds(few), core_seconds(few)
    steps, long = few, short
    while steps == few or (long - short < budget and steps < whole):
        steps = whole if axis == "steps" else min(4 * steps, whole)
        long = core_seconds(steps)
    each = (long - short) / (steps - few)
    work = multiply_adds(ensemble, forward)
    return before | {
        "size": sizes[axis],
        "core_seconds": each * whole,
        "mib": peak(),
        "steps": steps,
        "multiply_adds": work,
        "rate": work / (each * whole) / 1e9,
        "compile": cold - short,
        "start": short - each * few,
    }


def beyond_memory(blocks: bool) -> str:
    """What one step does whose layers on all samples exceed the limit, with blocks or without."""
    from neuralrace.errors import UserError
    from neuralrace.training import memory
    from neuralrace.training.trainer import train

    os.environ["SLURM_MEM_PER_NODE"] = str(LIMIT)
    memory.CACHE = memory.CACHE if blocks else 2**62
    try:
        train(ensemble_of("samples", BASE | {"samples": MANY, "steps": 1, "records": 2000}))
    except UserError as error:
        return f"refused: {error.problem}"
    return f"trained in {peak():.0f} MiB"


def row_of(axis: str, points: list[Point]) -> str:
    """One axis in the table, with exponents of the last three points, by least squares."""
    import numpy as np

    names = ("size", "core_seconds", "multiply_adds")
    logs = np.log([[point[name] for name in names] for point in points[-3:]])
    seconds, work = np.polyfit(logs[:, 0], logs[:, 1:], 1)[0]
    columns = (("size", 6), ("core_seconds", 2), ("mib", 3), ("steps", 6), ("rate", 2))
    cells = [
        " / ".join(f"{float(f'{point[name]:.{digits}g}'):,.6g}" for point in points)
        for name, digits in columns
    ]
    other = "starting operations" if seconds < work else "weights beyond the cache"
    limit = "matrix products" if abs(seconds - work) < MARGIN else other
    return f"| {axis} | {' | '.join(cells)} | {seconds:.2f} | {work:.2f} | {limit} |"


def draw(axes: dict[str, list[Point]], file: Path) -> None:
    """Core-seconds and memory over relative size, as wide as a column."""
    from matplotlib.figure import Figure

    from neuralrace.figures import style

    with style.rc_context(), replacing(file) as temporary:
        figure = Figure(figsize=(style.COLUMN, 4.4), layout="constrained")
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        for (axis, points), look in style.styled(list(axes.items())):
            sizes = [point["size"] / BASE[axis] for point in points]
            look |= {"label": axis, "linewidth": 0.9, "markersize": 3.5}
            upper.loglog(sizes, [point["core_seconds"] for point in points], **look)
            lower.semilogx(sizes, [point["mib"] for point in points], **look)
        upper.axline((1, 1), (10, 10), **style.GUIDE)
        upper.set_ylabel("core-seconds (grey: linear)")
        upper.legend(ncols=2)
        lower.set(xlabel="size, relative to the base", ylabel="peak memory (MiB)", ylim=(0, None))
        figure.savefig(temporary, format="png", dpi=200)


def main() -> None:
    """Measures, prints, writes and draws."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--axes", nargs="+", choices=AXES, default=AXES, help="all if absent")
    parser.add_argument("--quick", action="store_true", help="the first two points of every axis")
    parser.add_argument("--output", type=Path, default=Path("results"), help="folder of the files")
    chosen = parser.parse_args()
    os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "false"  # compilation is measured
    set_up_environment(threads=1)  # of the processes that measure
    budget, last = (0, 2) if chosen.quick else (BUDGET, None)
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as processes:
        axes: dict[str, list[Point]] = {}
        for axis in chosen.axes:
            sizes = [BASE | {axis: size} for size in AXES[axis][:last]]
            jobs = [processes.submit(measure, axis, each, budget) for each in sizes]
            axes[axis] = [job.result() for job in jobs]
        for blocks, way in ((True, "in blocks"), (False, "all at once")):
            result = processes.submit(beyond_memory, blocks).result()
            print(f"{MANY:,} samples with {LIMIT} MiB of memory, {way}: {result}")
    points = [point for row in axes.values() for point in row]
    for name in ("imports", "compile", "start", "imports_mib"):
        values = sorted(point[name] for point in points)
        print(f"{name}: {values[0]:.2f} to {values[-1]:.2f}")
    print("| axis | sizes | core-s | MiB | measured steps | 1e9/s | exponent | of work | limit |")
    print("|---|---|---|---|---|---|---|---|---|")
    for axis, row in axes.items():
        print(row_of(axis, row))
    write_text(json.dumps(axes, indent=1) + "\n", chosen.output / "scaling.json")
    draw(axes, chosen.output / "scaling.png")


if __name__ == "__main__":
    main()
