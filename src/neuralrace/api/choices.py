"""Choices for absent arguments: init scale, learning rate, steps, records and observables."""

from collections.abc import Sequence
from math import ceil
from typing import Any

import numpy as np

from neuralrace.api.arguments import check_positive_whole, reason_by_argument
from neuralrace.config.cell import Cell
from neuralrace.config.requirements import unmet
from neuralrace.errors import UserError
from neuralrace.extensions.registry import METRICS, OBSERVABLES
from neuralrace.theory import pace
from neuralrace.theory.solutions.problem import Problem

CHOSEN = ("init_scales", "learning_rate", "steps")
"""Arguments that theory chooses when they are absent."""
OBSERVED = {"mode_strength": "linear", "pair_error": ""}
"""Observables that are recorded by default, with requirements in addition to their own."""
MOST_STEPS = 10**10
"""Most steps that theory chooses: these would take days."""
LEAST_SHARE = 4
"""At least one in so many of the requested records is kept."""


def default_observables(cell: Cell, metrics: Any) -> list[str]:
    """Names of the default observables of a cell, and of those that its metrics require."""
    names = [
        name
        for name, more in OBSERVED.items()
        if not unmet(cell, f"{OBSERVABLES[name].declaration.requires} {more}")
    ]
    # validation refuses other values of `metrics` later
    for metric in metrics if isinstance(metrics, list | tuple) else ():
        known = isinstance(metric, str) and metric in METRICS
        required = METRICS[metric].declaration.observables if known else ""
        for alternatives in (each.split("|") for each in required.split()):
            if not set(alternatives) & set(names):
                suitable = (
                    name
                    for name in alternatives
                    if not unmet(cell, OBSERVABLES[name].declaration.requires)
                )
                names.append(next(suitable, alternatives[0]))
    return names


def fitting_records(records: Any, snapshots: Any, steps: Any) -> int:
    """The largest number of records that divides the steps and is a multiple of the snapshots.

    Raises:
        UserError: an argument is no positive whole number, there are more snapshots than records,
            or too few records fit.
    """
    for argument, value in {"records": records, "snapshots": snapshots, "steps": steps}.items():
        if argument != "steps" or value is not None:
            check_positive_whole(argument, value)
    most = int(min(records, steps or records))
    if snapshots > most:
        problem = f"give at most one for each record, {most}"
        raise UserError(problem, key="snapshots", value=snapshots)
    most -= most % int(snapshots)
    least = ceil(most / LEAST_SHARE)
    for fitting in range(most, least - 1, -int(snapshots)):
        if steps is None or steps % fitting == 0:
            return fitting
    near = max(1, round(steps / most)) * most
    raise UserError(
        f"no number of records from {least} to {most} divides it and has {snapshots} as a divisor",
        key="steps",
        value=steps,
        remedy=f"use {near}, or give records",
    )


def check_choosable(cell: Cell, absent: Sequence[str], network: Any) -> None:
    """Raises UserError if no theory can choose the absent arguments."""
    steps = "" if [*absent] == ["init_scales"] else "full_batch gradient_flow"
    requirements = f"linear|relu trained_readout squared_error {steps} domains_in_memory"
    if reason := unmet(cell, requirements):
        them, all_ = {1: ("it", "it"), 2: ("them", "both")}.get(len(absent), ("them", "all"))
        raise UserError(
            f"theory cannot choose {them} here",
            key=", ".join(absent),
            remedy=f"give {all_}, or {reason_by_argument(reason, network)}",
        )


def small_scale(cell: Cell) -> float:
    """The init scale that theory chooses, for a cell with init scale 1."""
    problem = Problem(cell, np.arange(1))
    return float(f"{pace.small_scale(problem.data, _pathways(problem)):.2g}")


def learning_rate_and_steps(
    cell: Cell, learning_rate: float | None, steps: int | None
) -> tuple[float, int]:
    """Learning rate and steps, chosen by theory if they are None.

    Args:
        cell: specification whose `training.steps` is the number of records.
        learning_rate: step size, also of `cell` if it is not None.
        steps: gradient steps.

    Raises:
        UserError: the network is so deep that no rate or no number of steps is in range.
    """
    problem = Problem(cell, np.arange(1))
    data, weights, records = problem.data, problem.weights, cell.training.steps
    gated = not unmet(cell, "given_gates")
    levels = problem.wiring.architecture.levels if gated else range(len(weights))
    norms = [np.linalg.norm(w, 2, axis=(-2, -1)) for w in weights]
    layers = [
        np.stack([norm for norm, at in zip(norms, levels, strict=True) if at == level], axis=-1)
        for level in range(max(levels) + 1)
    ]
    unit = cell.training.flow_step(len(data.x))
    with np.errstate(over="ignore"):  # of very deep networks
        if learning_rate is None:
            learning_rate = float(f"{pace.flow_step(data, layers) / unit:.2g}")
            if not learning_rate:
                raise UserError(
                    "is missing, and by theory no number is small enough for these initial weights",
                    key="learning_rate",
                    remedy="give it, or use smaller init_scales or fewer hidden layers",
                )
        else:
            unit /= cell.training.learning_rate
        if steps is None:
            needed = pace.learning_time(data, _pathways(problem)) / (unit * learning_rate)
            if needed > MOST_STEPS:
                raise UserError(
                    f"is missing, and by theory learning takes {needed:.2g} steps from these "
                    "initial weights",
                    key="steps",
                    remedy="give it, or use larger init_scales or fewer hidden layers",
                )
            steps = ceil(needed / records) * records
    return learning_rate, steps


def _pathways(problem: Problem) -> list[pace.Pathway]:
    """Correlations and weights of each pathway, at the smallest init scale."""
    cell, data = problem.ensemble, problem.data
    weights = [w[int(np.argmin(cell.init_scales))] for w in problem.weights]
    if unmet(cell, "given_gates"):
        # initial weights are symmetric: a ReLU unit is open on half of the samples
        share = 0.5 ** len(cell.layered.hidden) if unmet(cell, "linear") else 1.0
        return [(share * data.sigma_yx, share * data.sigma_xx, weights)]
    effective = problem.wiring.effective
    return [
        (effective.sigma_yx[p], effective.sigma_xx[p, p], [weights[e] for e in path.edges])
        for p, path in enumerate(effective.architecture.pathways)
        if (p, p) in effective.sigma_xx
    ]
