"""Theory beside networks whose hidden units are averaged, yhat = (1/K) sum_k g_k(x) w_k.x."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from neuralrace.datasets import Data, Mixture
from neuralrace.datasets.marginals import Marginal
from neuralrace.errors import UserError
from neuralrace.gates.half_space import half_spaces
from neuralrace.models.initialisation import initial_edges, initial_weights
from neuralrace.spec import Gated, Layered, Run, Solution
from neuralrace.theory import unit_flow
from neuralrace.theory.frozen_gates import FrozenGates

Arrays = dict[str, Float[np.ndarray, "init_scale seed ..."]]


@dataclass(frozen=True)
class MeanReadoutProblem:
    """What theory starts from: samples or their law, gates where they are given, and weights."""

    run: Run
    data: Data
    start: Float[np.ndarray, "init_scale seed unit input"]
    """Incoming weights of the hidden units."""
    step: Int[np.ndarray, " time"]

    @property
    def samples(self) -> int:
        """Samples that the loss is over."""
        return len(self.data.x)

    @property
    def flow_step(self) -> float:
        """Gradient-flow time of a step."""
        return self.run.training.flow_step(self.samples)

    @property
    def time(self) -> Float[np.ndarray, " time"]:
        """Gradient-flow times to answer at."""
        return self.step * self.flow_step

    def frozen(self, gates: Float[np.ndarray, "unit sample"]) -> FrozenGates:
        """The network with these gates on the samples.

        Raises:
            UserError: a unit that is open on no sample.
        """
        try:
            return FrozenGates.from_samples(self.data.x, self.data.y[:, 0], gates)
        except ValueError as error:
            raise UserError(f"network.gates: {error}") from error

    def given_gates(self) -> FrozenGates:
        """The network with the gates of its specification.

        Raises:
            UserError: gates of its own making.
        """
        network = self.run.network
        if not isinstance(network, Gated) or network.layered:
            raise UserError(
                "solutions: frozen_gates is for network gated with given gates; use initial_gates"
            )
        return self.frozen(network.gates.gates(self.data))

    def law(self) -> tuple[Mixture, Marginal]:
        """The law of the samples of a ReLU network, and that of each input.

        Raises:
            UserError: given gates, or inputs whose law is not known.
        """
        if not isinstance(self.run.resolved, Layered):
            raise UserError("solutions: mean_field is for ReLU networks; use frozen_gates")
        mixture = self.run.dataset.mixture()
        if mixture is None or mixture.marginal is None:
            raise UserError(
                f"dataset.name: {self.run.dataset.name!r}: solutions: mean_field needs the law of "
                "the inputs; use nonlinear_gaussian"
            )
        return mixture, mixture.marginal


def pose(run: Run, step: Int[np.ndarray, " time"]) -> MeanReadoutProblem:
    """The problem that a run with a mean readout poses, at the given gradient steps.

    Raises:
        UserError: another readout, loss, depth or activation, or several outputs.
    """
    network, data = run.resolved, run.dataset.load()
    if (
        not isinstance(network, Layered | Gated)
        or network.readout != "mean"
        or len(network.hidden) != 1
        or data.y.shape[1] != 1
        or run.training.loss.name != "squared_error"
    ):
        raise UserError(
            "solutions: this theory is for one hidden layer with readout mean, one output and "
            "training.loss squared_error"
        )
    if isinstance(network, Layered):
        if network.activation != "relu" or network.bias:
            raise UserError("solutions: this theory is for ReLU networks without biases")
        widths = (data.x.shape[1], *network.hidden, 1)
        start, _ = initial_weights(run.init, widths, data.modes, run.init_scales, run.seed_numbers)
        return MeanReadoutProblem(run, data, start, step)
    if network.hidden != (1,) or network.widths:
        raise UserError("network.hidden: solutions: frozen_gates is for pathways of one unit, [1]")
    wiring = network.wiring(data)
    if wiring.sees:
        raise UserError("network.gates: solutions: frozen_gates needs pathways that see all inputs")
    edges = initial_edges(
        run.init, wiring.architecture, lambda _: wiring.effective, run.init_scales, run.seed_numbers
    )
    return MeanReadoutProblem(run, data, np.concatenate(edges[::2], axis=-2), step)


def _answer(frozen: FrozenGates, weights: Float[np.ndarray, "*runs time unit input"]) -> Arrays:
    return {"loss": frozen.loss(weights), "receptive_fields": weights[..., -1, :, :]}


def _frozen_gates(problem: MeanReadoutProblem) -> Arrays:
    frozen = problem.given_gates()
    return _answer(frozen, frozen.weights(problem.time, problem.start))


def _frozen_gates_descent(problem: MeanReadoutProblem) -> Arrays:
    """The same steps as training takes, which leaves rounding as the only difference."""
    frozen = problem.given_gates()
    return _answer(frozen, frozen.descent(problem.step, problem.flow_step, problem.start))


def _initial_gates(problem: MeanReadoutProblem) -> Arrays:
    """A ReLU network whose gates stay what the initial weights make them, at every init scale."""
    if not isinstance(problem.run.resolved, Layered):
        raise UserError("solutions: initial_gates is for ReLU networks; use frozen_gates")
    by_seed = []
    for start in np.moveaxis(problem.start, 1, 0):
        frozen = problem.frozen(half_spaces(problem.data.x, start[0]))
        by_seed.append(_answer(frozen, frozen.weights(problem.time, start)))
    return {name: np.stack([each[name] for each in by_seed], axis=1) for name in by_seed[0]}


def _mean_field(problem: MeanReadoutProblem) -> Arrays:
    """Units that see each other through Gaussian preactivations, from their own initial weights.

    The flow is no gradient flow, so it has no loss of its own: that of its weights is given, as a
    ReLU network on the samples.
    """
    law, marginal = problem.law()
    path = unit_flow.mean_field_flow(
        problem.time, problem.start, law.covariances, law.targets, marginal.quadrature
    )
    loss = np.empty(path.shape[:-2])
    for at in np.ndindex(loss.shape):
        answer = np.maximum(problem.data.x @ path[at].T, 0).mean(axis=1)
        loss[at] = np.mean((answer - problem.data.y[:, 0]) ** 2) / 2
    return {"loss": loss, "receptive_fields": path[..., -1, :, :]}


MEAN_READOUT: dict[Solution, Callable[[MeanReadoutProblem], Arrays]] = {
    "frozen_gates": _frozen_gates,
    "frozen_gates_descent": _frozen_gates_descent,
    "initial_gates": _initial_gates,
    "mean_field": _mean_field,
}
