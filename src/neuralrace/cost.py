"""What a cell costs, from its specification alone: arithmetic, bytes, and where it is trained.

The estimate is held against measured runs by `benchmarks/workflow.py`. It decides which cells share
a job, whether a cell is trained on a GPU, and what a cluster is asked for.
"""

from collections.abc import Container, Hashable
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any, Literal

from neuralrace.given import given
from neuralrace.registry import METRICS
from neuralrace.spec import Cell, FreshBatch, FullBatch, Run

Place = Literal["cpu", "gpu"]

# All measured on one core of a small machine, and to be taken for orders of magnitude elsewhere.
RATE = 2.2e10
"""Multiply-adds a core-second in float32; half of it in float64."""
CALL = 4e-7
"""Core-seconds of an operation of a compiled program beside its arithmetic."""
OPERATIONS = 60
"""Operations of a step, about."""
COMPILE, COMPILE_OBSERVABLE = 0.5, 0.25
"""Core-seconds to compile a program, and for each observable in it."""
DRAW = 20
"""Multiply-adds that drawing a number at random is worth."""
FILES = 0.08
"""Core-seconds of a solution or a metric that trains nothing: mostly its file."""
GPU_RATE, GPU_CALL, GPU_COMPILE = 2e12, 5e-6, 40.0
"""The same of a GPU, where the processor compiles for it."""
PROCESS_MB = 700
"""Megabytes of a process that has imported everything."""


@dataclass(frozen=True)
class Cost:
    """Estimated core-seconds of each stage, where the cell is trained, and its memory."""

    compile: float
    """For the first cell of its `program` in a job; later ones share it."""
    train: float
    solve: float
    measure: float
    place: Place
    memory_mb: int
    program: Hashable

    def seconds(self, known: Container[Hashable] = ()) -> float:
        """Core-seconds of all stages, where some programs are compiled already."""
        stages = self.train + self.solve + self.measure
        return stages if self.program in known else stages + self.compile


def cost_of(cell: Cell, gpu: bool = False) -> Cost:
    """The estimated cost of a cell.

    Args:
        cell: its specification.
        gpu: whether there is a GPU to train on.
    """
    compiling = COMPILE + COMPILE_OBSERVABLE * len(cell.record.observables)
    operations = OPERATIONS * passes(cell)
    work = multiply_adds(cell) / (1 if cell.precision == "float32" else 0.5)
    train = CALL * operations + work / RATE
    on_gpu = GPU_CALL * operations + work / GPU_RATE
    place: Place = "gpu" if gpu and GPU_COMPILE + on_gpu < compiling + train else "cpu"
    trained = sum(METRICS[name].declaration.trains for name in cell.metrics)
    runs = len(cell.init_scales) * cell.seeds
    return Cost(
        compile=GPU_COMPILE if place == "gpu" else compiling,
        train=on_gpu if place == "gpu" else train,
        solve=FILES * len(cell.solutions),
        measure=FILES * len(cell.metrics) + 2 * trained * train,
        place=place,
        memory_mb=PROCESS_MB + int(4 * numbers(cell) * 8 / 1e6),
        program=(
            runs,
            cell.dataset.name,
            cell.dataset.sizes,
            cell.resolved.canonical(),
            cell.record.observables,
            cell.training.loss.name,
            cell.training.batch,
            cell.training.optimiser,
            cell.precision,
        ),
    )


def passes(run: Run) -> float:
    """Forward and backward passes of a training: steps, and records with what is observed."""
    records = run.training.steps / run.record.every
    return run.training.steps + records * (1 + len(run.record.observables)) / 3


def multiply_adds(run: Run) -> float:
    """Multiply-adds of a training: three times those of a forward pass, over steps and runs."""
    runs = len(run.init_scales) * run.seeds
    whole, shown = forward(run)
    records = run.training.steps / run.record.every
    return 3 * runs * (run.training.steps * shown + records * whole)


