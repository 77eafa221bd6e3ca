"""Choices for absent arguments: init scale, learning rate, steps, records and observables."""

from collections.abc import Sequence
from dataclasses import dataclass
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
OBSERVED = {"test_loss": "", "mode_strength": "linear", "pair_error": ""}
"""Observables that are recorded by default, with requirements in addition to their own."""
MOST_STEPS = 10**10
"""Most steps that theory chooses, which would take days. If learning takes more although inputs are
well-conditioned, the initial weights or the network are unsuitable."""
MOST_SECONDS = 300.0
"""Estimated core-seconds of the longest training that theory chooses."""
ILL_CONDITIONED = 10.0
"""Condition number of <x x^T> above which slow learning is ascribed to the inputs."""
LEAST_SHARE = 4
"""At least one in so many of the requested records is kept."""


@dataclass(frozen=True)
class Needed:
    """What it takes to learn a task.

    Attributes:
        steps: gradient steps.
        condition: condition number of <x x^T>.
    """

    steps: float
    condition: float

    @property
    def ill_conditioned(self) -> bool:
        """Whether slow learning is due to the inputs."""
        return self.condition > ILL_CONDITIONED


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


def learned_maps(cell: Cell) -> list[pace.LinearMap]:
    """The map that each pathway learns; it does not depend on init scale, rate or steps."""
    problem = Problem(cell, np.arange(1))
    return pace.learned_maps(problem.data, _pathways(problem))


def small_scale(cell: Cell, maps: Sequence[pace.LinearMap]) -> float:
    """The init scale that theory chooses, for a cell with init scale 1 and its `learned_maps`."""
    pathways = _pathways(Problem(cell, np.arange(1)))
    return float(f"{pace.small_scale(pace.relevant_modes(maps, pathways)):.2g}")


def fine_rate(cell: Cell, maps: Sequence[pace.LinearMap]) -> float:
    """The learning rate that theory chooses, for a cell with learning rate 1.

    Args:
        cell: specification.
        maps: its `learned_maps`.

    Raises:
        UserError: the network is so deep that no rate is in range.
    """
    problem = Problem(cell, np.arange(1))
    weights = problem.weights
    gated = not unmet(cell, "given_gates")
    levels = problem.wiring.architecture.levels if gated else range(len(weights))
    norms = [np.linalg.norm(w, 2, axis=(-2, -1)) for w in weights]
    layers = [
        np.stack([norm for norm, at in zip(norms, levels, strict=True) if at == level], axis=-1)
        for level in range(max(levels) + 1)
    ]
    with np.errstate(over="ignore"):  # of very deep networks
        step = pace.flow_step(problem.data, layers, maps)
    rate = float(f"{step / problem.flow_step:.2g}")
    if not rate:
        raise UserError(
            "is missing, and by theory no number is small enough for these initial weights",
            key="learning_rate",
            remedy="give it, or use smaller init_scales or fewer hidden layers",
        )
    return rate


def needed_steps(cell: Cell, maps: Sequence[pace.LinearMap]) -> Needed:
    """Gradient steps until the slowest mode is learned, by theory.

    Args:
        cell: specification; its steps do not count.
        maps: its `learned_maps`.

    Raises:
        UserError: the initial weights are so small, or the network so deep, that no number of
            steps is in range.
    """
    problem = Problem(cell, np.arange(1))
    with np.errstate(over="ignore"):  # of very deep networks
        time = pace.learning_time(pace.relevant_modes(maps, _pathways(problem)))
    needed = Needed(time / problem.flow_step, max(each.condition for each in maps))
    if needed.steps > MOST_STEPS and not needed.ill_conditioned:
        raise UserError(
            f"is missing, and by theory learning takes {needed.steps:.2g} steps from these initial "
            "weights",
            key="steps",
            remedy="give it, or use larger init_scales or fewer hidden layers",
        )
    return needed


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
