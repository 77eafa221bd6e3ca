"""Networks that route input domains to output domains."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from neuralrace.datasets import Domains
from neuralrace.datasets.image_domains import ImageDomains
from neuralrace.networks.initialisers.base import Initialiser
from neuralrace.networks.modules.routing import RoutingNetwork, stacked
from neuralrace.networks.routing import Routing
from neuralrace.training.losses import LOSSES
from neuralrace.training.settings import Training
from neuralrace.training.task import Task

# Outputs that are held at once where a loss or a score goes through all images.
OUTPUTS_AT_ONCE = 2**22
# Images that go by at once at most: more of them gain nothing.
IMAGES_AT_ONCE = 512

ImageBatch = tuple[Float[Array, "domain image input"], Int[Array, "output_domain image"]]
"""Images as all input domains show them, and their classes as all output domains name them."""


class DomainTask(Task):
    """A routing network between equally many input and output domains."""

    def __init__(
        self, network: Routing, law: Initialiser, domains: Domains | ImageDomains, items: int
    ):
        self.spec, self.law, self.count = network, law, domains.count
        self.families = network.families(domains.count)
        self.samples = int(network.mask(domains.count, 0).sum()) * items

    @abstractmethod
    def pair_errors(
        self, network: RoutingNetwork, data: Mapping[str, Any]
    ) -> Float[Array, "input_domain output_domain"]:
        """Squared error of every pair, relative to that of a network that answers zero."""

    def network(self, weights: Any) -> RoutingNetwork:
        """See `Task.network`."""
        return RoutingNetwork(weights, self.spec.activation)

    def own(self, seeds: Sequence[int]) -> dict[str, np.ndarray]:
        """The trained pairs of each run.

        `mask` is 1 where a pair is trained, `share` what it has in the loss, and `partners` lists
        the output domains that each input domain is trained with.
        """
        masks = np.stack([self.spec.mask(self.count, seed) for seed in seeds])
        trained = masks.astype(float)
        return {
            "mask": trained,
            "share": trained / trained.sum(axis=(1, 2), keepdims=True),
            "partners": np.nonzero(masks)[2].reshape(len(masks), self.count, -1),
        }

    def _initial(
        self,
        widths: tuple[int, int],
        domains: Callable[[], Domains],
        scales: Sequence[float],
        seeds: Sequence[int],
    ) -> Any:
        """Initial weights; see `Routing.initial_between`."""
        edges = self.spec.initial_between(self.count, widths, domains, self.law, scales, seeds)
        return stacked(edges, self.families, self.count)


class RoutingTask(DomainTask):
    """A linear routing network on the correlations of its trained pairs of domains."""

    def __init__(self, network: Routing, domains: Domains, law: Initialiser, training: Training):
        """Prepares the correlations of the domains."""
        self.domains = domains
        super().__init__(network, law, domains, domains.inputs.shape[1])
        u, _, vt = np.linalg.svd(domains.sigma_yx, full_matrices=False)
        self.arrays = {
            "inputs": domains.inputs,
            "targets": domains.targets,
            "u": u,
            "v": np.swapaxes(vt, -1, -2),
            "loss": (domains.sigma_yx, domains.sigma_xx, domains.y_power),
        }

    def weights(self, scales: Sequence[float], seeds: Sequence[int]) -> Any:
        """See `Task.weights`."""
        widths = self.domains.inputs.shape[2], self.domains.targets.shape[2]
        return self._initial(widths, lambda: self.domains, scales, seeds)

    def loss(self, network: Any, batch: Any, own: Mapping[str, Array]) -> Array:
        """See `Task.loss`."""
        return 0.5 * jnp.sum(own["share"] * squared_errors(network.maps(), *batch))

    def pair_errors(
        self, network: RoutingNetwork, data: Mapping[str, Any]
    ) -> Float[Array, "input_domain output_domain"]:
        """See `DomainTask.pair_errors`."""
        y_power = data["loss"][-1]
        return squared_errors(network.maps(), *data["loss"]) / y_power[None]


class ImageTask(DomainTask):
    """A routing network on transformed images.

    A linear network with squared error on all images sees their second moments alone, so that a
    step costs the same for any number of them. It is trained along the eigenvectors of the input
    correlation of each domain: there inputs do not correlate, and descent commutes with the change
    of axes. Any other network is shown mini-batches: the same images in all input domains, and for
    each all output domains that are trained with it.
    """

    def __init__(
        self, network: Routing, domains: ImageDomains, law: Initialiser, training: Training
    ):
        """Prepares the images."""
        self.domains = domains
        super().__init__(network, law, domains, domains.items)
        self.on_moments = network.on_moments(training)
        self.sample_loss = LOSSES[training.loss.name]
        self.arrays = dict(domains.arrays())
        if self.on_moments:
            variance, axes = domains.moments.modes
            self.arrays["axes"] = axes
            self.arrays["loss"] = domains.moments.sigma_yx @ axes, variance, domains.renamed

    @property
    def items(self) -> int:
        """Images; each is shown in all input domains at once."""
        return self.domains.items

    def weights(self, scales: Sequence[float], seeds: Sequence[int]) -> Any:
        """See `Task.weights`; on moments, encoders are along the eigenvectors of their domain."""
        widths = self.domains.inputs, self.domains.outputs
        weights = self._initial(widths, self.domains.spelled_out, scales, seeds)
        if self.on_moments:
            ((encoder, *others),) = weights
            return [[encoder @ self.arrays["axes"], *others]]
        return weights

    def batch(self, data: Mapping[str, Any], chosen: Int[Array, " size"]) -> ImageBatch:
        """See `Task.batch`."""
        return self._batch(data, data["pixels"][chosen], data["labels"][chosen])

    def loss(self, network: Any, batch: Any, own: Mapping[str, Array]) -> Array:
        """See `Task.loss`."""
        if self.on_moments:
            return moment_loss(network, own["share"], *batch)
        return jnp.mean(self._losses(network, batch, own["partners"]))

    def whole_loss(self, network: Any, data: Mapping[str, Any], own: Mapping[str, Array]) -> Array:
        """See `Task.whole_loss`."""
        if self.on_moments:
            return self.loss(network, data["loss"], own)
        losses = lambda batch: self._losses(network, batch, own["partners"])  # noqa: E731
        return jnp.mean(self._over_images(data, "", losses))

    def pair_errors(
        self, network: RoutingNetwork, data: Mapping[str, Any]
    ) -> Float[Array, "input_domain output_domain"]:
        """See `DomainTask.pair_errors`; targets are one-hot, of power 1."""
        if self.on_moments:
            return moment_errors(network, *data["loss"])
        return self._over_images(data, "", lambda batch: _answers(network, batch)[0])

    def held_out(
        self, network: RoutingNetwork, data: Mapping[str, Any]
    ) -> tuple[
        Float[Array, "input_domain output_domain"], Float[Array, "input_domain output_domain"]
    ]:
        """Relative squared error, and accuracy, of every pair on the held-out images."""
        if self.on_moments:
            encoder, *others = network.families[0].weights
            turned_back = jnp.einsum("rcdhk,dxk->rcdhx", encoder, data["axes"])
            network = self.network([[turned_back, *others]])
        return self._over_images(data, "held_out_", lambda batch: _answers(network, batch))

    def _batch(self, data: Mapping[str, Any], pixels: Array, labels: Array) -> ImageBatch:
        return self.domains.show(data, pixels), data["renamed"][:, labels]

    def _losses(
        self, network: RoutingNetwork, batch: ImageBatch, partners: Int[Array, "domain partner"]
    ) -> Float[Array, "domain partner image"]:
        """Loss of every image in every trained pair."""
        inputs, classes = batch
        decoder = network.weights[-1][partners]
        outputs = jnp.einsum("dkyh,dnh->dkny", decoder, network.hidden(inputs))
        asked = jax.nn.one_hot(classes, outputs.shape[-1], dtype=outputs.dtype)
        return self.sample_loss(outputs, asked[partners])

    def _over_images(
        self, data: Mapping[str, Any], which: str, score: Callable[[ImageBatch], Any]
    ) -> Any:
        """Means over all images of scores whose last axis is the image.

        Images go by in parts: inputs and outputs of all of them at once would not fit.
        """
        pixels, labels = data[f"{which}pixels"], data[f"{which}labels"]
        images, outputs = len(labels), self.count**2 * self.domains.outputs
        size = min(max(OUTPUTS_AT_ONCE // outputs, 1), IMAGES_AT_ONCE, images)
        number = jnp.reshape(jnp.arange(-(-images // size) * size), (-1, size))

        def scores(number: Int[Array, " size"]) -> Any:
            chosen = number % images
            return score(self._batch(data, pixels[chosen], labels[chosen]))

        def add(total: Any, number: Int[Array, " size"]) -> tuple[Any, None]:
            def grown(sum_: Array, new: Array) -> Array:
                counts = jnp.expand_dims(number < images, range(new.ndim - 1))
                return sum_ + jnp.sum(jnp.where(counts, new, 0), axis=-1)

            return jax.tree.map(grown, total, scores(number)), None

        shapes = jax.eval_shape(scores, number[0])
        nothing = jax.tree.map(lambda score: jnp.zeros(score.shape[:-1], score.dtype), shapes)
        total, _ = jax.lax.scan(add, nothing, number)
        return jax.tree.map(lambda sum_: sum_ / images, total)


def squared_errors(maps: Array, sigma_yx: Array, sigma_xx: Array, y_power: Array) -> Array:
    """<|y - F x|^2> of every pair of domains, from correlations alone: (input, output) domain."""
    products = jnp.einsum("ijyx,ixz->ijyz", maps, sigma_xx)
    return y_power[None] + jnp.sum(maps * (products - 2 * sigma_yx), axis=(-2, -1))


def moment_loss(
    network: RoutingNetwork,
    share: Float[Array, "input_domain output_domain"],
    sigma_yx: Float[Array, "domain class mode"],
    variance: Float[Array, "domain mode"],
    renamed: Int[Array, "output_domain class"],
) -> Float[Array, ""]:
    """Half the squared error over pairs of domains, weighted by their shares.

    Pairs never appear one by one. With W_i the encoder of input domain i along the eigenvectors of
    its input correlation, D_i, and V_j the weights from the first hidden layer to output domain j,
    its classes under their own names, the error of a pair is
    1 - 2 <V_j, sigma_yx_i W_i^T> + <V_j^T V_j, W_i D_i W_i^T>: linear in what is known of V_j, so
    that sums over j come first. A step costs O(M N_h^2 N_x + M^2 N_h^2) for any number of images
    and of trained pairs.
    """
    cross, gram, decoder = _moment_parts(network, sigma_yx, variance, renamed)
    answers = jnp.einsum("ij,jch->ich", share, decoder)
    squares = jnp.einsum("ij,jhg->ihg", share, jnp.einsum("jch,jcg->jhg", decoder, decoder))
    # `gram` is linear in W_i (see `_moment_parts`): twice it less itself held fixed has its value,
    # and the derivative of the quadratic form
    quadratic = 2 * jnp.sum(squares * gram) - jnp.sum(squares * jax.lax.stop_gradient(gram))
    return 0.5 * (jnp.sum(share) - 2 * jnp.sum(answers * cross) + quadratic)


def moment_errors(
    network: RoutingNetwork,
    sigma_yx: Float[Array, "domain class mode"],
    variance: Float[Array, "domain mode"],
    renamed: Int[Array, "output_domain class"],
) -> Float[Array, "input_domain output_domain"]:
    """Squared error of every pair of domains; see `moment_loss`."""
    cross, gram, decoder = _moment_parts(network, sigma_yx, variance, renamed)
    squares = jnp.einsum("jch,jcg->jhg", decoder, decoder)
    return (
        1 - 2 * jnp.einsum("jch,ich->ij", decoder, cross) + jnp.einsum("jhg,ihg->ij", squares, gram)
    )


def _moment_parts(
    network: RoutingNetwork, sigma_yx: Array, variance: Array, renamed: Array
) -> tuple[
    Float[Array, "domain class unit"],
    Float[Array, "domain unit unit"],
    Float[Array, "output_domain class unit"],
]:
    """sigma_yx W^T and W D W^T by input domain; V, classes under their own names, by output domain.

    All are of the first hidden layer: layers above are taken together with the few rows of the
    decoders, not with the many columns of the encoders. In the second, W D counts as constant
    under differentiation: both factors have the same derivative.
    """
    encoder, *between, decoder = network.weights
    named = jnp.take_along_axis(decoder, renamed[..., None], axis=1)
    decoder = reduce(
        lambda above, below: jnp.einsum("jcg,gh->jch", above, below), reversed(between), named
    )
    cross = jnp.einsum("dcx,dhx->dch", sigma_yx, encoder)
    constant = jax.lax.stop_gradient(encoder * variance[:, None])
    return cross, jnp.einsum("dhx,dgx->dhg", constant, encoder), decoder


def _answers(
    network: RoutingNetwork, batch: ImageBatch
) -> tuple[
    Float[Array, "input_domain output_domain image"],
    Float[Array, "input_domain output_domain image"],
]:
    """Squared error of every image in every pair of domains, and 1 where its class is told."""
    inputs, classes = batch
    outputs = jnp.einsum("jyh,inh->ijny", network.weights[-1], network.hidden(inputs))
    asked = jax.nn.one_hot(classes, outputs.shape[-1], dtype=outputs.dtype)
    hits = jnp.argmax(outputs, axis=-1).astype(classes.dtype) == classes[None]
    return jnp.sum((asked[None] - outputs) ** 2, axis=-1), hits.astype(outputs.dtype)
