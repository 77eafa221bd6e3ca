"""Training of routing networks, on items of domains or on images."""

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
from neuralrace.networks.modules.routing import RoutingNetwork, Subspace, stacked
from neuralrace.networks.routing import Routing
from neuralrace.networks.subspace import narrow
from neuralrace.training.settings import Training
from neuralrace.training.task import Task

OUTPUTS_AT_ONCE = 2**22
"""Most outputs that exist at once, where a loss or a score is computed over all images."""
IMAGES_AT_ONCE = 512
"""Most images that are processed at once; more are no faster."""

ImageBatch = tuple[Float[Array, "domain image input"], Int[Array, "output_domain image"]]
"""Images in all input domains, and their classes by the names of all output domains."""


class DomainTask(Task):
    """A routing network between equally many input and output domains."""

    def __init__(
        self,
        network: Routing,
        initialiser: Initialiser,
        domains: Domains | ImageDomains,
        items: int,
    ):
        self.spec, self.initialiser, self.count = network, initialiser, domains.count
        self.families = network.families(domains.count)
        self.samples = int(network.mask(domains.count, 0).sum()) * items

    @abstractmethod
    def pair_errors(
        self, network: RoutingNetwork, data: Mapping[str, Any]
    ) -> Float[Array, "input_domain output_domain"]:
        """Squared error of every pair, relative to a network with output zero."""

    def network(self, weights: Any) -> RoutingNetwork:
        """See `Task.network`."""
        return RoutingNetwork(weights, self.spec.activation)

    def per_run(self, seeds: Sequence[int]) -> dict[str, np.ndarray]:
        """The trained pairs of each run.

        Returns:
            `mask`: 1 where a pair is trained; `share`: weight of each pair in the loss.
        """
        masks = [self.spec.mask(self.count, seed) for seed in seeds]
        trained = np.stack(masks).astype(float)
        return {"mask": trained, "share": trained / trained.sum(axis=(1, 2), keepdims=True)}

    def _initial(
        self,
        widths: tuple[int, int],
        domains: Callable[[], Domains],
        scales: Sequence[float],
        seeds: Sequence[int],
    ) -> Any:
        """Initial weights; see `Routing.initial_between`."""
        edges = self.spec.initial_between(
            self.count, widths, domains, self.initialiser, scales, seeds
        )
        return stacked(edges, self.families, self.count)


class RoutingTask(DomainTask):
    """A linear routing network on its trained pairs of domains, see `domain_moments`.

    Blocks that start from orthogonal matrices, or have one hidden layer, are trained by linear
    optimisers in a subspace of their hidden units that descent never leaves: the result is that of
    all units, up to rounding (see `neuralrace.networks.subspace`).
    """

    def __init__(
        self, network: Routing, domains: Domains, initialiser: Initialiser, training: Training
    ):
        """Computes the correlations of the domains."""
        self.domains = domains
        super().__init__(network, initialiser, domains, domains.inputs.shape[1])
        self.widths = domains.inputs.shape[2], domains.targets.shape[2]
        trained = network.trained_families(domains.count, self.widths, initialiser, training)
        pairs = list(zip(trained, self.families, strict=True))
        self.narrowed = [one != whole for one, whole in pairs]
        if any(self.narrowed):
            self.trained_width = "a subspace that gradient descent never leaves: " + ", ".join(
                f"{one.hidden[0]} of {whole.hidden[0]} units of blocks of size {whole.size}"
                for one, whole in pairs
            )
        u, _, vt = np.linalg.svd(domains.sigma_yx, full_matrices=False)
        self.arrays = {
            "inputs": domains.inputs,
            "targets": domains.targets,
            "u": u,
            "v": np.swapaxes(vt, -1, -2),
            "y_power": domains.y_power,
            "loss": domain_moments(domains),
        }

    def weights(self, scales: Sequence[float], seeds: Sequence[int]) -> Any:
        """See `Task.weights`: by family, and the subspace of the first block, if there is one."""
        families = self._initial(self.widths, lambda: self.domains, scales, seeds)
        subspace: list[Any] = []
        for number in np.flatnonzero(self.narrowed):
            inside = narrow(families[number])
            families[number] = inside.weights
            if number == 0:
                first = lambda arrays: [array[:, :, 0, 0] for array in arrays]  # noqa: E731
                subspace = [first(inside.bases), first(inside.outside)]
        return families, subspace

    def network(self, weights: Any) -> RoutingNetwork:
        """See `Task.network`."""
        families, subspace = weights
        within = Subspace(*subspace) if subspace else None
        return RoutingNetwork(families, self.spec.activation, within)

    def loss(self, network: Any, batch: Any, per_run: Mapping[str, Array]) -> Array:
        """See `Task.loss`."""
        items, targets, constant = batch
        errors = squared_errors(network.outputs(items), targets, constant)
        return 0.5 * jnp.sum(per_run["share"] * errors)

    def whole_loss(
        self, network: Any, data: Mapping[str, Any], per_run: Mapping[str, Array]
    ) -> Array:
        """See `Task.whole_loss`; from maps, as records compute these once for all observables."""
        return 0.5 * jnp.sum(per_run["share"] * self._errors(network, data))

    def pair_errors(
        self, network: RoutingNetwork, data: Mapping[str, Any]
    ) -> Float[Array, "input_domain output_domain"]:
        """See `DomainTask.pair_errors`."""
        return self._errors(network, data) / data["y_power"][None]

    def _errors(
        self, network: RoutingNetwork, data: Mapping[str, Any]
    ) -> Float[Array, "input_domain output_domain"]:
        items, targets, constant = data["loss"]
        outputs = jnp.einsum("inx,ijyx->injy", items, network.maps())
        return squared_errors(outputs, targets, constant)


