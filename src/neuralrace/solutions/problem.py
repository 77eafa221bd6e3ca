"""What theory starts from: the data and the initial weights of a run, and times to answer at."""

from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
from jaxtyping import Float, Int

from neuralrace.datasets import Data, DomainDataset, Domains
from neuralrace.gates.wiring import Wiring
from neuralrace.models.initialisation import Weights, initial_edges, initial_weights
from neuralrace.spec import Gated, Graph, Layered, Routing, SolvedRun

Arrays = dict[str, Float[np.ndarray, "init_scale seed ..."]]


@dataclass(frozen=True)
class Problem:
    """A run as its theory sees it.

    All solutions of a run share one: data are loaded and weights drawn once, on first use.
    """

    run: SolvedRun
    step: Int[np.ndarray, " time"]
    """Gradient steps to answer at."""

    @cached_property
    def domains(self) -> Domains:
        """Inputs and targets by domain, for routing networks.

        Raises:
            UserError: files of the dataset are missing or damaged.
        """
        return cast(DomainDataset, self.run.dataset).domains()

    @cached_property
    def wiring(self) -> Wiring:
        """Graph and gates of a network with given gates; of the first seed where seeds differ.

        Raises:
            UserError: gates that do not fit the dataset.
        """
        network = cast(Gated | Graph | Routing, self.run.resolved)
        if isinstance(network, Routing):
            return network.wiring(self.domains)
        return network.wiring(self.run.dataset.load())

    @cached_property
    def data(self) -> Data:
        """The samples that the loss is over.

        Raises:
            UserError: files of the dataset are missing or damaged.
        """
        layered = isinstance(self.run.resolved, Layered)
        return self.run.dataset.load() if layered else self.wiring.data

    @cached_property
    def weights(self) -> Weights:
        """Initial weights as drawn, each (init_scale, seed, out, in), float64.

        W_1 ... W_L of a layered network, by edge of the wiring of any other.

        Raises:
            UserError: the initialisation law does not exist for this network.
        """
        run, network = self.run, self.run.resolved
        if isinstance(network, Layered):
            widths = (self.data.x.shape[1], *network.hidden, self.data.y.shape[1])
            modes = self.data.modes
            return initial_weights(run.init, widths, modes, run.init_scales, run.seed_numbers)
        return initial_edges(
            run.init,
            self.wiring.architecture,
            network.effective(self.domains)
            if isinstance(network, Routing)
            else lambda _: self.wiring.effective,
            run.init_scales,
            run.seed_numbers,
            self.wiring.sees,
        )

    @property
    def pathway_widths(self) -> list[int]:
        """Hidden units of each pathway of the wiring, in its first hidden layer."""
        graph = self.wiring.architecture
        return [graph.nodes[pathway.nodes[1]] for pathway in graph.pathways]

    @property
    def flow_step(self) -> float:
        """Gradient-flow time of a step, in units of tau."""
        return self.run.training.flow_step(len(self.data.x))

    @property
    def time(self) -> Float[np.ndarray, " time"]:
        """Gradient-flow times to answer at, in units of tau."""
        return self.step * self.flow_step

    def as_trained(self, loss: Float[np.ndarray, "*runs time"]) -> Float[np.ndarray, "*runs time"]:
        """A loss 1/2 <|y - yhat|^2> as training normalises it, to compare with simulation."""
        return self.run.training.loss.factor(len(self.data.x)) * loss
