"""Theory beside a gated run: its full gradient flow, its reduction, and the race of its domains."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from neuralrace.datasets import Domains
from neuralrace.errors import UserError
from neuralrace.gates.effective import EffectiveData
from neuralrace.gates.wiring import Wiring
from neuralrace.models.initialisation import Weights, initial_edges
from neuralrace.models.routing import stacked
from neuralrace.spec import Gated, Layered, Routing, Run, Solution
from neuralrace.theory import gated_flow, reduction, routing
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
    network, domains = run.network, run.dataset.domains()
    if isinstance(network, Layered) or (isinstance(network, Gated) and network.layered):
        raise UserError("solutions: this theory is for linear networks with given gates")
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
        range(run.seeds),
    )
    return GatedProblem(run, wiring, weights, domains, step)


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
    families = network.families(domains)
    if len(families) != 1 or len(network.hidden) != 2:
        raise UserError(
            "solutions: routing_race is for pathway blocks of one size with two hidden layers"
        )
    trained, size = network.mask(domains, 0), families[0].size
    count = len(domains.inputs)
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


GATED: dict[Solution, Callable[[GatedProblem], Arrays]] = {
    "gated_flow": _gated_flow,
    "reduction": _reduction,
    "reduction_descent": _reduction_descent,
    "routing_race": _routing_race,
}
