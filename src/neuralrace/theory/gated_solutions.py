"""Theory beside a gated run: its full gradient flow, its reduction, and the race of its domains."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from neuralrace.datasets import DomainDataset, Domains
from neuralrace.datasets.contextual import Contextual
from neuralrace.errors import UserError, configured_as
from neuralrace.gates.contexts import Contexts
from neuralrace.gates.effective import EffectiveData
from neuralrace.gates.wiring import Wiring
from neuralrace.initialisation.base import Weights
from neuralrace.initialisation.normal import Normal
from neuralrace.models.initialisation import initial_edges
from neuralrace.models.routing import stacked
from neuralrace.spec import Gated, Layered, Routing, Run, Solution, SolvedRun
from neuralrace.theory import contextual, gated_flow, pathway_modes, reduction, routing
from neuralrace.theory.modes import mode_loss

Arrays = dict[str, Float[np.ndarray, "init_scale seed ..."]]

# Largest share of any weights that may lie off the modes in a start that counts as aligned.
ALIGNED = 1e-8


@dataclass(frozen=True)
class GatedProblem:
    """What theory starts from: the effective data of all pathways, and the initial weights."""

    run: Run
    wiring: Wiring
    weights: Weights
    """By edge of the wiring, each (init_scale, seed, target, source)."""
    domains: Domains | None
    """For routing networks."""
    step: Int[np.ndarray, " time"]

    @property
    def samples(self) -> int:
        """Samples that the loss is over."""
        return len(self.wiring.data.x)

    @property
    def flow_step(self) -> float:
        """Gradient-flow time of a step."""
        return self.run.training.flow_step(self.samples)

    @property
    def effective(self) -> EffectiveData:
        """What the pathways of every run learn from.

        Raises:
            UserError: it differs between runs.
        """
        if isinstance(self.run.network, Routing) and self.run.network.pairs.varies:
            raise UserError(
                f"network.pairs: {self.run.network.pairs.name!r}: trains other pairs in each seed, "
                "and solutions are for one mask; use band or all, or routing_race alone"
            )
        return self.wiring.effective

    @cached_property
    def strengths(self) -> Float[np.ndarray, "init_scale seed edge mode"]:
        """Initial strength of every edge in every mode.

        Raises:
            UserError: the start is not aligned with the modes of the data.
        """
        return reduction.aligned_strengths(self.effective, self.weights, ALIGNED)

    def from_strengths(self, path: Float[np.ndarray, "*runs time edge mode"]) -> Arrays:
        """Loss, singular values and mode strengths of aligned weights."""
        arrays = {"loss": reduction.reduction_loss(self.effective, path)}
        values = -np.sort(-np.abs(path), axis=-1)
        if not isinstance(self.run.network, Routing):
            return arrays | {"singular_values": values}
        layers = np.array(self.wiring.architecture.levels)
        by_layer = [values[..., layers == n, :].mean(axis=-2) for n in range(layers.max() + 1)]
        pathways, s = self.wiring.architecture.pathways, self.effective.modes.s
        maps = [  # of trained pairs alone, the others have no targets
            path[..., list(pathway.edges), :].prod(axis=-2)
            for pathway, strength in zip(pathways, s, strict=True)
            if strength.any()
        ]
        return arrays | {
            "singular_values": np.stack(by_layer, axis=-2),
            "mode_strength": np.mean(maps, axis=0),
        }


def pose(run: Run, step: Int[np.ndarray, " time"]) -> GatedProblem:
    """The problem that a gated run poses, at the given gradient steps.

    Raises:
        UserError: the network is layered, gates or law do not fit, or the loss is another one.
    """
    network, dataset = run.resolved, run.dataset
    domains = dataset.domains() if isinstance(dataset, DomainDataset) else None
    if isinstance(network, Layered):
        raise UserError("solutions: this theory is for linear networks with given gates")
    if isinstance(network, Gated) and network.readout != "trained":
        raise UserError(
            "network.readout: 'mean': solutions for it are frozen_gates and frozen_gates_descent"
        )
    if run.training.loss.name != "squared_error":
        raise UserError("solutions: theory is for training.loss squared_error")
    if isinstance(network, Routing) and domains is not None:
        wiring = network.wiring(domains)
        effective = network.effective(domains)
    else:
        wiring = network.wiring(run.dataset.load())
        effective = lambda _: wiring.effective  # noqa: E731 (the other branch gives a function)
    weights = initial_edges(
        run.init,
        wiring.architecture,
        effective,
        run.init_scales,
        run.seed_numbers,
        wiring.sees,
    )
    return GatedProblem(run, wiring, weights, domains, step)


@dataclass(frozen=True)
class Candidates:
    """The problems that candidates pose in the place of a ReLU network."""

    problems: Mapping[str, GatedProblem]
    samples: int
    """Samples that the loss is over."""


def pose_candidates(run: SolvedRun, step: Int[np.ndarray, " time"]) -> Candidates:
    """The problem that each candidate poses in the place of the run's own network.

    Raises:
        UserError: there are no candidates, or as `pose`.
    """
    if not run.candidates:
        raise UserError("solutions: candidate_modes is for runs with candidates; name some")
    problems = {}
    for name, network in run.candidates.items():
        with configured_as(f"candidates.{name}"):
            problems[name] = pose(run.model_copy(update={"network": network}), step)
    return Candidates(problems, next(iter(problems.values())).samples)


def _gated_flow(problem: GatedProblem) -> Arrays:
    time = problem.step * problem.flow_step
    path = gated_flow.gated_flow(time, problem.effective, problem.weights)
    return {"loss": gated_flow.gated_loss(problem.effective, path)}


def _reduction(problem: GatedProblem) -> Arrays:
    time = problem.step * problem.flow_step
    path = reduction.reduction_flow(time, problem.effective, problem.strengths)
    return problem.from_strengths(path)


def _reduction_descent(problem: GatedProblem) -> Arrays:
    """The same steps as training takes, which leaves rounding as the only difference."""
    path = reduction.reduction_descent(
        problem.step, problem.flow_step, problem.effective, problem.strengths
    )
    return problem.from_strengths(path)


def _routing_race(problem: GatedProblem) -> Arrays:
    """Every mode of every block, from an aligned start that stands for the random one.

    Loss and mode strengths are means over blocks, singular values those of the first block.
    """
    network, domains = problem.run.network, problem.domains
    if not isinstance(network, Routing) or domains is None:
        raise UserError("solutions: routing_race is for routing networks")
    count = domains.count
    families = network.families(count)
    if len(families) != 1 or len(network.hidden) != 2:
        raise UserError(
            "solutions: routing_race is for pathway blocks of one size with two hidden layers"
        )
    trained, size = network.mask(count, 0), families[0].size
    if size < count and not trained.all():
        raise UserError("solutions: routing_race of groups needs network.pairs all")
    ((encoder, hidden, decoder),) = stacked(problem.weights, families, count)
    u, s, v = _pair_modes(domains)
    d = np.einsum("ik,ij,jk->k", v[0], domains.sigma_xx[0], v[0])
    # by block: rows are groups of input domains, columns groups of output domains
    u, v = u.reshape(1, -1, size, *u.shape[1:]), v.reshape(-1, 1, size, *v.shape[1:])
    try:
        start = routing.routing_start(encoder, hidden, decoder, u, v)
    except ValueError as error:
        raise UserError(f"solutions: routing_race: {error}") from error
    share = trained[:size, :size].sum() / size / trained.sum()
    time = problem.step * problem.flow_step
    path = routing.routing_mode(time, s, d, start, size, float(share))
    strength = path.prod(axis=-2)
    loss = mode_loss(strength, s, d, float(domains.y_power.mean()))
    return {
        "loss": loss.mean(axis=(2, 3)),
        "mode_strength": strength.mean(axis=(2, 3)),
        "singular_values": path[:, :, 0, 0],
    }


def _pair_modes(domains: Domains) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Singular vectors u and v of each domain, and the strengths that all pairs share.

    Raises:
        UserError: pairs of domains differ in their modes.
    """
    sigma = domains.sigma_yx
    first, s, second = np.linalg.svd(sigma[0, 0], full_matrices=False)
    v = np.einsum("iyx,yk->ixk", sigma[:, 0], first) / s
    u = np.einsum("jyx,kx->jyk", sigma[0], second) / s
    if not np.allclose(np.einsum("jyk,k,ixk->ijyx", u, s, v), sigma, atol=1e-9 * s[0]):
        raise UserError("solutions: routing_race needs pairs of domains with the same modes")
    return u, s, v


