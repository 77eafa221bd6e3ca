"""Small result files for all figures.

The configured experiments are shrunk, and nothing is trained. Trajectories are made up instead:

- linear layers, and averaged pathways with given gates, follow gradient flow;
- the weights of nonlinear layers move on a straight line to a network that solves the task, or to
  random features if the readout is their mean;
- other pathways side by side move on a straight line to the best answers, also in metrics that
  train networks;
- records of graphs and of routing networks are curves that fall or rise, without a network.

Theory and metrics are computed by the library.
"""

import json
import shutil
from collections.abc import Callable
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
from neuralrace.datasets.contextual import Contextual
from neuralrace.datasets.random_streams import generator
from neuralrace.datasets.transformed_images import TransformedImages
from neuralrace.figures import matching_cells
from neuralrace.metrics.dataset import metrics_dataset
from neuralrace.networks.gated import Gated
from neuralrace.networks.graph import Graph
from neuralrace.networks.initial_weights import initial_weights
from neuralrace.networks.layered import Layered
from neuralrace.networks.routing import Routing
from neuralrace.results.axes import axes, provenance_attributes, record_steps
from neuralrace.results.cells import IDENTIFIER, CellResults, Results, open_results
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
"""Largest number of averaged units or pathways, and number of samples."""
ACTIVATIONS = {
    "erf": lambda h: erf(h / np.sqrt(2)),
    "linear": lambda h: h,
    "relu": lambda h: np.maximum(h, 0),
    "sigmoid": expit,
    "tanh": np.tanh,
}


def contextual_nodes(dataset: dict) -> dict[str, int]:
    """Sizes of the nodes that are inputs or outputs of a contextual task."""
    data = Contextual.model_validate_json(json.dumps(dataset)).load()
    objects, inputs = dataset["objects"], data.x.shape[1]
    return {"x": inputs, "object": objects, "context": inputs - objects, "y": data.y.shape[1]}


