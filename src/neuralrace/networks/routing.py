"""Routing networks: pathway blocks between input domains and output domains."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Union

import numpy as np
from pydantic import Field

from neuralrace.datasets.base import Dataset, DomainDataset, Domains, Sizes
from neuralrace.datasets.image_domains import ImageDomainDataset, image_domains
from neuralrace.errors import UserError
from neuralrace.extensions.model import Positive
from neuralrace.extensions.registry import choices
from neuralrace.networks.base import Arithmetic, Network, chain_weights
from neuralrace.networks.gates import wiring
from neuralrace.networks.gates.base import DomainScheme, Family, Pairs
from neuralrace.networks.gates.effective import EffectiveData
from neuralrace.networks.gates.wiring import Wiring
from neuralrace.networks.initial_weights import initial_edges
from neuralrace.networks.initialisers.base import Initialiser, Weights
from neuralrace.networks.subspace import trained_family
from neuralrace.training.settings import Training

if TYPE_CHECKING:
    from neuralrace.training.task import Task

DOMAIN_SCHEMES = choices("gates", DomainScheme)
PAIRS = choices("gates", Pairs)


class Routing(Network):
    """A network from every input domain to every output domain, through shared pathway blocks."""

    by_domain: ClassVar[bool] = True
    name: Literal["routing"]
    hidden: Annotated[tuple[Positive, ...], Field(min_length=1)]
    """Units in each hidden layer of a block."""
    gates: Annotated[Union[DOMAIN_SCHEMES], Field(discriminator="name")]  # pyright: ignore  # noqa: UP007
    """Pairs of domains that share a block."""
    pairs: Annotated[Union[PAIRS], Field(discriminator="name")]  # pyright: ignore  # noqa: UP007
    """Pairs of domains that are trained; samples of other pairs are never shown."""
    activation: Literal["linear", "relu"] = "linear"
    """Activation of the hidden layers; relu is for transformed_images."""

    @property
    def linear(self) -> bool:
        """See `Network.linear`."""
        return self.activation == "linear"

    def on_moments(self, training: Training) -> bool:
        """Whether training on images depends on their second moments alone."""
        return self.linear and training.on_moments

    def families(self, count: int) -> tuple[Family, ...]:
        """The pathway blocks between this many domains, by families of one size.

        Raises:
            UserError: the domains do not divide into blocks.
        """
        return self.gates.families(count, self.hidden)

    def trained_families(
        self,
        count: int,
        widths: tuple[int, int],
        initialiser: Initialiser,
        training: Training,
    ) -> tuple[Family, ...]:
        """As `families`, at the width at which they are trained on correlations of domains.

        Args:
            count: number of input domains, and of output domains.
            widths: units of an input domain and of an output domain.
            initialiser: draws the weights.
            training: loss, batches and optimiser.
        """
        return tuple(
            trained_family(family, widths, initialiser, training) for family in self.families(count)
        )

    def partners(self, count: int) -> int:
        """Output domains that each input domain is trained with, if there are this many.

        Raises:
            UserError: more partners than domains.
        """
        return self.pairs.count(count)

    def mask(self, count: int, seed: int) -> np.ndarray:
        """Trained pairs of a run between this many domains, bool (input domain, output domain).

        Raises:
            UserError: more partners than domains.
        """
        return self.pairs.mask(count, seed)

    def wiring(self, domains: Domains, seed: int = 0) -> Wiring:
        """The graph with its gates on the samples of the pairs that a seed is trained on.

        Raises:
            UserError: the domains do not fit the blocks or the pairs.
        """
        count = domains.count
        return wiring.routing(domains, self.families(count), self.mask(count, seed))

    def effective(self, domains: Domains) -> Callable[[int], EffectiveData]:
        """Effective data of the pathways by run seed, computed once for each mask."""
        by_mask = cache(lambda seed: self.wiring(domains, seed).effective)
        return lambda seed: by_mask(seed if self.pairs.varies else 0)

    def examples(self, dataset: Any) -> Domains:
        """See `Network.examples`."""
        return dataset.domains()

    def task(self, dataset: Any, initialiser: Initialiser, training: Training) -> "Task":
        """See `Network.task`."""
        from neuralrace.networks.tasks.domains import ImageTask, RoutingTask

        if isinstance(dataset, ImageDomainDataset):
            return ImageTask(self, image_domains(dataset), initialiser, training)  # pyright: ignore
        return RoutingTask(self, self.examples(dataset), initialiser, training)

    def check(self, dataset: Dataset, training: Training) -> None:
        """See `Network.check`; domains of images have rules of their own."""
        if isinstance(dataset, ImageDomainDataset):
            self._check_images(training)
        else:
            super().check(dataset, training)
            self._check_correlations(dataset, training)

    def _check_images(self, training: Training) -> None:
        if self.gates.name != "always_on":
            raise UserError(
                "images are routed through one shared pathway block",
                key="network.gates.name",
                value=self.gates.name,
                remedy="use always_on",
            )
        if training.batch.whole and not self.on_moments(training):
            raise UserError(
                "only a linear network with squared error is trained on all images at once, "
                "through their correlations",
                key="training.batch.name",
                value=training.batch.name,
                remedy="use mini",
            )
        if training.batch.whole and not training.optimiser.is_linear:
            raise UserError(
                "all images at once are learned along the eigenvectors of their correlation, which "
                "changes the result of this optimiser",
                key="training.optimiser.name",
                value=training.optimiser.name,
                remedy="use sgd or momentum, or training.batch.name: mini",
            )

    def _check_correlations(self, dataset: Any, training: Training) -> None:
        if not isinstance(dataset, DomainDataset):
            raise UserError(
                f"dataset {dataset.name!r} has no domains",
                key="network.name",
                value=self.name,
                remedy="use a dataset with domains, such as routing",
            )
        if not self.linear:
            raise UserError(
                f"dataset {dataset.name!r} is learned from correlations, which needs a linear "
                "network",
                key="network.activation",
                value=self.activation,
                remedy="use linear",
            )
        if not training.loss.squared:
            raise UserError(
                "a routing network is trained on correlations",
                key="training.loss.name",
                value=training.loss.name,
                remedy="use squared_error",
            )

    def initial(
        self,
        initialiser: Initialiser,
        examples: Domains,
        scales: Sequence[float],
        seeds: Sequence[int],
    ) -> Weights:
        """See `Network.initial`."""
        widths = examples.inputs.shape[2], examples.targets.shape[2]
        return self.initial_between(
            examples.count, widths, lambda: examples, initialiser, scales, seeds
        )

    def initial_between(
        self,
        count: int,
        widths: tuple[int, int],
        domains: Callable[[], Domains],
        initialiser: Initialiser,
        scales: Sequence[float],
        seeds: Sequence[int],
    ) -> Weights:
        """As `initial`, for domains that are slow to make: only some initialisers need their modes.

        Args:
            count: number of input domains, and of output domains.
            widths: units of an input domain and of an output domain.
            domains: makes the domains.
            initialiser: draws the weights.
            scales: init scales.
            seeds: run seeds.
        """
        effective = cache(lambda: self.effective(domains()))
        graph = wiring.routing_architecture(count, *widths, self.families(count))
        return initial_edges(initialiser, graph, lambda seed: effective()(seed), scales, seeds)

    def arithmetic(
        self, dataset: Any, sizes: Sizes, initialiser: Initialiser, training: Training
    ) -> Arithmetic:
        """See `Network.arithmetic`."""
        (samples, inputs, outputs), domains = sizes, dataset.count
        first, last = self.hidden[0], self.hidden[-1]

        def numbers(families: Sequence[Family]) -> float:
            """Weights of these pathway blocks."""
            total = 0.0
            for size, hidden in ((family.size, family.hidden) for family in families):
                ends = inputs * hidden[0] + hidden[-1] * outputs
                between = chain_weights(hidden, sizes) - ends
                total += (domains / size) ** 2 * (size * ends + between)
            return total

        weights = numbers(self.families(domains))
        if not isinstance(dataset, ImageDomainDataset):
            families = self.trained_families(domains, (inputs, outputs), initialiser, training)
            # the maps of all pairs through their blocks, and outputs for as many items as inputs
            through = sum(chain_weights(family.hidden, sizes) / family.size for family in families)
            wide = sum(family.hidden[-1] for family in families)
            maps = domains**2 * (through + inputs * outputs * (wide + inputs))
            return Arithmetic(weights, maps, maps, numbers(families) / weights)

        def one_image(partners: int) -> float:
            """An image in all input domains, with some output domains for each."""
            return float(domains * (inputs * first + partners * last * outputs))

        tested = dataset.held_out_count * one_image(domains)
        if training.batch.whole:
            # products of encoders with each other and with the classes, and their sums over pairs
            moments = float(domains * first * (inputs * (first + outputs) + domains * first))
            return Arithmetic(weights, tested + moments, moments)
        image = one_image(self.partners(domains))
        return Arithmetic(
            weights, tested + samples * image, training.batch.samples(samples) * image
        )