def _pathway_modes(problem: GatedProblem) -> Arrays:
    """One hidden unit for each mode of each pathway, from the initial weights."""
    start = pathway_modes.weight_start(problem.effective, problem.weights)
    return _joint(problem, start)


def _pathway_modes_descent(problem: GatedProblem) -> Arrays:
    """From the initial weights by the same steps as training takes."""
    start = pathway_modes.weight_start(problem.effective, problem.weights)
    found = pathway_modes.pathway_modes_descent(
        problem.step, problem.flow_step, problem.effective, start
    )
    return _learned(problem, found)


def _pathway_modes_mean(problem: GatedProblem) -> Arrays:
    """The same from width and variance of the initial weights alone."""
    scales = _deviations(problem)[:, None]
    return _joint(problem, pathway_modes.mean_start(problem.effective, _widths(problem), scales))


def _widths(problem: GatedProblem) -> list[int]:
    """Hidden units of each pathway, in its first hidden layer."""
    architecture = problem.wiring.architecture
    return [architecture.nodes[pathway.nodes[1]] for pathway in architecture.pathways]


def _deviations(problem: GatedProblem) -> Float[np.ndarray, " init_scale"]:
    """Standard deviation of the initial weights.

    Raises:
        UserError: they are not normal.
    """
    if not isinstance(problem.run.init, Normal):
        raise UserError(
            f"init.name: {problem.run.init.name!r}: solutions that start from the variance of the "
            "initial weights are for init normal"
        )
    return np.array(problem.run.init_scales)


