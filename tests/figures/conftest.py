"""A small set of result files for all figures, made without training.

The configured experiments, shrunk, with gradient flow (linear networks) or steady growth (others)
in the place of gradient descent. Theory and metrics are the library's own.
"""

from functools import reduce
from pathlib import Path

import numpy as np
import pytest
import yaml

from neuralrace.metrics.measure import metrics_dataset
from neuralrace.models.initialisation import initial_weights
from neuralrace.plan import read_plan
from neuralrace.records.axes import axes, provenance, record_steps
from neuralrace.records.files import write
from neuralrace.records.schema import build
from neuralrace.records.theory import theory_dataset
from neuralrace.spec import Cell, Run, SolvedRun
from neuralrace.theory.balance import imbalances
from neuralrace.theory.gradient_flow import linear_flow

CONFIG = Path(__file__).parents[2] / "config"
STEPS = 12


def small_cells() -> dict[str, Cell]:
    """The configured cells with two seeds, two values a sweep, and a dozen long steps."""
    experiments = {}
    for name in ("deep_linear.yaml", "layer_dynamics.yaml"):
        experiments |= yaml.safe_load((CONFIG / name).read_text())["experiments"]
    for experiment in (each for paper in experiments.values() for each in paper.values()):
        training, record = experiment["training"], experiment["record"]
        longer = training["steps"] / STEPS
        training["learning_rate"] *= longer
        training["steps"] = STEPS
        record |= {"every": 1, "snapshots": 4}
        experiment["seeds"] = 2
        for key, values in experiment.get("sweep", {}).items():
            factor = longer if key == "training.learning_rate" else 1
            experiment["sweep"][key] = [v * factor if factor != 1 else v for v in values[:2]]
    return read_plan({"experiments": experiments}, {}).cells


def stacked_norms(matrices: list[np.ndarray]) -> np.ndarray:
    return np.stack([np.linalg.norm(m, axis=(-2, -1)) for m in matrices], axis=-1)


def trajectory(cell_id: str, run: Run):
    """A trajectory file's content, from weights that follow gradient flow or grow steadily."""
    data = run.dataset.load()
    step, snapshot = record_steps(run)
    rng = np.random.default_rng(0)
    widths = (data.x.shape[1], *run.network.hidden, data.y.shape[1])
    start = initial_weights(run.init, widths, data.modes, run.init_scales, range(run.seeds))
    if run.network.activation == "linear":
        time = step * run.training.flow_step(len(data.x))
        path = linear_flow(time, start, data.sigma_yx, data.sigma_xx, rtol=1e-8, atol=1e-10)
    else:
        grown = 1 + 0.3 * step[:, None, None] / step[-1]
        noise = [0.01 * rng.normal(size=(len(step), *w.shape[-2:])) * (grown - 1) for w in start]
        path = [w[:, :, None] * grown + e for w, e in zip(start, noise, strict=True)]
    total = reduce(lambda below, above: above @ below, path)
    answer = np.einsum("rstoi,ni->rstno", total, data.x)
    runs = total.shape[:3]
    c = imbalances(path)
    drift = [each - each[:, :, :1] for each in c]
    diagonals = [np.diagonal(each, axis1=-2, axis2=-1) for each in drift]
    off = [
        each - diagonal[..., None] * np.eye(each.shape[-1])
        for each, diagonal in zip(drift, diagonals, strict=True)
    ]
    gaps = rng.uniform(0.2, 0.4, (*runs, len(c)))
    biases = [0.1 * np.sqrt(step)[:, None] * np.ones((*runs[:2], 1, n)) for n in widths[1:]]
    modes = data.modes
    seen = snapshot // run.record.every

    def gram() -> np.ndarray:
        vectors = np.concatenate([path[0] @ modes.v, path[1].mT @ modes.u], axis=-1)
        return vectors.mT @ vectors

    arrays = {
        "layer_norm": lambda: {"layer_norm": stacked_norms(path)},
        "bias_norm": lambda: {
            "bias_norm": np.stack([np.linalg.norm(b, axis=-1) for b in biases], axis=-1)
            * run.network.bias
        },
        "linear_map": lambda: {"linear_map": total},
        "mode_strength": lambda: {
            "mode_strength": np.einsum("ok,...oi,ik->...k", modes.u, total, modes.v)
        },
        "gram": lambda: {"gram": gram()},
        "outputs": lambda: {"outputs": answer[:, :, seen]},
        "accuracy": lambda: {"accuracy": np.mean(answer.argmax(-1) == data.y.argmax(-1), axis=-1)},
        "imbalance": lambda: {
            "imbalance_trace": np.stack([np.trace(m, axis1=-2, axis2=-1) for m in c], axis=-1),
            "imbalance_norm": stacked_norms(c),
            "imbalance_drift": stacked_norms(drift),
            "neuron_imbalance_drift": np.stack(
                [np.linalg.norm(each, axis=-1) for each in diagonals], axis=-1
            ),
            "offdiagonal_imbalance_drift": stacked_norms(off),
        },
        "rate_gap": lambda: {
            "rate_gap": gaps,
            "relative_rate_gap": gaps,
            "relative_norm_rate_gap": gaps,
        },
        "weights": lambda: (
            {f"weight_{n}": w[:, :, seen] for n, w in enumerate(path, start=1)}
            | {f"bias_{n}": b[:, :, seen] * run.network.bias for n, b in enumerate(biases, start=1)}
        ),
    }
    found = {"diverged_at": np.full(runs[:2], -1)}
    found["loss"] = np.mean(np.sum((data.y - answer) ** 2, axis=-1), axis=-1) / 2
    for name in run.record.observables:
        found |= arrays[name]()
    coords = axes(run, len(data.x))
    return build("trajectory", found, coords, provenance(cell_id, run, "train", ()))


@pytest.fixture(scope="session")
def results_root(tmp_path_factory) -> Path:
    """A results folder with all files of all small cells."""
    root = tmp_path_factory.mktemp("results")
    for cell_id, cell in small_cells().items():
        recorded = trajectory(cell_id, cell.only(Run))
        solved = theory_dataset(cell_id, cell.only(SolvedRun)) if cell.solutions else None
        measured = metrics_dataset(cell_id, cell, recorded, solved)
        for kind, dataset in (("trajectory", recorded), ("theory", solved), ("metrics", measured)):
            if dataset is not None:
                write(dataset, root / cell_id / f"{kind}.nc")
    return root


@pytest.fixture(scope="session")
def cell_ids() -> list[str]:
    """All small cells, in the order of the plan."""
    return list(small_cells())
