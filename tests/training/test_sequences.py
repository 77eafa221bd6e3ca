"""Sequences of tasks, against gradient descent by hand that changes the samples at the switches."""

from itertools import pairwise

import numpy as np
import pytest
from pydantic import ValidationError

from builders import build_cell
from neuralrace.datasets import Data
from neuralrace.errors import UserError
from neuralrace.networks.initial_weights import initial_edges, initial_weights
from neuralrace.training import trainer
from neuralrace.training.trainer import train

# Two orders of summation in double precision, over a dozen steps.
ROUNDING = {"rtol": 1e-11, "atol": 1e-12}
STEPS = 12
RUNS = [(0, 0), (0, 1), (1, 0), (1, 1)]
RNG = np.random.default_rng(0)
SAMPLES = 6


def table(seed):
    rng = np.random.default_rng(seed)
    return {
        "name": "table",
        "x": rng.normal(size=(SAMPLES, 3)).tolist(),
        "y": rng.normal(size=(SAMPLES, 2)).tolist(),
    }


FIRST, SECOND = table(0), table(1)
NEGATED = {"name": "changed_targets", "of": FIRST}


def sequence(tasks=(FIRST, SECOND, FIRST), switches=(5, 8)):
    return {"name": "sequence", "tasks": list(tasks), "switches": list(switches)}


def make(make_run, observables=("task_loss", "weights"), batch="full", **changes):
    """A short training on a sequence of three tasks, with everything recorded at every step."""
    parts = {
        "dataset": sequence(),
        "training": {"learning_rate": 0.1, "steps": STEPS, "batch": {"name": batch}},
        "record": {"every": 1, "snapshots": STEPS, "observables": list(observables)},
    }
    return make_run(**parts | changes)


def task_at(ensemble, step):
    """Number of the task that a step trains on."""
    return sum(step >= start for start, _ in ensemble.dataset.phases) - 1


def half_mean(outputs, y):
    return np.sum((outputs - y) ** 2) / len(y) / 2


def descended(ensemble, member, hidden=lambda h: h, slope=lambda h: np.ones_like(h)):
    """Two layers by hand: weights before every step, and the loss of each task then."""
    tasks = [dataset.load() for _, dataset in ensemble.dataset.phases]
    first = tasks[0]
    widths = (3, *ensemble.network.hidden, 2)
    start = initial_weights(
        ensemble.init, widths, first.modes, ensemble.init_scales, ensemble.seed_numbers
    )
    w1, w2 = (w[member] for w in start)
    history, losses = [], []
    for step in range(STEPS + 1):
        history.append((w1, w2))
        losses.append([half_mean(hidden(t.x @ w1.T) @ w2.T, t.y) for t in tasks])
        task = tasks[task_at(ensemble, step)]
        before = task.x @ w1.T
        error = (hidden(before) @ w2.T - task.y) / len(task.y)
        g1 = (error @ w2 * slope(before)).T @ task.x
        g2 = error.T @ hidden(before)
        w1, w2 = w1 - 0.1 * g1, w2 - 0.1 * g2
    return history, np.array(losses)


ACTIVATIONS = {
    "linear": {},
    "relu": {"hidden": lambda h: np.maximum(h, 0), "slope": lambda h: (h > 0).astype(float)},
}


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_each_step_descends_on_its_task_as_by_hand(make_run, activation):
    network = {"name": "layered", "hidden": [4], "activation": activation}
    ensemble = make(make_run, network=network)
    recorded = train(ensemble).variables
    present = [task_at(ensemble, step) for step in range(STEPS + 1)]
    assert present == [0] * 5 + [1] * 3 + [2] * 5
    for member in RUNS:
        history, losses = descended(ensemble, member, **ACTIVATIONS[activation])
        for number, weights in enumerate(zip(*history, strict=True), start=1):
            np.testing.assert_allclose(recorded[f"weight_{number}"][member], weights, **ROUNDING)
        np.testing.assert_allclose(recorded["task_loss"][member], losses, **ROUNDING)
        np.testing.assert_allclose(
            recorded["loss"][member], losses[range(STEPS + 1), present], **ROUNDING
        )
        assert np.ptp(losses, axis=1).min() > 1e-3


def test_pathways_descend_on_each_task_as_by_hand(make_run):
    """Gates follow from the samples, and so differ between the tasks."""
    gates = {"name": "half_space", "pathways": 3, "seed": 2}
    network = {"name": "gated", "hidden": [3], "gates": gates}
    ensemble = make(make_run, ["task_loss", "outputs"], network=network)
    recorded = train(ensemble).variables
    wirings = [ensemble.network.wiring(dataset.load()) for _, dataset in ensemble.dataset.phases]
    assert not np.array_equal(wirings[0].pathway_gates, wirings[1].pathway_gates)
    graph = wirings[0].architecture
    start = initial_edges(ensemble.init, graph, dict, ensemble.init_scales, ensemble.seed_numbers)
    for member in RUNS:
        chains = [[start[edge][member] for edge in pathway.edges] for pathway in graph.pathways]
        for step in range(STEPS + 1):
            losses = []
            for number, wiring in enumerate(wirings):
                inputs = np.split(wiring.gated_inputs, len(chains), axis=1)
                outputs = sum(x @ (b @ a).T for x, (a, b) in zip(inputs, chains, strict=True))
                losses.append(half_mean(outputs, wiring.data.y))
                if number == task_at(ensemble, step):
                    present = inputs, outputs, wiring.data.y
            np.testing.assert_allclose(recorded["task_loss"][member][step], losses, **ROUNDING)
            inputs, outputs, y = present
            np.testing.assert_allclose(recorded["outputs"][member][step], outputs, **ROUNDING)
            error = (outputs - y) / len(y)
            chains = [
                [a - 0.1 * b.T @ error.T @ x, b - 0.1 * error.T @ x @ a.T]
                for x, (a, b) in zip(inputs, chains, strict=True)
            ]


