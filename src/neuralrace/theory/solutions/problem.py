"""The problem that a solution solves: data, initial weights and recorded times of an ensemble."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from neuralrace.config.cell import SolvedEnsemble
from neuralrace.datasets import Data, Domains
from neuralrace.extensions.representation import short_repr
from neuralrace.networks.gates.wiring import Wiring
from neuralrace.networks.initialisers.base import Weights

Arrays = dict[str, Float[np.ndarray, "init_scale seed ..."]]


@dataclass(frozen=True)
class Problem:
    """Data, initial weights and recorded times of an ensemble.

    All solutions of an ensemble share one problem. Data are loaded and weights are drawn once, on
    first use.
    """

    ensemble: SolvedEnsemble
    step: Int[np.ndarray, " time"]
    """Gradient steps at which to evaluate the theory."""

    __repr__ = short_repr

    @cached_property
    def examples(self) -> Any:
        """The dataset as the network sees it; see `Network.examples`.

        Raises:
            UserError: the gates do not fit the dataset, or a file is missing or damaged.
        """
        return self.ensemble.resolved.examples(self.ensemble.dataset)

    @property
    def domains(self) -> Domains:
        """Inputs and targets by domain, for routing networks.

        Raises:
            UserError: files of the dataset are missing or damaged.
        """
        return self.examples

    @cached_property
    def wiring(self) -> Wiring:
        """Graph and gates of a gated network; of the first seed where seeds differ.

        Raises:
            UserError: the gates do not fit the dataset.
        """
        network: Any = self.ensemble.network
        return network.wiring(self.examples) if network.by_domain else self.examples

    @cached_property
    def data(self) -> Data:
        """The samples that the loss is over.

        Raises:
            UserError: files of the dataset are missing or damaged.
        """
        return self.wiring.data if self.ensemble.resolved.has_fixed_gates else self.examples

    @cached_property
    def phases(self) -> list[tuple[int, Data]]:
        """First step and samples of each task of a sequence; otherwise those of the only task.

        Raises:
            UserError: files of the dataset are missing or damaged.
        """
        return [(start, dataset.load()) for start, dataset in self.ensemble.dataset.phases]

    @cached_property
    def weights(self) -> Weights:
        """Initial weights, each (init_scale, seed, out, in), float64; see `Network.initial`.

        Raises:
            UserError: the initialiser does not exist for this network.
        """
        ensemble = self.ensemble
        return ensemble.resolved.initial(
            ensemble.init, self.examples, ensemble.init_scales, ensemble.seed_numbers
        )

    @property
    def pathway_widths(self) -> list[int]:
        """Hidden units of each pathway of the wiring, in its first hidden layer."""
        graph = self.wiring.architecture
        return [graph.nodes[pathway.nodes[1]] for pathway in graph.pathways]

    @property
    def flow_step(self) -> float:
        """Gradient-flow time of one gradient step, in units of tau."""
        return self.ensemble.training.flow_step(len(self.data.x))

    @property
    def time(self) -> Float[np.ndarray, " time"]:
        """Gradient-flow times at which to evaluate the theory, in units of tau."""
        return self.step * self.flow_step

    def white_clock(self, time: Float[np.ndarray, " time"]) -> Float[np.ndarray, " time"]:
        """Times at which whitened inputs give the weights that these inputs give at `time`.

        The gradient of white inputs, sigma_xx = d I, is d times that of whitened inputs for the
        same least-squares map, as sigma_yx - d W = d (sigma_yx / d - W). So solutions for whitened
        inputs take these times and `sigma_yx / d`. In a sequence, d changes with the task.
        """
        starts, tasks = zip(*self.phases, strict=True)
        starts, d = self.flow_step * np.array(starts), np.array([task.variance for task in tasks])
        passed = np.append(0.0, np.cumsum(d[:-1] * np.diff(starts)))
        task = np.searchsorted(starts, time, side="right") - 1
        return passed[task] + d[task] * (time - starts[task])

    def as_trained(self, loss: Float[np.ndarray, "*runs time"]) -> Float[np.ndarray, "*runs time"]:
        """The loss 1/2 <|y - yhat|^2> with the normalisation of training."""
        return self.ensemble.training.loss.factor(len(self.data.x)) * loss
