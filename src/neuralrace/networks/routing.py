"""Pathway blocks between domains."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Union

import numpy as np
from pydantic import Field

from neuralrace.datasets.base import Dataset, DomainDataset, Domains, Sizes
from neuralrace.datasets.image_domains import ImageDomainDataset, image_domains
from neuralrace.errors import UserError
from neuralrace.extensions.registry import choices
from neuralrace.networks.base import Arithmetic, Network, layers_in_a_row
from neuralrace.networks.gates import wiring
from neuralrace.networks.gates.base import DomainScheme, Family, Pairs
from neuralrace.networks.gates.effective import EffectiveData
from neuralrace.networks.gates.wiring import Wiring
from neuralrace.networks.initial_weights import initial_edges
from neuralrace.networks.initialisers.base import Initialiser, Weights
from neuralrace.training.settings import Training

if TYPE_CHECKING:
    from neuralrace.training.task import Task

DOMAIN_SCHEMES = choices("gates", DomainScheme)
PAIRS = choices("gates", Pairs)


class Routing(Network):
    """From every input domain to every output domain, through pathway blocks that they share."""

    by_domain: ClassVar[bool] = True
    name: Literal["routing"]
    hidden: Annotated[tuple[Annotated[int, Field(gt=0)], ...], Field(min_length=1)]
    """Units in each hidden layer of a block."""
    gates: Annotated[Union[DOMAIN_SCHEMES], Field(discriminator="name")]  # pyright: ignore  # noqa: UP007
    """Which pairs of domains share a block."""
    pairs: Annotated[Union[PAIRS], Field(discriminator="name")]  # pyright: ignore  # noqa: UP007
    """Which pairs of domains are trained; the others are never seen."""
    activation: Literal["linear", "relu"] = "linear"
    """Activation of the hidden layers; relu is for transformed_images."""

    @property
    def linear(self) -> bool:
        """See `Network.linear`."""
        return self.activation == "linear"

    def on_moments(self, training: Training) -> bool:
        """Whether it is trained on second moments of images alone."""
        return self.linear and training.on_moments

    def families(self, count: int) -> tuple[Family, ...]:
        """The pathway blocks between this many domains, by families of one size.

        Raises:
            UserError: the domains cannot be divided so.
        """
        try:
            return self.gates.families(count, self.hidden)
        except ValueError as error:
            raise UserError(f"network.{error}") from error

    def partners(self, count: int) -> int:
        """Output domains that each of this many input domains is trained with.

        Raises:
            UserError: more partners than domains.
        """
        try:
            return self.pairs.count(count)
        except ValueError as error:
            raise UserError(f"network.{error}") from error

    def mask(self, count: int, seed: int) -> np.ndarray:
        """Trained pairs of a run between this many domains, bool (input domain, output domain).

        Raises:
            UserError: more partners than domains.
        """
        try:
            return self.pairs.mask(count, seed)
        except ValueError as error:
            raise UserError(f"network.{error}") from error

    def wiring(self, domains: Domains, seed: int = 0) -> Wiring:
        """The graph with its gates on the samples of the pairs that a seed is trained on.

        Raises:
            UserError: the domains do not fit the blocks or the pairs.
        """
        count = domains.count
        return wiring.routing(domains, self.families(count), self.mask(count, seed))

    def effective(self, domains: Domains) -> Callable[[int], EffectiveData]:
        """What the pathways of each run seed learn from, worked out once for each mask."""
        masks = cache(lambda seed: self.wiring(domains, seed).effective)
        return lambda seed: masks(seed if self.pairs.varies else 0)

    def task(self, dataset: Any, law: Initialiser, training: Training) -> "Task":
        """See `Network.task`."""
        from neuralrace.networks.tasks.domains import ImageTask, RoutingTask

        if isinstance(dataset, ImageDomainDataset):
            return ImageTask(self, image_domains(dataset), law, training)  # pyright: ignore
        return RoutingTask(self, self.view(dataset), law, training)

    def view(self, dataset: Any) -> Domains:
        """See `Network.view`."""
        return dataset.domains()

    def check(self, dataset: Dataset, training: Training) -> None:
        """See `Network.check`: images by domain are one matter, correlations of domains another."""
        if isinstance(dataset, ImageDomainDataset):
            self._check_images(training)
        else:
            super().check(dataset, training)
            self._check_correlations(dataset, training)

    def _check_images(self, training: Training) -> None:
        if self.gates.name != "always_on":
            raise ValueError(
                f"network.gates.name: {self.gates.name!r}: images are routed through one "
                "shared pathway block; use always_on"
            )
        if training.batch.whole and not self.on_moments(training):
            raise ValueError(
                "training.batch.name: 'full': only a linear network with squared error sees all "
                "images at once, through their correlations; use mini"
            )
        if training.batch.whole and not training.optimiser.is_linear:
            raise ValueError(
                f"training.optimiser.name: {training.optimiser.name!r}: all images at once are "
                "learned along axes of their own, which sgd and momentum do not feel; use one of "
                "these, or training.batch.name: mini"
            )

    def _check_correlations(self, dataset: Any, training: Training) -> None:
        if not isinstance(dataset, DomainDataset):
            raise ValueError(
                f"network.name: 'routing': dataset {dataset.name!r} has no domains; use "
                "one that has, such as routing"
            )
        if not self.linear:
            raise ValueError(
                f"network.activation: {self.activation!r}: dataset {dataset.name!r} is "
                "learned from correlations, as linear networks can; use linear"
            )
        if not training.loss.squared:
            raise ValueError(
                f"training.loss.name: {training.loss.name!r}: a routing network is "
                "trained on correlations; use squared_error"
            )

    def initial(
        self, law: Initialiser, seen: Domains, scales: Sequence[float], seeds: Sequence[int]
    ) -> Weights:
        """See `Network.initial`."""
        widths = seen.inputs.shape[2], seen.targets.shape[2]
        return self.initial_between(seen.count, widths, lambda: seen, law, scales, seeds)

    def initial_between(
        self,
        count: int,
        widths: tuple[int, int],
        domains: Callable[[], Domains],
        law: Initialiser,
        scales: Sequence[float],
        seeds: Sequence[int],
    ) -> Weights:
        """As `initial`, where the domains take long to make: only some laws ask for their modes.

        Args:
            count: how many input domains there are, and output domains.
            widths: units of an input and of an output domain.
            domains: makes the domains.
            law: how to draw.
            scales: init scales.
            seeds: run seeds.
        """
        effective = cache(lambda: self.effective(domains()))
        graph = wiring.routing_architecture(count, *widths, self.families(count))
        return initial_edges(law, graph, lambda seed: effective()(seed), scales, seeds)

    def arithmetic(self, dataset: Any, sizes: Sizes, training: Training) -> Arithmetic:
        """See `Network.arithmetic`."""
        (samples, inputs, outputs), domains = sizes, dataset.count
        first, last = self.hidden[0], self.hidden[-1]
        families = self.families(domains)
        weights = 0.0
        for size, hidden in ((family.size, family.hidden) for family in families):
            ends = inputs * hidden[0] + hidden[-1] * outputs
            between = layers_in_a_row(hidden, sizes) - ends
            weights += (domains / size) ** 2 * (size * ends + between)
        if not isinstance(dataset, ImageDomainDataset):
            # maps of all pairs through their blocks, and products with their correlations
            through = sum(layers_in_a_row(each.hidden, sizes) / each.size for each in families)
            wide = sum(family.hidden[-1] for family in families)
            maps = domains**2 * (through + inputs * outputs * (wide + inputs))
            return Arithmetic(weights, maps, maps)

        def shown(partners: int) -> float:
            """One image, in all input domains and some output domains of each."""
            return float(domains * (inputs * first + partners * last * outputs))

        tested = dataset.tested * shown(domains)
        if training.batch.whole:
            # encoders against each other and the classes; sums over pairs of what is left of these
            moments = float(domains * first * (inputs * (first + outputs) + domains * first))
            return Arithmetic(weights, tested + moments, moments)
        image = shown(self.partners(domains))
        return Arithmetic(
            weights, tested + samples * image, training.batch.samples(samples) * image
        )