def numbers(run: Run) -> float:
    """Numbers held at once: weights and gradients, what all runs see, and what is recorded."""
    runs = len(run.init_scales) * run.seeds
    _, shown = forward(run)
    return runs * (3 * weights(run) + shown ** (2 / 3)) + examples(run) + recorded(run)


def examples(run: Run) -> float:
    """Numbers in inputs and targets: of the dataset, and of the batches of a step."""
    samples, inputs, outputs = run.dataset.sizes
    batch = run.training.batch
    drawn = 0 if isinstance(batch, FullBatch) else run.seeds * batch.size
    return float(samples + drawn) * (inputs + outputs)


def recorded(run: Run) -> float:
    """Numbers in the records of all runs: dimensions that sizes do not tell count as 1."""
    samples, inputs, outputs = run.dataset.sizes
    known = {
        "time": run.training.steps // run.record.every + 1,
        "snapshot": run.record.snapshots + 1,
        "sample": samples,
        "input": inputs,
        "output": outputs,
    }
    variables = given("trajectory", run.record.observables).values()
    each = sum(prod(known.get(dim, 1) for dim in variable.dims) for variable in variables)
    return float(len(run.init_scales) * run.seeds * each)


def weights(run: Run) -> float:
    """Weights of one run."""
    domains = getattr(run.dataset, "count", 1) if run.resolved.name == "routing" else 1
    return domains * pathways(run) * _chain(run)


def forward(run: Run) -> tuple[float, float]:
    """Multiply-adds of a forward pass of one run: over all samples, and over those of a step."""
    network, (samples, inputs, outputs) = run.resolved, run.dataset.sizes
    batch = run.training.batch
    step = samples if isinstance(batch, FullBatch) else batch.size
    chain = _chain(run)
    if network.name == "routing":
        domains = run.dataset.count
        first, last = network.hidden[0], network.hidden[-1]
        if not hasattr(run.dataset, "image_domains"):
            # maps of all pairs through their blocks, and products with their correlations
            sizes = [family.size for family in network.families(domains)]
            blocks = sum(chain / size for size in sizes)
            per = domains**2 * (blocks + inputs * outputs * (len(sizes) * last + inputs))
            return per, per
        if isinstance(batch, FullBatch):
            # correlations alone: maps of all domains, and products with their moments
            per = chain + first * inputs * inputs + last * inputs * (outputs + last)
            return domains * per, domains * per
        seen = float(inputs * first + network.partners(domains) * last * outputs)
        return domains * samples * seen, domains * step * seen
    many = pathways(run)
    if _on_moments(run):
        rows = min(samples, inputs * many + outputs)
        return many * rows * chain, many * rows * chain
    drawn = DRAW * inputs if isinstance(batch, FreshBatch) else 0
    return many * samples * chain, step * (many * chain + drawn)


def pathways(run: Run) -> int:
    """Pathways side by side; 1 in other networks."""
    network: Any = run.resolved
    if network.name != "gated":
        return 1
    return getattr(network.gates, "pathways", 0) or network.gates.count(run.dataset)


def _chain(run: Run) -> float:
    """Multiply-adds of one sample through layers in a row, and the weights of these."""
    _, inputs, outputs = run.dataset.sizes
    widths = (inputs, *_widths(run.resolved), outputs)
    return float(sum(below * above for below, above in pairwise(widths)))


def _widths(network: Any) -> tuple[int, ...]:
    """Units of the hidden layers; of a graph those of its hidden nodes."""
    if network.name == "graph":
        return tuple(network.nodes[name] for name in network.hidden)
    return network.hidden


def _on_moments(run: Run) -> bool:
    """Whether training sees samples through their second moments alone."""
    network: Any = run.resolved
    linear = network.name != "layered" or (network.activation == "linear" and not network.bias)
    squared = run.training.loss.name == "squared_error"
    return linear and squared and isinstance(run.training.batch, FullBatch)
