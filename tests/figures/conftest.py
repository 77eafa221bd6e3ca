"""A small set of result files for all figures.

The configured experiments, shrunk and not trained. Gradient flow stands in for gradient descent of
linear layers and of averaged pathways with given gates. Weights that go straight to a network which
answers the task, or to random features where the readout is their mean, stand in for that of
nonlinear layers and of other pathways side by side, in metrics that train as well. What graphs and
routing networks record, and norms and balances of pathways, are curves that fall or rise, with no
network behind them. Theory and metrics are the library's own.
"""

from functools import reduce
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy.special import erf, expit

from builders import REPOSITORY
from neuralrace.config.cell import Cell, Ensemble, SolvedEnsemble
from neuralrace.config.load import read_plan
from neuralrace.datasets import Data
from neuralrace.datasets.random_streams import generator
from neuralrace.datasets.transformed_images import TransformedImages
from neuralrace.metrics.measure import metrics_dataset
from neuralrace.networks.gated import Gated
from neuralrace.networks.initial_weights import initial_weights
from neuralrace.networks.layered import Layered
from neuralrace.networks.routing import Routing
from neuralrace.results.axes import axes, provenance_attributes, record_steps
from neuralrace.results.cells import IDENTIFIER, CellResults
from neuralrace.results.files import read_result, write_result
from neuralrace.results.schema import TRAJECTORY, build
from neuralrace.results.theory import theory_dataset
from neuralrace.theory.balance import imbalances
from neuralrace.theory.frozen_gates import FrozenGates
from neuralrace.theory.gradient_flow import linear_flow
from neuralrace.training.trainer import Trajectory

CONFIG = REPOSITORY / "config"
STEPS, RECORDS, WIDTH = 12, 10, 8
AVERAGED, SAMPLES = 4, 60
"""Units or pathways that are averaged, and samples that are drawn."""
ACTIVATIONS = {
    "erf": lambda h: erf(h / np.sqrt(2)),
    "linear": lambda h: h,
    "relu": lambda h: np.maximum(h, 0),
    "sigmoid": expit,
}