def shrink(experiment: dict) -> None:
    """Reduces an experiment to two seeds and two values a sweep, and to few steps or units."""
    dataset, network, record = (experiment[key] for key in ("dataset", "network", "record"))
    if dataset["name"] == "contextual":
        dataset["objects"] = min(dataset.get("objects", 8), WIDTH // 2)
        for net in (network, *experiment.get("candidates", {}).values()):
            if net["name"] == "graph":
                net["nodes"] = dict.fromkeys(net["nodes"], WIDTH) | contextual_nodes(dataset)
                net["nodes"] = {node: net["nodes"][node] for edge in net["edges"] for node in edge}
        if network.get("gates", {}).get("name") == "listed":  # one pathway for each object
            rows = np.tile(np.eye(dataset["objects"]), dataset["contexts"])
            network["gates"]["rows"] = rows.tolist()
    if dataset["name"] in ("nonlinear_gaussian", "mnist"):
        dataset["samples"] = SAMPLES
    if dataset["name"] == "transformed_images":
        dataset["images"]["samples"] = SAMPLES
    sweep = {key: values[:2] for key, values in experiment.get("sweep", {}).items()}
    for keys, values in list(sweep.items()):
        if network["name"] == "layered" and keys.startswith("training.learning_rate, "):
            # The number of steps is swept with the learning rate; here the first number is used.
            del sweep[keys]
            sweep["training.learning_rate"] = [rate for rate, *_ in values]
            experiment["training"]["steps"] = values[0][1]
        elif network["name"] == "layered" and keys.endswith(", training.steps"):
            # The number of steps is swept with the depth; here it is that of the experiment.
            del sweep[keys]
            sweep[keys.removesuffix(", training.steps")] = [value for value, _ in values]
    experiment |= {"seeds": 2, "sweep": sweep}
    averaged = network.get("readout") == "mean"
    if averaged:
        for net in (network, *experiment.get("candidates", {}).values()):
            if "hidden" in net:
                net["hidden"] = [min(units, AVERAGED) for units in net["hidden"]]
        swept = [{"gates": gates} for gates in sweep.get("network.gates", ())]
        for net in (*swept, *experiment.get("candidates", {}).values()):
            if "pathways" in net["gates"]:
                net["gates"]["pathways"] = min(net["gates"]["pathways"], AVERAGED)
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
        if runs:  # Otherwise steps are swept together with the recording interval.
            record["every"] = min(ensemble["steps"] for ensemble in runs) // RECORDS
        if "hidden" in network and not averaged:
            network["hidden"] = [WIDTH] * len(network["hidden"])
            network.pop("widths", None)


def small_cells() -> dict[str, Cell]:
    """The cells of all configured experiments, shrunk."""
    experiments = {}
    for path in sorted(CONFIG.glob("*/experiments.yaml")):
        experiments |= yaml.safe_load(path.read_text())["experiments"]
    for experiment in (spec for paper in experiments.values() for spec in paper.values()):
        shrink(experiment)
    return read_plan({"experiments": experiments}, {}).cells


def stacked_norms(matrices: list[np.ndarray]) -> np.ndarray:
    return np.stack([np.linalg.norm(m, axis=(-2, -1)) for m in matrices], axis=-1)


def singular_values(path: list[np.ndarray]) -> np.ndarray:
    """Singular values of every layer, padded with NaN."""
    values = [np.linalg.svd(weight, compute_uv=False) for weight in path]
    most = max(layer.shape[-1] for layer in values)
    filled = [
        np.pad(layer, [(0, 0)] * 3 + [(0, most - layer.shape[-1])], constant_values=np.nan)
        for layer in values
    ]
    return np.stack(filled, axis=-2)


def nonlinear_path(
    cell_id: str, start: list[np.ndarray], course: np.ndarray, data: Data, readout: str
) -> list[np.ndarray]:
    """Weights that move on a straight line to random features, with the best or the mean readout.

    Cells whose readout is the mean have different features; all others have the same features.
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
    ensemble: Ensemble, network: Gated | Graph, scales: int, seeds: int
) -> dict[str, np.ndarray]:
    """Records of pathways that move on a straight line to the best answers, at random speeds."""
    data = ensemble.dataset.load()
    step, snapshot = record_steps(ensemble)
    wiring = network.wiring(data)
    inputs = wiring.gated_inputs
    ends = np.linalg.pinv(inputs) @ data.y
    graph = wiring.architecture
    ends_of = np.cumsum([graph.nodes[pathway.source] for pathway in graph.pathways])[:-1]
    s = np.zeros((len(graph.pathways), min(data.x.shape[1], data.y.shape[1])))
    similarity = np.zeros((len(inputs), len(inputs)))
    parts = zip(np.split(inputs, ends_of, axis=1), np.split(ends, ends_of), s, strict=True)
    for shown, end, values in parts:
        _, strengths, v = np.linalg.svd(end.T, full_matrices=False)
        values[: len(strengths)] = strengths
        hidden = shown @ v.T * np.sqrt(strengths)
        similarity += hidden @ hidden.T
    speed = np.random.default_rng(0).uniform(0.8, 1.2, (scales, seeds, 1))
    course = np.linspace(0.01, 1, len(step)) ** speed
    answers = course[..., None, None] * (inputs @ ends)
    recorded = snapshot // ensemble.record.every
    return {
        "loss": squared_loss(ensemble, answers, data),
        "output_curve": answers,
        "outputs": answers[:, :, recorded],
        "pathway_values": course[..., None, None] * s,
        "sample_similarity": course[:, :, recorded, None, None] * similarity,
    }


def averaged_path(ensemble: Ensemble, network: Gated) -> dict[str, np.ndarray]:
    """Records of averaged pathways with given gates under gradient flow."""
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
    """Replaces the training of a gated network that imitates another one."""
    runs = len(ensemble.init_scales), ensemble.seeds
    samples = len(ensemble.dataset.load().x)
    return Trajectory(parallel_path(ensemble, ensemble.network, *runs), np.full(runs, -1), samples)


def trained_again(ensemble: Ensemble) -> Trajectory:
    """Replaces the training of a part of the units of a network: losses fall on a straight line."""
    runs = len(ensemble.init_scales), ensemble.seeds
    falling = np.linspace(0.5, 0.1, ensemble.training.steps // ensemble.record.every + 1)
    return Trajectory({"loss": np.tile(falling, (*runs, 1))}, np.full(runs, -1), samples=4)


GATED = {
    "imbalance": [name for name in TRAJECTORY if "imbalance" in name],
    "pair_error": ["trained_error", "untrained_error"],
    "pair_outputs": ["pair_outputs", "trained_pair"],
    "pathway_power": ["trained_power", "untrained_power"],
}
"""Variables of observables whose variable has another name."""
IMAGES = {
    "pair_accuracy": ["trained_accuracy", "untrained_accuracy"],
    "pair_error": [
        f"{shown}{pairs}_error" for shown in ("", "held_out_") for pairs in ("trained", "untrained")
    ],
}
"""Variables of observables that differ for routing networks on images."""


def gated_trajectory(cell_id: str, ensemble: Ensemble):
    """Content of a trajectory file: pathways that learn; losses that fall, other records rise."""
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
    arrays, variables, learned = {"diverged_at": np.full(runs, -1)}, GATED, {}
    if isinstance(network, Gated) or "pathway_values" in ensemble.record.observables:
        averaged = network.averages_units
        learned = (
            averaged_path(ensemble, network)
            if averaged
            else parallel_path(ensemble, network, *runs)
        )
        variables = GATED | {"similarity": ["sample_similarity"]}
    elif isinstance(ensemble.dataset, TransformedImages):
        variables = GATED | IMAGES
    names = [name for key in ensemble.record.observables for name in variables.get(key, [key])]
    for name in ("loss", *names):
        if name in learned:
            arrays[name] = learned[name]
            continue
        clock, *dims = TRAJECTORY[name].dims
        course = np.linspace(0.1, 1, sizes[clock]).reshape(-1, *[1] * len(dims))
        course = 1.01 - course if name == "loss" or name.endswith("error") else course
        shape = (*runs, 1, *(sizes[dim] for dim in dims))
        arrays[name] = course * rng.uniform(0.8, 1.2, shape)
    if "trained_pair" in arrays:
        masks = np.stack([network.mask(count, seed) for seed in range(ensemble.seeds)])
        arrays["trained_pair"] = np.ones_like(arrays["trained_pair"]) * masks[:, None]
    attributes = provenance_attributes(cell_id, ensemble, "train", ())
    return build("trajectory", arrays, axes(ensemble, samples), attributes)


def trajectory(cell_id: str, ensemble: Ensemble):
    """Content of a trajectory file, from weights on gradient flow or on a straight line."""
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
    if ensemble.network.activation == "linear" and ensemble.training.loss.squared:
        time = step * ensemble.training.flow_step(len(data.x))
        path = linear_flow(time, start, data.sigma_yx, data.sigma_xx, rtol=1e-8, atol=1e-10)
    else:
        path = nonlinear_path(cell_id, start, step / step[-1], data, readout)
    total = reduce(lambda below, above: above @ below, path)
    hidden = activities(path, data.x, ensemble.network.activation)
    recorded = snapshot // ensemble.record.every
    answer, first = hidden[-1].mT, hidden[0][:, :, recorded]
    runs = total.shape[:3]
    c = imbalances(path)
    drift = [imbalance - imbalance[:, :, :1] for imbalance in c]
    diagonals = [np.diagonal(change, axis1=-2, axis2=-1) for change in drift]
    off = [
        change - diagonal[..., None] * np.eye(change.shape[-1])
        for change, diagonal in zip(drift, diagonals, strict=True)
    ]
    gaps = rng.uniform(0.2, 0.4, (*runs, len(c)))
    size = 0.1 * ensemble.network.bias * np.sqrt(step)[:, None]
    biases = [size * np.ones((*runs[:2], 1, n)) for n in widths[1:]]
    modes = data.modes

    def gram() -> np.ndarray:
        vectors = np.concatenate([path[0] @ modes.v, path[1].mT @ modes.u], axis=-1)
        return vectors.mT @ vectors

    observables = {
        "layer_norm": lambda: stacked_norms(path),
        "bias_norm": lambda: np.stack([np.linalg.norm(b, axis=-1) for b in biases], axis=-1),
        "linear_map": lambda: total,
        "singular_values": lambda: singular_values(path),
        "mode_strength": lambda: np.einsum("ok,...oi,ik->...k", modes.u, total, modes.v),
        "gram": gram,
        "output_curve": lambda: answer,
        "outputs": lambda: answer[:, :, recorded],
        "output_error": lambda: np.mean((answer - data.y) ** 2, axis=-2) / data.y.var(axis=0),
        "accuracy": lambda: np.mean(answer.argmax(-1) == data.y.argmax(-1), axis=-1),
        "imbalance": lambda: {
            "imbalance_trace": np.stack([np.trace(m, axis1=-2, axis2=-1) for m in c], axis=-1),
            "imbalance_norm": stacked_norms(c),
            "imbalance_drift": stacked_norms(drift),
            "neuron_imbalance_drift": np.stack(
                [np.linalg.norm(diagonal, axis=-1) for diagonal in diagonals], axis=-1
            ),
            "offdiagonal_imbalance_drift": stacked_norms(off),
        },
        "rate_gap": lambda: dict.fromkeys(
            ("rate_gap", "relative_rate_gap", "relative_norm_rate_gap"), gaps
        ),
        "similarity": lambda: {"sample_similarity": first.mT @ first},
        "weights": lambda: (
            {f"weight_{n}": w[:, :, recorded] for n, w in enumerate(path, start=1)}
            | {f"bias_{n}": b[:, :, recorded] for n, b in enumerate(biases, start=1)}
        ),
    }
    arrays = {"diverged_at": np.full(runs[:2], -1), "loss": squared_loss(ensemble, answer, data)}
    for name in ensemble.record.observables:
        records = observables[name]()
        arrays |= records if isinstance(records, dict) else {name: records}
    attributes = provenance_attributes(cell_id, ensemble, "train", ())
    return build("trajectory", arrays, axes(ensemble, len(data.x)), attributes)


@pytest.fixture(scope="session")
def cells() -> dict[str, Cell]:
    """All small cells, in the order of the configuration."""
    return small_cells()


@pytest.fixture(scope="session")
def cell_ids(cells: dict[str, Cell]) -> list[str]:
    """Identifiers of all small cells."""
    return list(cells)


@pytest.fixture(scope="session")
def results_root(cells: dict[str, Cell], tmp_path_factory) -> Path:
    """A results folder with all files of all small cells."""
    root = tmp_path_factory.mktemp("results")
    for cell_id, cell in cells.items():
        recorded = trajectory(cell_id, cell.only(Ensemble))
        with pytest.MonkeyPatch.context() as patch:
            # figures need no more digits; an order-eight method then takes a quarter of the steps
            patch.setattr("neuralrace.theory.pathway_modes.RTOL", 1e-5)
            patch.setattr("neuralrace.theory.reln.imitation.train", imitation)
            patch.setattr("neuralrace.theory.tickets.train", trained_again)
            solved = theory_dataset(cell_id, cell.only(SolvedEnsemble)) if cell.solutions else None
            results = CellResults(cell_id, root / cell_id, cell, recorded, solved)
            measured = metrics_dataset(results)
        for kind, dataset in (("trajectory", recorded), ("theory", solved), ("metrics", measured)):
            if dataset is not None:
                write_result(dataset, root / cell_id / f"{kind}.nc")
    return root


@pytest.fixture(scope="session")
def results_of(results_root: Path, cell_ids: list[str]) -> Callable[[str], Results]:
    """Opens the cells of a figure `paper/figure`, or of a paper `paper/`."""

    def opened(name: str) -> Results:
        if name.endswith("/"):
            return open_results(results_root, [cell for cell in cell_ids if cell.startswith(name)])
        return open_results(results_root, matching_cells(name, cell_ids))

    return opened


@pytest.fixture
def copy_of(results_root: Path, cell_ids: list[str], tmp_path: Path) -> Callable[[str], Results]:
    """Copies the cells of a figure to `tmp_path`, so that a test can change their files."""

    def copied(name: str) -> Results:
        cells = matching_cells(name, cell_ids)
        for cell in cells:
            shutil.copytree(results_root / cell, tmp_path / cell)
        return open_results(tmp_path, cells)

    return copied


@pytest.fixture(scope="session")
def copy_cell():
    """Copies the files of a cell under the name of another cell."""

    def copied(folder: Path, root: Path, cell: str) -> None:
        for path in folder.glob("*.nc"):
            identifiers = dict(zip(IDENTIFIER, cell.split("/"), strict=True))
            write_result(read_result(path).assign_attrs(identifiers), root / cell / path.name)

    return copied