def test_mini_batches_have_the_samples_of_the_present_task(make_run):
    """One layer on one-hot inputs: the columns that move are the samples of a step."""
    modes = {"name": "modes", "singular_values": [3.0, 2.0], "inputs": 7, "outputs": 2}
    tasks = [modes, {"name": "changed_targets", "of": modes, "change": "permuted_samples"}]
    training = {
        "learning_rate": 0.01,
        "steps": STEPS,
        "batch": {"name": "mini", "size": 2},
        "loss": {"normalisation": "half_mean"},
    }
    ensemble = make(
        make_run,
        dataset=sequence(tasks, [5]),
        network={"name": "layered", "hidden": []},
        training=training,
    )
    weights = train(ensemble).variables["weight_1"]
    data = [dataset.load() for _, dataset in ensemble.dataset.phases]
    for member in RUNS:
        for step, (before, after) in enumerate(pairwise(weights[member])):
            seen = np.flatnonzero((after != before).any(axis=0))
            assert len(seen) == 2
            task = data[task_at(ensemble, step)]
            x, y = task.x[seen], task.y[seen]
            expected = before - 0.01 * (x @ before.T - y).T @ x / 2
            np.testing.assert_allclose(after, expected, **ROUNDING)


def test_observables_are_those_of_the_present_task(make_run):
    """Strengths in the modes of the second task, once it has begun."""
    ensemble = make(
        make_run, ["mode_strength", "linear_map"], dataset=sequence([FIRST, SECOND], [5])
    )
    recorded = train(ensemble).variables
    modes = [dataset.load().modes for _, dataset in ensemble.dataset.phases]
    for step in range(STEPS + 1):
        task = modes[task_at(ensemble, step)]
        expected = np.einsum(
            "ok,...oi,ik->...k", task.u, recorded["linear_map"][:, :, step], task.v
        )
        np.testing.assert_allclose(recorded["mode_strength"][:, :, step], expected, **ROUNDING)


def test_strengths_continue_through_a_reversal(make_run):
    """Modes of negated targets are those of the targets, with negative singular values."""
    ensemble = make(
        make_run, ["mode_strength", "linear_map"], dataset=sequence([FIRST, NEGATED], [5])
    )
    recorded = train(ensemble).variables
    modes = Data(x=np.array(FIRST["x"]), y=np.array(FIRST["y"])).modes
    expected = np.einsum("ok,...oi,ik->...k", modes.u, recorded["linear_map"], modes.v)
    np.testing.assert_allclose(recorded["mode_strength"], expected, **ROUNDING)


def test_sequences_that_differ_in_tasks_and_switches_share_a_program(make_run, monkeypatch):
    monkeypatch.setattr(trainer, "_PROGRAMS", {})
    train(make(make_run, ["task_loss"]))
    programs = len(trainer._PROGRAMS)
    train(make(make_run, ["task_loss"], dataset=sequence((SECOND, FIRST, NEGATED), (2, 3))))
    assert len(trainer._PROGRAMS) == programs


# Refusals --------------------------------------------------------------------------------------

GRAPH = {"name": "graph", "nodes": {"x": 3, "h": 3, "y": 2}, "edges": [["x", "h"], ["h", "y"]]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dataset": sequence(switches=[5])}, "has 1 entries for 3 tasks"),
        ({"dataset": sequence(switches=[8, 5])}, "does not increase"),
        ({"dataset": sequence(switches=[5, STEPS])}, "before the last task begins"),
        ({"dataset": sequence([FIRST, {"name": "routing", "count": 2}], [5])}, "between domains"),
        ({"dataset": sequence([FIRST, sequence()], [5])}, "sequence"),
        ({"network": GRAPH}, "is not trained on a sequence of tasks.*use layered or"),
        ({"dataset": FIRST}, "task_loss.*use sequence"),
    ],
)
def test_what_is_no_sequence_is_refused(make_run, changes, message):
    with pytest.raises(ValidationError, match=message):
        make(make_run, ["task_loss"], **changes)


def test_fresh_samples_of_a_sequence_are_refused(make_run):
    training = {"learning_rate": 0.1, "steps": STEPS, "batch": {"name": "fresh", "size": 2}}
    with pytest.raises(UserError, match="is a fixed sample"):
        train(make(make_run, [], training=training))


def test_tasks_of_unequal_sizes_are_refused_in_planning_and_in_training():
    wide = {"name": "modes", "singular_values": [1.0], "inputs": 4, "outputs": 2}
    cell = build_cell(dataset=sequence([FIRST, wide], [5]))
    assert "tasks differ in samples, inputs or outputs" in str(cell.unfit())
    with pytest.raises(UserError, match="task 2 differs from the first one in size"):
        cell.task()


@pytest.mark.parametrize("key", ["solutions", "metrics"])
def test_theory_and_metrics_of_one_task_are_refused(key):
    name = {"solutions": "flow", "metrics": "half_times"}[key]
    with pytest.raises(ValidationError, match=f"{name}.*use a single task"):
        build_cell(dataset=sequence([FIRST, SECOND], [5]), **{key: [name]})
