"""Lottery tickets: hidden units kept by a rule, and trained again from their initial weights.

Frankle and Carbin (2019, "The lottery ticket hypothesis") keep what is largest after training. The
neural race names the winners before training: units of a pathway grow at the same rate, so those
with the largest part in its initial strength stay the largest.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from neuralrace.config.cell import Ensemble, Record
from neuralrace.datasets.random_streams import generator
from neuralrace.networks.initialisers.base import Weights
from neuralrace.networks.tasks.layered import LayeredTask
from neuralrace.theory.reln.imitation import altered
from neuralrace.training.task import Task
from neuralrace.training.trainer import train


def in_turn(
    strength: Float[np.ndarray, "*runs unit pathway"], weakest: bool = False
) -> Int[np.ndarray, "*runs unit"]:
    """Units by strength, each pathway in turn: the strongest of every pathway come first.

    Args:
        strength: initial strength of each unit in the pathway that it joins, 0 in all others.
        weakest: whether the weakest unit of every pathway comes first instead.

    Returns:
        Numbers of the units. The first units of this order, one for each pathway, cover all
        pathways; the next ones are the second of each pathway, and so on.
    """
    pathway, own = strength.argmax(-1), strength.max(-1)
    key = own if weakest else -own
    same = pathway[..., :, None] == pathway[..., None, :]
    place = (same & (key[..., None, :] < key[..., :, None])).sum(-1)
    return np.lexsort((key, place), axis=-1)


def rankings(
    strength: Float[np.ndarray, "init_scale seed unit pathway"],
    size: Float[np.ndarray, "init_scale seed unit"],
    seeds: Sequence[int],
) -> dict[str, Int[np.ndarray, "init_scale seed unit"]]:
    """Order in which each rule keeps units; a ticket of n units is the first n of it.

    Args:
        strength: see `in_turn`.
        size: size of each unit after training, |v||w| of its weights out of it and into it.
        seeds: run seeds.

    Returns:
        Numbers of units by rule: `winners` are the strongest at the start of every pathway, in
        turn, and `losers` the weakest; `largest` are those of largest size, of any pathway;
        `random` are drawn by the run seed.
    """
    units = size.shape[-1]
    drawn = np.stack([generator(seed, "random ticket").permutation(units) for seed in seeds])
    return {
        "winners": in_turn(strength),
        "largest": np.argsort(-size, axis=-1, kind="stable"),
        "random": np.broadcast_to(drawn, size.shape).copy(),
        "losers": in_turn(strength, weakest=True),
    }


def keep(weights: Weights, units: Int[np.ndarray, "*runs kept"]) -> Weights:
    """The weights into and out of some units of a hidden layer.

    Args:
        weights: two layers, (*runs, unit, input) and (*runs, output, unit).
        units: numbers of the units.
    """
    encoder, decoder = weights
    return [
        np.take_along_axis(encoder, units[..., :, None], axis=-2),
        np.take_along_axis(decoder, units[..., None, :], axis=-1),
    ]


def train_again(ensemble: Ensemble, weights: Weights) -> Float[np.ndarray, "init_scale run time"]:
    """Losses of fully connected networks with one hidden layer that start from given weights.

    Dataset, activation, training and precision are those of the ensemble.

    Args:
        ensemble: the whole network, and its training.
        weights: two layers, (init_scale, run, unit, input) and (init_scale, run, output, unit),
            for any number of runs and units.

    Raises:
        UserError: every run diverged.
    """
    _, runs, units, _ = weights[0].shape
    network = ensemble.layered.model_copy(update={"hidden": (units,)})
    again = altered(
        ensemble, network=network, seeds=runs, record=Record(every=ensemble.record.every)
    )
    return train(_Given.model_construct(**dict(again), weights=weights)).variables["loss"]


class _Given(Ensemble):
    """Runs of a fully connected network that start from given weights."""

    weights: list[Any]
    """Layers of weights, as `train_again` takes them."""

    def task(self) -> Task:
        """See `Ensemble.task`."""
        network = self.layered
        task = _GivenTask(network, network.examples(self.dataset), self.init, self.training)
        task.given = self.weights
        return task


class _GivenTask(LayeredTask):
    """A fully connected network on samples, from given weights."""

    given: Weights

    def weights(self, scales: Sequence[float], seeds: Sequence[int]) -> Weights:
        """See `Task.weights`."""
        return [layer[: len(scales), : len(seeds)] for layer in self.given]
