"""What theory starts from: the data and the initial weights of a run, and times to answer at."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from neuralrace.config.cell import SolvedEnsemble
from neuralrace.datasets import Data, Domains
from neuralrace.networks.gates.wiring import Wiring
from neuralrace.networks.initialisers.base import Weights

Arrays = dict[str, Float[np.ndarray, "init_scale seed ..."]]


@dataclass(frozen=True)
class Problem:
    """A run as its theory sees it.

    All solutions of an ensemble share one: data are loaded and weights drawn once, on first use.
    """

    ensemble: SolvedEnsemble
    step: Int[np.ndarray, " time"]
    """Gradient steps to answer at."""

    @cached_property
    def seen(self) -> Any:
        """The dataset as the network sees it; see `Network.examples`.

        Raises:
            UserError: gates that do not fit the dataset; files that are missing or damaged.
        """
        return self.ensemble.resolved.examples(self.ensemble.dataset)

    @property
    def domains(self) -> Domains:
        """Inputs and targets by domain, for routing networks.

        Raises:
            UserError: files of the dataset are missing or damaged.
        """
        return self.seen

    @cached_property
    def wiring(self) -> Wiring:
        """Graph and gates of a network with given gates; of the first seed where seeds differ.

        Raises:
            UserError: gates that do not fit the dataset.
        """
        network: Any = self.ensemble.network
        return network.wiring(self.seen) if network.by_domain else self.seen

    @cached_property
    def data(self) -> Data:
        """The samples that the loss is over.

        Raises:
            UserError: files of the dataset are missing or damaged.
        """
        return self.wiring.data if self.ensemble.resolved.has_fixed_gates else self.seen

    @cached_property
    def weights(self) -> Weights:
        """Initial weights, each (init_scale, seed, out, in), float64; see `Network.initial`.

        Raises:
            UserError: the initialisation law does not exist for this network.
        """
        ensemble = self.ensemble
        return ensemble.resolved.initial(
            ensemble.init, self.seen, ensemble.init_scales, ensemble.seed_numbers
        )

    @property
    def pathway_widths(self) -> list[int]:
        """Hidden units of each pathway of the wiring, in its first hidden layer."""
        graph = self.wiring.architecture
        return [graph.nodes[pathway.nodes[1]] for pathway in graph.pathways]

    @property
    def flow_step(self) -> float:
        """Gradient-flow time of a step, in units of tau."""
        return self.ensemble.training.flow_step(len(self.data.x))

    @property
    def time(self) -> Float[np.ndarray, " time"]:
        """Gradient-flow times to answer at, in units of tau."""
        return self.step * self.flow_step

    def as_trained(self, loss: Float[np.ndarray, "*runs time"]) -> Float[np.ndarray, "*runs time"]:
        """A loss 1/2 <|y - yhat|^2> as training normalises it, to compare with simulation."""
        return self.ensemble.training.loss.factor(len(self.data.x)) * loss