class ImageTask(DomainTask):
    """A routing network on transformed images.

    Squared error of a linear network on all images depends on their second moments alone: a step
    costs the same for any number of images. Such a network is trained along the eigenvectors of the
    input correlation of each domain, where inputs do not correlate; linear optimisers commute with
    this change of axes. Other networks are trained on mini-batches: the same images in all input
    domains, each with all its trained output domains.
    """

    def __init__(
        self, network: Routing, domains: ImageDomains, initialiser: Initialiser, training: Training
    ):
        """Loads the images."""
        self.domains = domains
        super().__init__(network, initialiser, domains, domains.items)
        self.on_moments = network.on_moments(training)
        self.sample_loss = training.loss.per_sample
        self.arrays = dict(domains.arrays())
        if self.on_moments:
            variance, axes = domains.moments.modes
            self.arrays["axes"] = axes
            self.arrays["loss"] = domains.moments.sigma_yx @ axes, variance, domains.class_order

    @property
    def items(self) -> int:
        """Number of images; each is used in all input domains at once."""
        return self.domains.items

    def per_run(self, seeds: Sequence[int]) -> dict[str, np.ndarray]:
        """See `DomainTask.per_run`; for batches of images, also `partners`.

        They are the output domains that each input domain is trained with, (seed, domain, partner).
        """
        arrays = super().per_run(seeds)
        if not self.on_moments:  # cells with other numbers of pairs share a program on moments
            partners = np.nonzero(arrays["mask"])[2]
            arrays["partners"] = partners.reshape(len(seeds), self.count, -1)
        return arrays

    def weights(self, scales: Sequence[float], seeds: Sequence[int]) -> Any:
        """See `Task.weights`; on moments, encoders are along the eigenvectors of their domain."""
        widths = self.domains.inputs, self.domains.outputs
        weights = self._initial(widths, self.domains.in_memory, scales, seeds)
        if self.on_moments:
            ((encoder, *others),) = weights
            return [[encoder @ self.arrays["axes"], *others]]
        return weights

    def batch(self, data: Mapping[str, Any], numbers: Int[Array, " size"]) -> ImageBatch:
        """See `Task.batch`."""
        return self._batch(data, data["pixels"][numbers], data["labels"][numbers])

    def loss(self, network: Any, batch: Any, per_run: Mapping[str, Array]) -> Array:
        """See `Task.loss`."""
        if self.on_moments:
            return moment_loss(network, per_run["share"], *batch)
        losses = self._losses(network, batch, per_run["partners"])
        # without the barrier, sums over classes are merged into one over all, entry by entry
        return jnp.mean(jax.lax.optimization_barrier(losses))

    def whole_loss(
        self, network: Any, data: Mapping[str, Any], per_run: Mapping[str, Array]
    ) -> Array:
        """See `Task.whole_loss`."""
        if self.on_moments:
            return self.loss(network, data["loss"], per_run)
        losses = lambda batch: self._losses(network, batch, per_run["partners"])  # noqa: E731
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
        """Relative squared error and accuracy of every pair on the held-out images."""
        if self.on_moments:  # from the eigenvectors of each domain back to its pixels
            encoder, *others = network.families[0].weights
            on_pixels = jnp.einsum("rcdhk,dxk->rcdhx", encoder, data["axes"])
            network = self.network([[on_pixels, *others]])
        return self._over_images(data, "held_out_", lambda batch: _answers(network, batch))

    def _batch(self, data: Mapping[str, Any], pixels: Array, labels: Array) -> ImageBatch:
        return self.domains.network_inputs(data, pixels), data["class_order"][:, labels]

    def _losses(
        self, network: RoutingNetwork, batch: ImageBatch, partners: Int[Array, "domain partner"]
    ) -> Float[Array, "domain partner image"]:
        """Loss of every image in every trained pair.

        Images come last: there are more of them than classes, and they are processed in vectors.
        """
        inputs, classes = batch
        decoder = network.weights[-1][partners]
        outputs = jnp.einsum("dkyh,dnh->dkyn", decoder, network.hidden(inputs))
        targets = jax.nn.one_hot(classes, outputs.shape[2], dtype=outputs.dtype, axis=1)
        return self.sample_loss(outputs, targets[partners], axis=2)

    def _over_images(
        self, data: Mapping[str, Any], prefix: str, score: Callable[[ImageBatch], Any]
    ) -> Any:
        """Means over all images of scores whose last axis is the image.

        Images are processed in parts, as inputs and outputs of all at once would not fit into
        memory. The last part is filled up with images that do not count.

        Args:
            data: arrays that all runs share.
            prefix: of the names of the arrays: none for training images, or `held_out_`.
            score: scores of a batch.
        """
        pixels, labels = data[f"{prefix}pixels"], data[f"{prefix}labels"]
        images, outputs = len(labels), self.count**2 * self.domains.outputs
        size = min(max(OUTPUTS_AT_ONCE // outputs, 1), IMAGES_AT_ONCE, images)
        number = jnp.reshape(jnp.arange(-(-images // size) * size), (-1, size))

        def scores(number: Int[Array, " size"]) -> Any:
            index = number % images
            return score(self._batch(data, pixels[index], labels[index]))

        def add(totals: Any, number: Int[Array, " size"]) -> tuple[Any, None]:
            def add_one(total: Array, new: Array) -> Array:
                counts = jnp.expand_dims(number < images, range(new.ndim - 1))
                return total + jnp.sum(jnp.where(counts, new, 0), axis=-1)

            return jax.tree.map(add_one, totals, scores(number)), None

        shapes = jax.eval_shape(scores, number[0])
        zeros = jax.tree.map(lambda score: jnp.zeros(score.shape[:-1], score.dtype), shapes)
        totals, _ = jax.lax.scan(add, zeros, number)
        return jax.tree.map(lambda total: total / images, totals)


def domain_moments(
    domains: Domains,
) -> tuple[
    Float[np.ndarray, "domain item input"],
    Float[np.ndarray, "domain item output_domain output"],
    Float[np.ndarray, "domain output_domain"],
]:
    """At most as many items as inputs, with the same squared errors of every linear network.

    Let Q R be the inputs of an input domain. The items are the rows of R, and their targets Q^T Y.
    What Q does not reach of the targets Y of a pair is a constant part of its squared error.

    Returns:
        The items, their targets, and the constant part of every pair.
    """
    q, r = np.linalg.qr(domains.inputs / np.sqrt(domains.inputs.shape[1]))
    targets = np.einsum("ink,jny->ikjy", q, domains.targets / np.sqrt(domains.inputs.shape[1]))
    return r, targets, domains.y_power - (targets**2).sum(axis=(1, 3))


def squared_errors(
    outputs: Float[Array, "domain item output_domain output"],
    targets: Float[Array, "domain item output_domain output"],
    constant: Float[Array, "domain output_domain"],
) -> Float[Array, "domain output_domain"]:
    """<|y - F x|^2> of every pair of domains, from outputs on the items of `domain_moments`."""
    return constant + jnp.sum((outputs - targets) ** 2, axis=(1, 3))


def moment_loss(
    network: RoutingNetwork,
    share: Float[Array, "input_domain output_domain"],
    sigma_yx: Float[Array, "domain class mode"],
    variance: Float[Array, "domain mode"],
    class_order: Int[Array, "output_domain class"],
) -> Float[Array, ""]:
    """Half the squared error over pairs of domains, weighted by their shares.

    Let W_i be the encoder of input domain i along the eigenvectors of its input correlation, D_i
    the eigenvalues, and V_j the weights from the first hidden layer to output domain j, rows
    ordered by class. The error of a pair is
    1 - 2 <V_j, sigma_yx_i W_i^T> + <V_j^T V_j, W_i D_i W_i^T>. It is linear in V_j and V_j^T V_j,
    so sums over j come first. A step costs O(M N_h^2 N_x + M^2 N_h^2) for any number of images and
    trained pairs.
    """
    encoder, decoder = _two_layers(network, class_order)
    return _two_layer_loss(encoder, decoder, share, sigma_yx, variance)


def moment_errors(
    network: RoutingNetwork,
    sigma_yx: Float[Array, "domain class mode"],
    variance: Float[Array, "domain mode"],
    class_order: Int[Array, "output_domain class"],
) -> Float[Array, "input_domain output_domain"]:
    """Squared error of every pair of domains; see `moment_loss`."""
    encoder, decoder = _two_layers(network, class_order)
    cross, gram = _hidden_moments(encoder, encoder * variance[:, None], sigma_yx)
    squares = jnp.einsum("jch,jcg->jhg", decoder, decoder)
    return (
        1 - 2 * jnp.einsum("jch,ich->ij", decoder, cross) + jnp.einsum("jhg,ihg->ij", squares, gram)
    )


def _two_layers(
    network: RoutingNetwork, class_order: Array
) -> tuple[Float[Array, "input_domain unit mode"], Float[Array, "output_domain class unit"]]:
    """W by input domain, and V by output domain; see `moment_loss`.

    Layers above the first are multiplied into the few rows of the decoders, not into the many
    columns of the encoders.
    """
    encoder, *between, decoder = network.weights
    by_class = jnp.take_along_axis(decoder, class_order[..., None], axis=1)
    decoder = reduce(
        lambda above, below: jnp.einsum("jcg,gh->jch", above, below), reversed(between), by_class
    )
    return encoder, decoder


def _hidden_moments(
    encoder: Array, weighted: Array, sigma_yx: Array
) -> tuple[Float[Array, "domain class unit"], Float[Array, "domain unit unit"]]:
    """sigma_yx W^T and W D W^T by input domain, from W and W D; see `moment_loss`."""
    cross = jnp.einsum("dcx,dhx->dch", sigma_yx, encoder)
    return cross, jnp.einsum("dhx,dgx->dhg", weighted, encoder)


@jax.custom_vjp
def _two_layer_loss(
    encoder: Array, decoder: Array, share: Array, sigma_yx: Array, variance: Array
) -> Float[Array, ""]:
    """`moment_loss` of W and V."""
    return _loss_and_gradient(encoder, decoder, share, sigma_yx, variance)[0]


def _loss_and_gradient(
    encoder: Array, decoder: Array, share: Array, sigma_yx: Array, variance: Array
) -> tuple[Float[Array, ""], tuple[Array, Array]]:
    """`moment_loss` of W and V, and its gradient.

    The gradient is written out: automatic differentiation multiplies the same matrices in shapes
    that take half as long again.
    """

    def transposed(matrix: Array) -> Array:
        # a copy, which the compiler would merge into a product with a transposed left factor: that
        # takes twice as long
        return jax.lax.optimization_barrier(jnp.swapaxes(matrix, -1, -2))

    weighted = encoder * variance[:, None]
    cross, gram = _hidden_moments(encoder, weighted, sigma_yx)
    partners = transposed(share)
    crosses = jnp.einsum("ji,ich->jch", partners, cross)
    grams = jnp.einsum("ji,ihg->jhg", partners, gram)
    to_decoder = jnp.einsum("jch,jhg->jcg", decoder, grams) - crosses
    loss = 0.5 * (jnp.sum(share) + jnp.sum(decoder * (to_decoder - crosses)))
    squares = jnp.einsum("jhc,jcg->jhg", transposed(decoder), decoder)
    answers = jnp.einsum("ij,jch->ich", share, decoder)
    to_encoder = jnp.einsum(
        "ihg,igx->ihx", jnp.einsum("ij,jhg->ihg", share, squares), weighted
    ) - jnp.einsum("ich,icx->ihx", answers, sigma_yx)
    return loss, (to_encoder, to_decoder)


def _backward(
    gradient: tuple[Array, Array], cotangent: Array
) -> tuple[Array, Array, None, None, None]:
    """The gradient of what is made from the loss; moments and shares are not trained."""
    to_encoder, to_decoder = gradient
    return cotangent * to_encoder, cotangent * to_decoder, None, None, None


_two_layer_loss.defvjp(_loss_and_gradient, _backward)


def _answers(
    network: RoutingNetwork, batch: ImageBatch
) -> tuple[
    Float[Array, "input_domain output_domain image"],
    Float[Array, "input_domain output_domain image"],
]:
    """Squared error of every image in every pair of domains, and 1 where its class is correct."""
    inputs, classes = batch
    outputs = jnp.einsum("jyh,inh->ijyn", network.weights[-1], network.hidden(inputs))
    targets = jax.nn.one_hot(classes, outputs.shape[2], dtype=outputs.dtype, axis=1)
    hits = jnp.argmax(outputs, axis=2).astype(classes.dtype) == classes[None]
    return jnp.sum((targets[None] - outputs) ** 2, axis=2), hits.astype(outputs.dtype)
