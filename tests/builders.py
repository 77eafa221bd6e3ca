"""Builders that tests share: specifications, cells, recorded trajectories and results in memory.

A test states what matters to it and takes everything else from here:

    cell = cell_with_requirements(["half_times"], network={"name": "layered", "hidden": [4]})
    loss = for_all_runs(cell, np.exp(-flow_time(cell)))
    metrics = metrics_of(cell, loss=loss)
    assert_close(metrics["loss_half_time"], for_all_runs(cell, np.log(2)), rtol=1e-3)
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from neuralrace.config.cell import Cell, Ensemble, SolvedEnsemble
from neuralrace.config.requirements import unmet
from neuralrace.extensions.registry import METRICS, OBSERVABLES, SOLUTIONS
from neuralrace.metrics.dataset import metrics_dataset
from neuralrace.results.axes import axes, provenance_attributes
from neuralrace.results.cells import CellResults
from neuralrace.results.schema import build

REPOSITORY = Path(__file__).parents[1]
CELL_NAME = "paper/experiment/main"
"""Identifier of cells that have no folder."""
LINEAR: dict[str, Any] = {
    "dataset": {"name": "modes", "singular_values": [2.0, 1.0], "inputs": 3, "outputs": 2},
    "network": {"name": "layered", "hidden": [2]},
    "init": {"name": "normal"},
    "init_scales": [0.1, 0.3],
    "seeds": 2,
    "training": {"learning_rate": 0.02, "steps": 40},
    "record": {"every": 10},
}
"""A two-layer linear network on two modes."""
MIXTURE: dict[str, Any] = {
    "dataset": {
        "name": "gaussian_mixture",
        "components": 2,
        "samples_per_component": 10,
        "inputs": 3,
        "outputs": 2,
    },
    "network": {"name": "layered", "hidden": [4]},
    "init": {"name": "normal"},
    "init_scales": [0.3, 0.6],
    "seeds": 2,
    "training": {"learning_rate": 0.02, "steps": 12},
    "record": {"every": 1, "snapshots": 12, "observables": ["weights"]},
}
"""A short training on a few samples, with all weights recorded at every step."""
RELU: dict[str, Any] = {
    "dataset": {"name": "xor"},
    "network": {"name": "layered", "hidden": [6], "activation": "relu"},
    "init": {"name": "normal"},
    "init_scales": [0.01, 0.1],
    "seeds": 3,
    "training": {"learning_rate": 0.01, "steps": 4000},
    "record": {"every": 10, "snapshots": 2},
}
"""ReLU networks with one hidden layer on XoR."""


def build_cell(base: Mapping[str, Any] = LINEAR, **changes: Any) -> Cell:
    """A cell from a specification; `changes` replace its top-level keys."""
    return Cell.model_validate_json(json.dumps({**base, **changes}))


def build_ensemble(base: Mapping[str, Any] = LINEAR, **changes: Any) -> Ensemble:
    """The same without theory and metrics."""
    return Ensemble.model_validate_json(json.dumps({**base, **changes}))


def cell_with_requirements(
    metrics: Sequence[str], base: Mapping[str, Any] = LINEAR, **changes: Any
) -> Cell:
    """A cell that also records and solves what its metrics require.

    Where a metric accepts one of several, the first that suits the cell is added.
    """
    spec = {**base, **changes}
    plain = build_cell(spec, metrics=[])
    record = spec["record"]
    observables, solutions = list(record.get("observables", ())), list(spec.get("solutions", ()))
    for name in metrics:
        declaration = METRICS[name].declaration
        for required, present, registry in (
            (declaration.observables, observables, OBSERVABLES),
            (declaration.solutions, solutions, SOLUTIONS),
        ):
            for each in required.split():
                names = each.split("|")
                if not each.startswith("*") and not set(names) & set(present):
                    suitable = (
                        n for n in names if not unmet(plain, registry[n].declaration.requires)
                    )
                    present.append(next(suitable, names[0]))
    record = record | {"observables": observables}
    return build_cell(spec, record=record, solutions=solutions, metrics=list(metrics))


def for_all_runs(cell: Ensemble, array: Any) -> np.ndarray:
    """The same array for every run: (init_scale, seed, ...)."""
    return np.tile(array, (len(cell.init_scales), cell.seeds, *[1] * np.ndim(array)))


def random_for_runs(cell: Ensemble, *shape: int) -> np.ndarray:
    """Normal numbers, others for every run: (init_scale, seed, *shape)."""
    return np.random.default_rng(7).normal(size=(len(cell.init_scales), cell.seeds, *shape))


def flow_time(cell: Ensemble, samples: int | None = None) -> np.ndarray:
    """Flow time at the entries of the time axis."""
    return axes(cell, len(cell.dataset.load().x) if samples is None else samples)["flow_time"][1]


def recorded_trajectory(
    cell: Cell | Ensemble, samples: int | None = None, **arrays: Any
) -> xr.Dataset:
    """A trajectory as training would record it, from arrays (init_scale, seed, ...).

    Args:
        cell: what was trained.
        samples: size of the dataset; it is loaded when absent.
        arrays: recorded variables; a loss of one and no divergence when absent.
    """
    coordinates = axes(cell, len(cell.dataset.load().x) if samples is None else samples)
    ones = np.ones(len(coordinates["time"][1]))
    arrays = {"loss": for_all_runs(cell, ones)} | arrays
    arrays = {"diverged_at": np.full(arrays["loss"].shape[:2], -1)} | arrays
    attributes = provenance_attributes(CELL_NAME, cell, "train", ("numpy",))
    return build("trajectory", arrays, coordinates, attributes)


def trained_trajectory(cell: Ensemble) -> xr.Dataset:
    """The trajectory of networks that are trained here."""
    # imported here, so that tests without training do not load JAX
    from neuralrace.results.trajectory import trajectory_dataset
    from neuralrace.training.trainer import train

    ensemble = cell.only(Ensemble)
    return trajectory_dataset(CELL_NAME, ensemble, train(ensemble))


def solved_theory(cell: SolvedEnsemble) -> xr.Dataset:
    """The theory of the cell's solutions, solved here."""
    from neuralrace.results.theory import theory_dataset

    return theory_dataset(CELL_NAME, cell.only(SolvedEnsemble))