def shrink(experiment: dict) -> None:
    """Two seeds and two values a sweep; a dozen long steps, or narrow gated networks."""
    dataset, network, record = (experiment[key] for key in ("dataset", "network", "record"))
    if dataset["name"] == "contextual":
        dataset["objects"] = min(dataset.get("objects", 8), WIDTH // 2)
        if network.get("gates", {}).get("name") == "listed":  # a pathway for every object
            rows = np.tile(np.eye(dataset["objects"]), dataset["contexts"])
            network["gates"]["rows"] = rows.tolist()
    if dataset["name"] == "nonlinear_gaussian":
        dataset["samples"] = SAMPLES
    if dataset["name"] == "transformed_images":
        dataset["images"]["samples"] = SAMPLES
    sweep = {key: values[:2] for key, values in experiment.get("sweep", {}).items()}
    for keys, values in list(sweep.items()):
        if network["name"] == "layered" and keys.startswith("training.learning_rate, "):
            # steps go with the learning rate; the first ones do for all
            del sweep[keys]
            sweep["training.learning_rate"] = [rate for rate, *_ in values]
            experiment["training"]["steps"] = values[0][1]
    experiment |= {"seeds": 2, "sweep": sweep}
    averaged = network.get("readout") == "mean"
    if averaged:
        for each in (network, *experiment.get("candidates", {}).values()):
            if "hidden" in each:
                each["hidden"] = [min(units, AVERAGED) for units in each["hidden"]]
        swept = [{"gates": gates} for gates in sweep.get("network.gates", ())]
        for each in (*swept, *experiment.get("candidates", {}).values()):
            if "pathways" in each["gates"]:
                each["gates"]["pathways"] = min(each["gates"]["pathways"], AVERAGED)
    elif network["name"] == "layered" and "hidden" in network:
        network["hidden"] = [min(units, 3 * WIDTH) for units in network["hidden"]]
    trainings = [experiment.get("training", {}), *sweep.get("training", ())]
    runs = [ensemble for ensemble in trainings if "steps" in ensemble]
    if network["name"] == "layered":
        record |= {"every": 1, "snapshots": 4}
        longer = runs[0]["steps"] / STEPS
        for ensemble in runs:
            ensemble |= {"steps": STEPS, "learning_rate": ensemble["learning_rate"] * longer}
        rates = sweep.get("training.learning_rate", [])
        rates[:] = [rate * longer for rate in rates]
    else:
        record["snapshots"] = RECORDS // 2
        if runs:  # else steps are swept together with how often they are recorded
            record["every"] = min(ensemble["steps"] for ensemble in runs) // RECORDS
        if "hidden" in network and not averaged:
            network["hidden"] = [WIDTH] * len(network["hidden"])


def small_cells() -> dict[str, Cell]:
    """The cells of all configured experiments, shrunk."""
    experiments = {}
    for path in sorted(CONFIG.glob("*/experiments.yaml")):
        experiments |= yaml.safe_load(path.read_text())["experiments"]
    for experiment in (each for paper in experiments.values() for each in paper.values()):
        shrink(experiment)
    return read_plan({"experiments": experiments}, {}).cells


def stacked_norms(matrices: list[np.ndarray]) -> np.ndarray:
    return np.stack([np.linalg.norm(m, axis=(-2, -1)) for m in matrices], axis=-1)


def singular_values(path: list[np.ndarray]) -> np.ndarray:
    """Of every layer, filled up with NaN to those of the layer with most."""
    values = [np.linalg.svd(weight, compute_uv=False) for weight in path]
    most = max(each.shape[-1] for each in values)
    filled = [
        np.pad(each, [(0, 0)] * 3 + [(0, most - each.shape[-1])], constant_values=np.nan)
        for each in values
    ]
    return np.stack(filled, axis=-2)


def nonlinear_path(
    cell_id: str, start: list[np.ndarray], course: np.ndarray, data: Data, readout: str
) -> list[np.ndarray]:
    """Weights on straight ways from their start to random features with the best or own readout.

    Cells whose readout is the mean have features of their own, all others the same.
    """
    rng = generator(0, cell_id) if readout == "mean" else np.random.default_rng(0)
    h, ends = data.x.T, []
    for weight in start[:-1]:
        ends.append(rng.normal(size=weight.shape) / np.sqrt(weight.shape[-1]))
        h = np.maximum(ends[-1] @ h, 0)
    ends.append(start[-1] if readout == "mean" else data.y.T @ np.linalg.pinv(h))
    return [
        w[:, :, None] + course[:, None, None] * (end - w)[:, :, None]
        for w, end in zip(start, ends, strict=True)
    ]


def activities(path: list[np.ndarray], x: np.ndarray, activation: str) -> list[np.ndarray]:
    """Activities (..., unit, sample) of all layers of units; the last ones are the outputs."""
    layers = [x.T]
    for number, weight in enumerate(path, start=1):
        h = weight @ layers[-1]
        layers.append(ACTIVATIONS[activation](h) if number < len(path) else h)
    return layers[1:]


def squared_loss(ensemble: Ensemble, answer: np.ndarray, data: Data) -> np.ndarray:
    """Loss of outputs (..., sample, output)."""
    power = np.sum((data.y - answer) ** 2, axis=-1)
    return np.mean(power, axis=-1) / 2 * ensemble.training.loss.factor(len(data.x))


def parallel_path(
    ensemble: Ensemble, network: Gated, scales: int, seeds: int
) -> dict[str, np.ndarray]:
    """What pathways record on straight ways to the best answers, a little apart in their speeds."""
    data = ensemble.dataset.load()
    step, snapshot = record_steps(ensemble)
    wiring = network.wiring(data)
    inputs = wiring.gated_inputs
    ends = np.linalg.pinv(inputs) @ data.y
    pathways = len(wiring.pathway_gates)
    _, s, v = np.linalg.svd(ends.reshape(pathways, -1, data.y.shape[1]).mT, full_matrices=False)
    shown = inputs.reshape(len(inputs), pathways, -1).swapaxes(0, 1)
    hidden = shown @ v.mT * np.sqrt(s)[:, None]
    speed = np.random.default_rng(0).uniform(0.8, 1.2, (scales, seeds, 1))
    course = np.linspace(0.01, 1, len(step)) ** speed
    answers = course[..., None, None] * (inputs @ ends)
    seen = snapshot // ensemble.record.every
    return {
        "loss": squared_loss(ensemble, answers, data),
        "outputs": answers[:, :, seen],
        "pathway_values": course[..., None, None] * s,
        "sample_similarity": course[:, :, seen, None, None] * (hidden @ hidden.mT).sum(0),
    }


def averaged_path(ensemble: Ensemble, network: Gated) -> dict[str, np.ndarray]:
    """What averaged pathways with given gates record under gradient flow."""
    data = ensemble.dataset.load()
    step, snapshot = record_steps(ensemble)
    gates = network.wiring(data).pathway_gates
    inputs = data.x.shape[1]
    start = initial_weights(
        ensemble.init,
        (inputs, len(gates), 1),
        data.modes,
        ensemble.init_scales,
        range(ensemble.seeds),
    )
    frozen = FrozenGates.from_samples(data.x, data.y[:, 0], gates)
    path = frozen.weights(step * ensemble.training.flow_step(len(data.x)), start[0])
    maps = path[:, :, snapshot // ensemble.record.every, :, None] / len(gates)
    loss = frozen.loss(path) * ensemble.training.loss.factor(len(data.x))
    return {"loss": loss, "pathway_maps": maps}


def imitation(ensemble: Ensemble) -> Trajectory:
    """Stands in for the training of a gated network in place of another one."""
    runs = len(ensemble.init_scales), ensemble.seeds
    samples = len(ensemble.dataset.load().x)
    return Trajectory(parallel_path(ensemble, ensemble.network, *runs), np.full(runs, -1), samples)


GATED = {
    "imbalance": [name for name in TRAJECTORY if "imbalance" in name],
    "pair_error": ["trained_error", "untrained_error"],
    "pair_outputs": ["pair_outputs", "trained_pair"],
    "pathway_power": ["trained_power", "untrained_power"],
}
"""Variables of observables that are not called like their one variable."""
IMAGES = {
    "pair_accuracy": ["trained_accuracy", "untrained_accuracy"],
    "pair_error": [
        f"{shown}{pairs}_error" for shown in ("", "held_out_") for pairs in ("trained", "untrained")
    ],
}
"""Those that are others where a routing network sees images."""


def gated_trajectory(cell_id: str, ensemble: Ensemble):
    """A trajectory file's content: pathways that learn; losses that fall, and all else rising."""
    network = ensemble.network
    step, snapshot = record_steps(ensemble)
    sizes = {"time": len(step), "snapshot": len(snapshot)}
    if isinstance(network, Routing):
        domains = ensemble.dataset.domains()
        count, items, inputs = domains.inputs.shape
        sizes |= {"layer": len(network.hidden) + 1, "pair": len(network.hidden), "mode": inputs}
        sizes |= {"input_domain": count, "output_domain": count, "item": items}
        sizes |= {"domain_item": count * items, "other_domain_item": count * items}
        sizes |= {"singular_mode": WIDTH, "family": len(network.families(count))}
        sizes |= {"output": domains.targets.shape[2]}
        samples = int(network.mask(count, 0).sum()) * items
    else:
        data = ensemble.dataset.load()
        graph, samples = network.wiring(data).architecture, len(data.x)
        sizes |= {"layer": len(graph.edges), "pair": len(graph.hidden), "singular_mode": 2}
        sizes |= {"sample": samples}
    rng = generator(0, cell_id)
    runs = len(ensemble.init_scales), ensemble.seeds
    found, variables, learned = {"diverged_at": np.full(runs, -1)}, GATED, {}
    if isinstance(network, Gated):
        averaged = network.readout == "mean"
        learned = (
            averaged_path(ensemble, network)
            if averaged
            else parallel_path(ensemble, network, *runs)
        )
        variables = GATED | {"similarity": ["sample_similarity"]}
    elif isinstance(ensemble.dataset, TransformedImages):
        variables = GATED | IMAGES
    names = [name for each in ensemble.record.observables for name in variables.get(each, [each])]
    for name in ("loss", *names):
        if name in learned:
            found[name] = learned[name]
            continue
        clock, *dims = TRAJECTORY[name].dims
        course = np.linspace(0.1, 1, sizes[clock]).reshape(-1, *[1] * len(dims))
        course = 1.01 - course if name == "loss" or name.endswith("error") else course
        shape = (*runs, 1, *(sizes[dim] for dim in dims))
        found[name] = course * rng.uniform(0.8, 1.2, shape)
    if "trained_pair" in found:
        masks = np.stack([network.mask(count, seed) for seed in range(ensemble.seeds)])
        found["trained_pair"] = np.ones_like(found["trained_pair"]) * masks[:, None]
    return build(
        "trajectory",
        found,
        axes(ensemble, samples),
        provenance_attributes(cell_id, ensemble, "train", ()),
    )


def trajectory(cell_id: str, ensemble: Ensemble):
    """A trajectory file's content, from weights that follow gradient flow or go straight."""
    if not isinstance(ensemble.network, Layered):
        return gated_trajectory(cell_id, ensemble)
    data = ensemble.dataset.load()
    step, snapshot = record_steps(ensemble)
    rng = np.random.default_rng(0)
    widths = (data.x.shape[1], *ensemble.network.hidden, data.y.shape[1])
    readout = ensemble.network.readout
    start = initial_weights(
        ensemble.init,
        widths,
        data.modes,
        ensemble.init_scales,
        range(ensemble.seeds),
        readout == "mean",
    )
    if ensemble.network.activation == "linear":
        time = step * ensemble.training.flow_step(len(data.x))
        path = linear_flow(time, start, data.sigma_yx, data.sigma_xx, rtol=1e-8, atol=1e-10)
    else:
        path = nonlinear_path(cell_id, start, step / step[-1], data, readout)
    total = reduce(lambda below, above: above @ below, path)
    hidden = activities(path, data.x, ensemble.network.activation)
    answer, first = hidden[-1].mT, hidden[0]
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
    seen = snapshot // ensemble.record.every

    def gram() -> np.ndarray:
        vectors = np.concatenate([path[0] @ modes.v, path[1].mT @ modes.u], axis=-1)
        return vectors.mT @ vectors

    arrays = {
        "layer_norm": lambda: {"layer_norm": stacked_norms(path)},
        "bias_norm": lambda: {
            "bias_norm": np.stack([np.linalg.norm(b, axis=-1) for b in biases], axis=-1)
            * ensemble.network.bias
        },
        "linear_map": lambda: {"linear_map": total},
        "singular_values": lambda: {"singular_values": singular_values(path)},
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
        "similarity": lambda: {"sample_similarity": first[:, :, seen].mT @ first[:, :, seen]},
        "weights": lambda: (
            {f"weight_{n}": w[:, :, seen] for n, w in enumerate(path, start=1)}
            | {
                f"bias_{n}": b[:, :, seen] * ensemble.network.bias
                for n, b in enumerate(biases, start=1)
            }
        ),
    }
    found = {"diverged_at": np.full(runs[:2], -1)}
    found["loss"] = squared_loss(ensemble, answer, data)
    for name in ensemble.record.observables:
        found |= arrays[name]()
    coords = axes(ensemble, len(data.x))
    return build("trajectory", found, coords, provenance_attributes(cell_id, ensemble, "train", ()))


@pytest.fixture(scope="session")
def results_root(tmp_path_factory) -> Path:
    """A results folder with all files of all small cells."""
    root = tmp_path_factory.mktemp("results")
    for cell_id, cell in small_cells().items():
        recorded = trajectory(cell_id, cell.only(Ensemble))
        solved = theory_dataset(cell_id, cell.only(SolvedEnsemble)) if cell.solutions else None
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("neuralrace.theory.reln.imitation.train", imitation)
            results = CellResults(cell_id, root / cell_id, cell, recorded, solved)
            measured = metrics_dataset(results)
        for kind, dataset in (("trajectory", recorded), ("theory", solved), ("metrics", measured)):
            if dataset is not None:
                write_result(dataset, root / cell_id / f"{kind}.nc")
    return root


@pytest.fixture(scope="session")
def cells() -> dict[str, Cell]:
    """All small cells, in the order of the plan."""
    return small_cells()


@pytest.fixture(scope="session")
def cell_ids(cells: dict[str, Cell]) -> list[str]:
    """Their identifiers."""
    return list(cells)


@pytest.fixture(scope="session")
def retold():
    """Copies the files of a cell as those of another one."""

    def copied(folder: Path, root: Path, cell: str) -> None:
        for path in folder.glob("*.nc"):
            position = dict(zip(IDENTIFIER, cell.split("/"), strict=True))
            write_result(read_result(path).assign_attrs(position), root / cell / path.name)

    return copied
