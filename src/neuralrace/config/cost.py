"""Cost of a cell, from its specification alone: time, memory, disk and device.

The estimate decides the order of training, which cells train on a GPU, and the resources that
cluster jobs request. `benchmarks/workflow.py` compares it with measured runs.
"""

from collections.abc import Container, Hashable
from dataclasses import dataclass
from typing import Literal

from neuralrace.config.cell import Cell, Ensemble
from neuralrace.config.memory import estimate_mb, examples, recorded
from neuralrace.datasets.image_domains import ImageDomainDataset
from neuralrace.extensions.registry import METRICS
from neuralrace.networks.base import Arithmetic
from neuralrace.training.memory import CACHE

Device = Literal["cpu", "gpu"]

# All measured on one core of a small machine; elsewhere they are orders of magnitude.
RATE = 2.4e10
"""Multiply-adds a core-second in float32; half of it in float64."""
CALL = 4e-7
"""Core-seconds of an operation of a compiled program, without its arithmetic."""
OPERATIONS = 60
"""Approximate operations of a step."""
START = 0.15
"""Core-seconds of a training without its steps: tracing, loading its program, writing its file."""
COMPILE, COMPILE_OBSERVABLE, COMPILE_BATCH = 0.5, 0.25, 1.0
"""Core-seconds to compile a program, each observable in it, and the drawing of batches."""
UPDATE = 1.2e-10
"""Core-seconds per byte to update the weights of a run that does not fit into `memory.CACHE`."""
LOAD, READ = 5e-7, 1.3e-6
"""Core-seconds per number of a dataset: to load it, and for a metric to read it."""
IMAGES = 0.03
"""Factor on this for images by domain: bytes, averaged once for all cells of a worker."""
FILES = 0.04
"""Core-seconds of a solution or a metric that trains no network: mostly its file."""
GPU_RATE, GPU_CALL, GPU_COMPILE = 2e12, 5e-6, 40.0
"""The same for a GPU; the processor compiles its programs."""
FILES_OF_RECORDS = 20
"""Bytes of the files of a cell per recorded byte, where dimensions of unknown size count as 1. It
includes theory, metrics, and the temporary file that replaces an older one."""


@dataclass(frozen=True)
class Cost:
    """Estimated core-seconds of each stage, and the device, memory and disk space of a cell."""

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
        """Core-seconds of all stages, if the programs in `known` are compiled already."""
        stages = self.train + self.solve + self.measure
        return stages if self.program in known else stages + self.compile


def estimate_cost(cell: Cell, gpu: bool = False) -> Cost:
    """The estimated cost of a cell.

    Args:
        cell: its specification.
        gpu: whether a GPU is available.
    """
    sizes = cell.dataset.sizes
    run = cell.resolved.arithmetic(cell.dataset, sizes, cell.init, cell.training)
    compiling = COMPILE + COMPILE_OBSERVABLE * len(cell.record.observables)
    compiling += 0 if cell.training.batch.whole else COMPILE_BATCH
    operations = OPERATIONS * passes(cell)
    runs = len(cell.init_scales) * cell.seeds
    width = 1 if cell.precision == "float32" else 2
    work = width * multiply_adds(cell, run)
    weight_bytes = 4 * width * run.weights * run.changed
    updating = UPDATE * weight_bytes * runs * cell.training.steps if weight_bytes > CACHE else 0
    loaded = examples(cell, sizes) * (IMAGES if isinstance(cell.dataset, ImageDomainDataset) else 1)
    train = START + CALL * operations + work / RATE + updating + LOAD * loaded
    on_gpu = START + GPU_CALL * operations + work / GPU_RATE
    device: Device = "gpu" if gpu and GPU_COMPILE + on_gpu < compiling + train else "cpu"
    trained = sum(METRICS[name].declaration.trains for name in cell.metrics)
    return Cost(
        compile=GPU_COMPILE if device == "gpu" else compiling,
        train=on_gpu if device == "gpu" else train,
        solve=FILES * len(cell.solutions),
        measure=(FILES + READ * loaded) * len(cell.metrics) + trained * train / 2,
        device=device,
        memory_mb=estimate_mb(cell, run, sizes),
        disk_mb=1 + int(FILES_OF_RECORDS * 4 * width * recorded(cell, sizes) / 1e6),
        program=(
            runs,
            cell.dataset.name,
            sizes,
            type(cell.resolved),
            run,
            cell.record.observables,
            cell.training.loss.name,
            cell.training.batch,
            cell.training.optimiser,
            cell.precision,
        ),
    )


def passes(ensemble: Ensemble) -> float:
    """Forward and backward passes of a training: its steps, and its records with observables."""
    records = ensemble.training.steps / ensemble.record.every
    return ensemble.training.steps + records * (1 + len(ensemble.record.observables)) / 3


def multiply_adds(ensemble: Ensemble, run: Arithmetic) -> float:
    """Multiply-adds of a training: three times those of a forward pass, over steps and runs."""
    runs = len(ensemble.init_scales) * ensemble.seeds
    records = ensemble.training.steps / ensemble.record.every
    return 3 * runs * (ensemble.training.steps * run.step + records * run.whole)
