"""Cost of a cell, from its specification alone: time, disk, and where it is trained.

The estimate is held against measured runs by `benchmarks/workflow.py`. It decides in
which order cells are trained, which of them on a GPU, and what a cluster is asked for.
"""

from collections.abc import Container, Hashable
from dataclasses import dataclass
from typing import Literal

from neuralrace.config.cell import Cell, Ensemble
from neuralrace.config.memory import estimate_mb, examples, recorded
from neuralrace.datasets.image_domains import ImageDomainDataset
from neuralrace.extensions.registry import METRICS
from neuralrace.networks.base import Arithmetic

Device = Literal["cpu", "gpu"]

# All measured on one core of a small machine, and to be taken for orders of magnitude elsewhere.
RATE = 2.4e10
"""Multiply-adds a core-second in float32; half of it in float64."""
CALL = 4e-7
"""Core-seconds of an operation of a compiled program beside its arithmetic."""
OPERATIONS = 60
"""Operations of a step, about."""
START = 0.15
"""Core-seconds of any training beside its steps: tracing, loading its program, writing its file."""
COMPILE, COMPILE_OBSERVABLE, COMPILE_BATCH = 0.5, 0.25, 1.0
"""Core-seconds to compile a program, for each observable in it, and for batches that are drawn."""
CACHE, UPDATE = 1e7, 3e-10
"""Bytes of weights of all runs beyond which updating them takes this many core-seconds a byte."""
LOAD, LOOK = 5e-7, 1.3e-6
"""Core-seconds for each number of a dataset, to load it and for a metric to go through it."""
IMAGES = 0.03
"""What images by domain cost of that: bytes, averaged once for all cells of a worker."""
FILES = 0.04
"""Core-seconds of a solution or a metric that trains nothing: mostly its file."""
GPU_RATE, GPU_CALL, GPU_COMPILE = 2e12, 5e-6, 40.0
"""The same of a GPU, where the processor compiles for it."""
FILES_OF_RECORDS = 20
"""Bytes of the files of a cell for each byte that is recorded, where dimensions that sizes do not
tell count as 1; with theory, metrics, and a file beside the one that it replaces."""


@dataclass(frozen=True)
class Cost:
    """Estimated core-seconds of each stage, where the cell is trained, its memory and files."""

    compile: float
    """For the first cell of its `program`; later ones share it."""
    train: float
    solve: float
    measure: float
    device: Device
    memory_mb: int
    disk_mb: int
    program: Hashable

    def seconds(self, known: Container[Hashable] = ()) -> float:
        """Core-seconds of all stages, where some programs are compiled already."""
        stages = self.train + self.solve + self.measure
        return stages if self.program in known else stages + self.compile


def estimate_cost(cell: Cell, gpu: bool = False) -> Cost:
    """The estimated cost of a cell.

    Args:
        cell: its specification.
        gpu: whether there is a GPU to train on.
    """
    sizes = cell.dataset.sizes
    each = cell.resolved.arithmetic(cell.dataset, sizes, cell.training)
    compiling = COMPILE + COMPILE_OBSERVABLE * len(cell.record.observables)
    compiling += 0 if cell.training.batch.whole else COMPILE_BATCH
    operations = OPERATIONS * passes(cell)
    runs = len(cell.init_scales) * cell.seeds
    width = 1 if cell.precision == "float32" else 2
    work = width * multiply_adds(cell, each)
    held = 4 * width * runs * each.weights
    updating = UPDATE * held * cell.training.steps if held > CACHE else 0
    loaded = examples(cell, sizes) * (IMAGES if isinstance(cell.dataset, ImageDomainDataset) else 1)
    train = START + CALL * operations + work / RATE + updating + LOAD * loaded
    on_gpu = START + GPU_CALL * operations + work / GPU_RATE
    device: Device = "gpu" if gpu and GPU_COMPILE + on_gpu < compiling + train else "cpu"
    trained = sum(METRICS[name].declaration.trains for name in cell.metrics)
    return Cost(
        compile=GPU_COMPILE if device == "gpu" else compiling,
        train=on_gpu if device == "gpu" else train,
        solve=FILES * len(cell.solutions),
        measure=(FILES + LOOK * loaded) * len(cell.metrics) + trained * train / 2,
        device=device,
        memory_mb=estimate_mb(cell, each, sizes),
        disk_mb=1 + int(FILES_OF_RECORDS * 4 * width * recorded(cell, sizes) / 1e6),
        program=(
            runs,
            cell.dataset.name,
            sizes,
            type(cell.resolved),
            each,
            cell.record.observables,
            cell.training.loss.name,
            cell.training.batch,
            cell.training.optimiser,
            cell.precision,
        ),
    )


def passes(ensemble: Ensemble) -> float:
    """Forward and backward passes of a training: steps, and records with what is observed."""
    records = ensemble.training.steps / ensemble.record.every
    return ensemble.training.steps + records * (1 + len(ensemble.record.observables)) / 3


def multiply_adds(ensemble: Ensemble, each: Arithmetic) -> float:
    """Multiply-adds of a training: three times those of a forward pass, over steps and runs."""
    runs = len(ensemble.init_scales) * ensemble.seeds
    records = ensemble.training.steps / ensemble.record.every
    return 3 * runs * (ensemble.training.steps * each.step + records * each.whole)