def theory_in_memory(
    cell: Cell, solutions: Sequence[str] = (), samples: int | None = None, **arrays: Any
) -> xr.Dataset:
    """Theory as it would be solved, from arrays (init_scale, seed, solution, ...).

    Variables of candidates have the axis `candidate` in place of `solution`.
    """
    coordinates = axes(cell, len(cell.dataset.load().x) if samples is None else samples)
    coordinates = {name: axis for name, axis in coordinates.items() if "snapshot" not in name}
    for name, labels in (("solution", solutions), ("candidate", list(cell.candidates))):
        if labels:
            coordinates[name] = (name, np.array(labels), "1")
    return build("theory", arrays, coordinates, {})


def results_in_memory(
    cell: Cell,
    trajectory: xr.Dataset | None = None,
    theory: xr.Dataset | None = None,
    metrics: xr.Dataset | None = None,
) -> CellResults:
    """The results of a cell, without files."""
    return CellResults(CELL_NAME, Path(), cell, trajectory, theory, metrics)


def metrics_of(
    cell: Cell,
    trajectory: xr.Dataset | None = None,
    theory: xr.Dataset | None = None,
    **arrays: Any,
) -> xr.Dataset:
    """All metrics of a cell, from a trajectory or from the arrays of `recorded_trajectory`."""
    if trajectory is None:
        trajectory = recorded_trajectory(cell, **arrays)
    return metrics_dataset(results_in_memory(cell, trajectory, theory))


def assert_close(actual: Any, expected: Any, **tolerance: Any) -> None:
    """Checks the shape of an array and its numbers, within 1e-9 of their size when absent."""
    expected = np.asarray(expected, dtype=float)
    assert np.shape(actual) == expected.shape
    np.testing.assert_allclose(actual, expected, **({"rtol": 1e-9} | tolerance))
