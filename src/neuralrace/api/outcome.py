"""What training reached, in words: diverged runs, the loss, and how close it is to the best."""

from dataclasses import dataclass

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float, Int

from neuralrace.config.cell import Cell
from neuralrace.config.requirements import unmet
from neuralrace.datasets import Data
from neuralrace.theory import pace
from neuralrace.theory.solutions.problem import Problem

MOST_INPUTS = 2000
"""Most inputs, of all pathways together, for which the best map is computed: seconds."""
NEGLIGIBLE = 1e-6
"""A loss below this share of the initial loss counts as 0."""


@dataclass(frozen=True)
class Best:
    """The best that a linear network can reach.

    Attributes:
        name: of the maps that reach it.
        loss: with the normalisation of training.
        explained: how much lower than that of a network whose outputs are zero.
    """

    name: str
    loss: float
    explained: float


def count_diverged(diverged: int, runs: int) -> str:
    """The first words of every status."""
    return f"{diverged} of {runs} runs diverged"


def describe_outcome(
    cell: Cell,
    loss: xr.DataArray,
    diverged_at: Int[np.ndarray, "init_scale seed"],
    needed: float | None,
) -> str:
    """A line about a finished training.

    Args:
        cell: its specification.
        loss: recorded losses, (init_scale, seed, time).
        diverged_at: the step at which each run diverged, or -1.
        needed: steps that learning takes, if theory chose the steps.
    """
    healthy = diverged_at < 0
    count = count_diverged(int((~healthy).sum()), diverged_at.size)
    start, end = _start_and_end(loss, healthy)
    if not start.size or not start.all():
        return count
    slowest = int(np.argmax(end / start))
    line = f"{count}; final loss / initial loss: {_largest(end / start)}"
    best = best_possible(cell)
    if best is None:
        return line
    line += f" ({best.name}: {_share(best.loss / start[slowest])})"
    if needed is not None and end.max() - best.loss > 2 * pace.TOLERANCE * best.explained:
        if needed > cell.training.steps:
            line += f"; training stopped early, learning takes about {needed:.2g} steps"
        else:
            line += "; learning is incomplete; give more steps or a smaller learning_rate"
    return line


def describe_test(trajectory: xr.Dataset, diverged_at: Int[np.ndarray, "init_scale seed"]) -> str:
    """The end of the line of `describe_outcome`, about the loss on test samples; may be empty."""
    if "test_loss" not in trajectory:
        return ""
    start, end = _start_and_end(trajectory["test_loss"], diverged_at < 0)
    if not start.size or not start.all():
        return ""
    return f"; final test loss / initial test loss: {_largest(end / start)}"


def _start_and_end(
    loss: xr.DataArray, healthy: Bool[np.ndarray, "init_scale seed"]
) -> tuple[Float[np.ndarray, " run"], Float[np.ndarray, " run"]]:
    """First and last losses of the runs that did not diverge."""
    start, end = (loss.isel(time=at).values[healthy].astype(float) for at in (0, -1))
    return start, end


def _largest(shares: Float[np.ndarray, " run"]) -> str:
    return _share(float(shares.max())) + (" or less" if shares.size > 1 else "")


def best_possible(cell: Cell) -> Best | None:
    """The best that the network could reach; None where this is not known.

    It is known for the squared error of linear networks: fully connected ones, and gated ones whose
    pathways are parallel and no layer of which is narrower than both inputs and targets.
    """
    known = "linear trained_readout squared_error full_batch one_task domains_in_memory"
    gated = not unmet(cell, "given_gates")
    if unmet(cell, f"{known} {'joint_descent one_mask' if gated else 'layered'}"):
        return None
    problem = Problem(cell, np.arange(1))
    data, name = problem.data, "best linear map"
    widest = min(data.x.shape[1], data.y.shape[1])
    if gated:
        graph = problem.wiring.architecture
        edges = [edge for pathway in graph.pathways for edge in pathway.edges]
        widths = [graph.nodes[node] for node in graph.hidden]
        parallel = len({*edges}) == len(edges) and len(graph.outputs) == 1
        if not parallel or min(widths, default=widest) < widest:
            return None
        name, rank = "best gated linear map", data.y.shape[1]
        data = Data(x=problem.wiring.gated_inputs, y=data.y)
    else:
        rank = min(cell.layered.hidden, default=widest)
        if rank < widest:
            name += f" of rank {rank}"
    if data.x.shape[1] > MOST_INPUTS:
        return None
    power = data.y_power
    best = pace.best_map(data.sigma_yx, data.sigma_xx, rank, pace.ROUNDING**2 * power)
    explained = min(float(best.power.sum()), power)
    loss, gain = problem.as_trained(np.array([power - explained, explained]) / 2)
    return Best(name, float(loss), float(gain))


def _share(value: float) -> str:
    return f"{value:.2g}" if value > NEGLIGIBLE else "0"