def _joint(problem: GatedProblem, start: Weights) -> Arrays:
    time = problem.step * problem.flow_step
    return _learned(problem, pathway_modes.pathway_modes_flow(time, problem.effective, start))


def _learned(problem: GatedProblem, found: pathway_modes.JointLearning) -> Arrays:
    """Loss and singular values of all runs, which may have been solved as one."""
    shape = (len(problem.run.init_scales), problem.run.seeds)
    values, data = found.singular_values, problem.wiring.data
    missing = min(data.x.shape[1], data.y.shape[1]) - values.shape[-1]
    values = np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, missing)])
    return {
        "loss": np.broadcast_to(found.loss, (*shape, *found.loss.shape[2:])),
        "pathway_values": np.broadcast_to(values, (*shape, *values.shape[2:])),
    }


def _candidate_modes(candidates: Candidates) -> Arrays:
    """Loss of every candidate from width and variance of the initial weights."""
    losses = [_pathway_modes_mean(problem)["loss"] for problem in candidates.problems.values()]
    return {"candidate_loss": np.stack(losses, axis=2)}


def _closed_form(problem: GatedProblem, head_start: bool) -> Arrays:
    """The contextual task from width and variance of the initial weights, see `theory.contextual`.

    Raises:
        UserError: the task or the pathways are others.
    """
    dataset, network = problem.run.dataset, problem.run.network
    if (
        not isinstance(dataset, Contextual)
        or set(dataset.structures) != {"hierarchy"}
        or not isinstance(network, Gated)
        or not isinstance(network.gates, Contexts)
        or network.gates.shown != "first_group"
        or len(network.gates.open_in) > 1
        or len(network.hidden) != 1
        or (head_start and not (network.gates.common and dataset.part == "whole"))
    ):
        raise UserError(
            "solutions: staged_modes and head_start are for dataset contextual with hierarchies "
            "alone, and for gates of kind contexts with one number of contexts at most; "
            "head_start is one over a common pathway, on the whole targets"
        )
    time, scheme = problem.step * problem.flow_step, network.gates
    task = dataset.contexts, dataset.objects
    # every mode of a pathway starts from half its width times the variance
    strengths = [width * _deviations(problem) ** 2 / 2 for width in _widths(problem)]
    common = np.repeat(strengths[0][:, None], sum(task) - 1, axis=1)
    family = np.repeat(strengths[-1][:, None], dataset.objects - 1, axis=1)
    loss = np.full((len(strengths[0]), len(time)), problem.wiring.data.y_power / 2)
    data = problem.wiring.data
    modes = min(data.x.shape[1], data.y.shape[1])
    values = np.zeros((*loss.shape, len(strengths), modes))
    if scheme.common:
        loss -= contextual.common_gain(time, *task, common)
        found = contextual.common_strengths(time, *task, common)
        values[..., 0, : found.shape[-1]] = found
    for open_in in scheme.open_in:
        if head_start:
            family = contextual.head_start(*task, open_in, common, family)
        loss -= contextual.family_gain(time, *task, open_in, family)
        found = contextual.family_strengths(time, *task, open_in, family)
        values[..., int(scheme.common) :, : found.shape[-1]] = found[..., None, :]
    values = -np.sort(-values, axis=-1)
    runs = len(loss), problem.run.seeds
    return {
        "loss": np.broadcast_to(loss[:, None], (*runs, *loss.shape[1:])),
        "pathway_values": np.broadcast_to(values[:, None], (*runs, *values.shape[1:])),
    }


def _staged_modes(problem: GatedProblem) -> Arrays:
    """The paper's: context pathways start to learn the residual with the start of their weights."""
    return _closed_form(problem, head_start=False)


def _head_start(problem: GatedProblem) -> Arrays:
    """With what context pathways gain while the common one learns."""
    return _closed_form(problem, head_start=True)


GATED: dict[Solution, Callable[[GatedProblem], Arrays]] = {
    "gated_flow": _gated_flow,
    "head_start": _head_start,
    "pathway_modes": _pathway_modes,
    "pathway_modes_descent": _pathway_modes_descent,
    "pathway_modes_mean": _pathway_modes_mean,
    "reduction": _reduction,
    "reduction_descent": _reduction_descent,
    "routing_race": _routing_race,
    "staged_modes": _staged_modes,
}
CANDIDATES: dict[Solution, Callable[[Candidates], Arrays]] = {
    "candidate_modes": _candidate_modes,
}
