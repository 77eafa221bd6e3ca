"""Transformed images: inputs by independent routes, moments against averages over images."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from idx_files import TEST_IMAGES, write_mnist
from refusals import check_refusal
from scipy.ndimage import rotate
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from neuralrace.datasets import pixel_domains
from neuralrace.datasets.base import DomainDataset
from neuralrace.datasets.digits import Digits
from neuralrace.datasets.features import RandomConvolutions
from neuralrace.datasets.image_domains import ImageDomains
from neuralrace.datasets.images import Images
from neuralrace.datasets.transformations import identities, pixel_permutations, rotations
from neuralrace.datasets.transformed_images import TransformedImages
from neuralrace.errors import UserError

COUNT, SAMPLES = 4, 300
FEATURES = {
    "pixels": {"name": "pixels"},
    "principal_components": {"name": "principal_components", "count": 7},
    "random_convolutions": {"name": "random_convolutions", "filters": 5, "size": 3, "pool": 4},
}
COLOUR = (3, 9, 9)


def make(**changes):
    images = {"name": "digits", "samples": SAMPLES}
    defaults = {"name": "transformed_images", "count": COUNT, "images": images}
    return TransformedImages.model_validate(defaults | changes)


COLOUR_FEATURES = [make(features=features).features for features in FEATURES.values()]


def colour(features, taps):
    """A few random colour images of all classes, in two domains."""
    rng = np.random.default_rng(0)

    def pixels(count):
        return rng.integers(0, 256, (count, 243)).astype(np.uint8)

    return ImageDomains(
        images=Images(pixels(40), np.arange(40) % 10, pixels(13), np.arange(13) % 7, shape=COLOUR),
        taps=taps[0],
        tap_weights=taps[1],
        class_order=np.array([np.arange(10), np.arange(10)[::-1]]),
        features=features,
    )


def turned(angle):
    """Taps of two domains: one without rotation, one with."""
    return rotations(COLOUR, np.array([0.0, angle]))


def shown(domains, pixels, precision="float64"):
    """Inputs of images in every domain, computed by JAX."""
    with jax.enable_x64(True):
        arrays = {name: jnp.asarray(value) for name, value in domains.arrays().items()}
        arrays["tap_weights"] = arrays["tap_weights"].astype(precision)
        inputs = jax.jit(domains.network_inputs)(arrays, jnp.asarray(pixels))
        assert inputs.dtype == precision
        return np.asarray(inputs)


def rotated(pixels, shape, angle):
    """Images (image, pixel) rotated by SciPy, one channel at a time."""
    channels = [
        [rotate(c, angle, reshape=False, order=1, mode="constant", cval=0) for c in image]
        for image in pixels.reshape(-1, *shape).astype(float)
    ]
    return np.array(channels).reshape(pixels.shape)


def check_moments(moments, inputs, labels):
    """Compares moments with averages over images, class by class."""
    for i, x in enumerate(inputs):
        np.testing.assert_allclose(moments.sigma_xx[i], x.T @ x / len(x), rtol=0, atol=1e-11)
        for c, row in enumerate(moments.sigma_yx[i]):
            expected = x[labels == c].sum(axis=0) / len(x)
            np.testing.assert_allclose(row, expected, rtol=0, atol=1e-12)


# Inputs -----------------------------------------------------------------------------------------


def test_digits_are_rotated_and_standardised():
    domains = make(arc=240.0).image_domains()
    raw = load_digits(return_X_y=True)[0].astype(float)
    training, held_out = raw[:SAMPLES], raw[SAMPLES : SAMPLES + 50]
    for pixels in (training, held_out):
        inputs = shown(domains, pixels.astype(np.uint8))
        assert inputs.shape == (COUNT, len(pixels), 64)
        for i, actual in enumerate(inputs):
            expected = (rotated(pixels, (1, 8, 8), 60 * i) - training.mean()) / training.std()
            np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-12)


def test_identity_gives_the_inputs_of_the_image_set():
    domains = make(inputs="identity").image_domains()
    expected = Digits(name="digits", samples=SAMPLES).load()
    np.testing.assert_allclose(domains.in_memory().inputs, [expected.x] * COUNT, atol=1e-13)


def test_colour_images_are_rotated_channel_by_channel():
    domains = colour(COLOUR_FEATURES[0], turned(33))
    raw = domains.images.pixels.astype(float)
    for angle, inputs in zip([0, 33], shown(domains, domains.images.pixels), strict=True):
        expected = (rotated(raw, COLOUR, angle) - raw.mean()) / raw.std()
        np.testing.assert_allclose(inputs, expected, rtol=0, atol=1e-12)


def test_pixel_permutation_rearranges_standardised_pixels():
    domains = make(inputs="pixel_permutation", seed=3).image_domains()
    order, _ = pixel_permutations(64, COUNT, 3)
    raw = domains.images.pixels
    expected = (raw[:, order[:, :, 0]].transpose(1, 0, 2) - raw.mean()) / raw.std()
    np.testing.assert_allclose(domains.in_memory().inputs, expected, rtol=0, atol=1e-13)


def test_principal_components_are_those_of_all_domains_together():
    inputs = make().domains().inputs.reshape(-1, 64)
    reference = PCA(7, svd_solver="full").fit(inputs)
    expected = reference.transform(inputs) / np.sqrt(reference.explained_variance_.mean())
    expected *= np.sqrt(len(inputs) / (len(inputs) - 1))  # scikit-learn divides by n - 1
    domains = make(features=FEATURES["principal_components"]).image_domains()
    projection = domains.fitted["projection"]
    assert (projection.max(axis=0) > -projection.min(axis=0)).all()
    components = domains.in_memory().inputs.reshape(-1, 7)
    signs = np.sign((components * expected).sum(axis=0))
    np.testing.assert_allclose(components * signs, expected, rtol=0, atol=1e-10)
    np.testing.assert_allclose([components.mean(), components.var()], [0, 1], atol=1e-12)


@pytest.mark.parametrize("pool", [1, 2, 4, 7])
def test_random_convolutions_agree_with_sliding_windows(pool):
    features = RandomConvolutions(name="random_convolutions", filters=4, size=3, pool=pool)
    domains = colour(features, turned(33))
    pixels = colour(COLOUR_FEATURES[0], turned(33)).in_memory().inputs
    windows = np.lib.stride_tricks.sliding_window_view(
        pixels.reshape(2, -1, *COLOUR), (3, 3), axis=(3, 4)
    )
    responses = np.maximum(np.einsum("inchwab,fcab->infhw", windows, domains.fitted["filters"]), 0)
    parts = np.array_split(np.arange(7), pool)
    cells = [responses[..., rows, :][..., c].mean(axis=(3, 4)) for rows in parts for c in parts]
    expected = np.stack(cells, axis=-1).reshape(2, -1, 4 * pool**2)
    expected -= expected[0].mean(axis=0)  # domain 0 is not rotated
    inputs = domains.in_memory().inputs
    np.testing.assert_allclose(inputs, expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(inputs[0].mean(axis=0), 0, atol=1e-13)
    np.testing.assert_allclose(inputs[0].var(), 1)


def test_random_filters_are_normal_and_depend_on_the_seed():
    def filters(seed):
        features = {"name": "random_convolutions", "filters": 400, "size": 4, "seed": seed}
        return make(features=features).image_domains().fitted["filters"]

    first = filters(0)
    np.testing.assert_array_equal(first, filters(0))
    assert not (first == filters(1)).any()
    # the kurtosis does not depend on the scale; for n normal draws its standard error is sqrt(24/n)
    kurtosis = (first**4).mean() / (first**2).mean() ** 2
    assert abs(kurtosis - 3) < 5 * np.sqrt(24 / first.size)


@pytest.mark.parametrize("features", FEATURES.values(), ids=FEATURES)
def test_precision_of_inputs_is_that_of_the_tap_weights(features):
    domains = make(features=features).image_domains()
    pixels = domains.images.held_out_pixels[:20]
    double, single = shown(domains, pixels), shown(domains, pixels, "float32")
    np.testing.assert_allclose(single, double, rtol=0, atol=2e-5)


# Moments ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("inputs", ["rotation", "pixel_permutation", "identity"])
@pytest.mark.parametrize("features", FEATURES.values(), ids=FEATURES)
def test_moments_are_averages_over_images(inputs, features, monkeypatch):
    monkeypatch.setattr(pixel_domains, "BATCH", 128)  # the last batch is not full
    domains = make(inputs=inputs, features=features, count=3).image_domains()
    moments = domains.moments
    assert moments.sigma_xx.shape == (3, domains.inputs, domains.inputs)
    assert moments.sigma_yx.shape == (3, domains.outputs, domains.inputs)
    assert moments.sigma_xx.dtype == moments.sigma_yx.dtype == np.float64
    check_moments(moments, domains.in_memory().inputs, domains.images.labels)
    held_out = shown(domains, domains.images.held_out_pixels)
    check_moments(domains.held_out_moments, held_out, domains.images.held_out_labels)
    assert domains.moments is moments


@pytest.mark.parametrize("features", COLOUR_FEATURES, ids=lambda features: features.name)
def test_moments_of_colour_images_are_averages(features):
    for taps in (turned(70), pixel_permutations(243, 2, 0), identities(243, 2)):
        domains = colour(features, taps)
        check_moments(domains.moments, domains.in_memory().inputs, domains.images.labels)
        held_out = shown(domains, domains.images.held_out_pixels)
        check_moments(domains.held_out_moments, held_out, domains.images.held_out_labels)


@given(
    arc=st.floats(-360, 360), count=st.sampled_from([1, 2, 6]), samples=st.sampled_from([1, 40])
)  # few shapes, as each is compiled
@settings(max_examples=15)
def test_moments_of_any_rotation_are_averages(arc, count, samples):
    domains = make(
        arc=arc, count=count, images={"name": "digits", "samples": samples}
    ).image_domains()
    check_moments(domains.moments, domains.in_memory().inputs, domains.images.labels)


def test_correlations_of_pairs_are_moments_with_permuted_classes():
    domains = make().image_domains()
    in_memory = domains.in_memory()
    for i, j in np.ndindex(COUNT, COUNT):
        table = np.empty((10, 64))
        table[domains.class_order[j]] = domains.moments.sigma_yx[i]
        np.testing.assert_allclose(in_memory.sigma_yx[i, j], table, rtol=0, atol=1e-13)
    np.testing.assert_array_equal(in_memory.y_power, 1)


# Classes ----------------------------------------------------------------------------------------


@given(count=st.integers(1, 12), seed=st.integers(0, 2**32))
@settings(max_examples=20)
def test_class_orders_are_permutations(count, seed):
    renamed = make(count=count, seed=seed).image_domains().class_order
    np.testing.assert_array_equal(np.sort(renamed, axis=1), [np.arange(10)] * count)
    more = make(count=count + 1, seed=seed).image_domains().class_order
    np.testing.assert_array_equal(more[:-1], renamed)


def test_permutations_of_classes_are_uniform():
    dataset = make(count=2000, images={"name": "digits", "samples": 1}, inputs="identity")
    orders = dataset.image_domains().class_order
    # of 3.6 million permutations, two in 2000 draws coincide with probability 0.42
    assert len({tuple(row) for row in orders}) > 1990
    counts = np.array([[(orders[:, c] == o).sum() for o in range(10)] for c in range(10)])
    deviation = np.sqrt(2000 * 0.1 * 0.9)
    assert (np.abs(counts - 200) < 5 * deviation).all()


def test_targets_are_the_permuted_classes():
    dataset = make()
    assert isinstance(dataset, DomainDataset)
    domains, renamed = dataset.domains(), dataset.image_domains().class_order
    labels = load_digits(return_X_y=True)[1][:SAMPLES]
    for j, targets in enumerate(domains.targets):
        np.testing.assert_array_equal(targets.argmax(axis=1), [renamed[j][c] for c in labels])
        np.testing.assert_array_equal(np.sort(targets, axis=1), [[0] * 9 + [1]] * SAMPLES)
    same = make(outputs="identity").image_domains()
    np.testing.assert_array_equal(same.class_order, [np.arange(10)] * COUNT)


# All pairs --------------------------------------------------------------------------------------


def test_sample_of_all_pairs_has_their_inputs_targets_and_contexts():
    dataset = make(count=2, images={"name": "digits", "samples": 20})
    task, domains = dataset.load(), dataset.domains()
    assert task.x.shape == (80, 128)
    assert task.y.shape == (80, 20)
    np.testing.assert_array_equal(task.contexts, np.repeat(np.arange(4), 20))
    np.testing.assert_array_equal(task.x[20:40, :64], domains.inputs[0])  # pair (0, 1)
    np.testing.assert_array_equal(task.y[20:40, 10:], domains.targets[1])
    assert not task.x[20:40, 64:].any()


@pytest.mark.parametrize("features", FEATURES.values(), ids=FEATURES)
def test_arrays_are_those_of_the_images(features):
    domains = make(features=features).image_domains()
    arrays, images = domains.arrays(), domains.images
    assert (domains.count, domains.items, domains.outputs) == (COUNT, SAMPLES, 10)
    assert domains.inputs == shown(domains, images.pixels[:1]).shape[2]
    for name in ("pixels", "labels", "held_out_pixels", "held_out_labels"):
        assert arrays[name] is getattr(images, name)
    assert arrays["pixels"].dtype == np.uint8
    assert arrays["taps"].dtype == np.int32
    assert arrays["taps"].shape == arrays["tap_weights"].shape == (COUNT, 64, 4)
    np.testing.assert_array_equal(arrays["class_order"], domains.class_order)
    assert len(images.labels) + len(images.held_out_labels) == 1797


def test_mnist_images_are_rotated_and_held_out(tmp_path, monkeypatch):
    files = write_mnist(tmp_path, monkeypatch, 30, 11)
    domains = make(images={"name": "mnist", "folder": str(tmp_path), "samples": 25}).image_domains()
    assert (domains.items, domains.inputs) == (25, 784)
    check_moments(domains.moments, domains.in_memory().inputs, domains.images.labels)
    held_out = files[TEST_IMAGES].reshape(11, 784).astype(float)
    raw = domains.images.pixels
    expected = (rotated(held_out, (1, 28, 28), 270 / 4) - raw.mean()) / raw.std()
    inputs = shown(domains, domains.images.held_out_pixels)[1]
    np.testing.assert_allclose(inputs, expected, rtol=0, atol=1e-12)


# Refusals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "samples", "method", "problem"),
    [
        (
            2000,
            1500,
            TransformedImages.domains,
            r"1500 images in 2000 domains .* 2\.2e\+08 numbers",
        ),
        (2000, 1500, TransformedImages.load, r"1500 images in 2000 domains .* 2\.2e\+08 numbers"),
        (20, 1100, TransformedImages.load, r"all pairs of domains .* 6\..*e\+08 numbers"),
    ],
)
def test_too_large_arrays_are_refused(count, samples, method, problem):
    images = {"name": "digits", "samples": samples}
    dataset = make(count=count, inputs="identity", images=images)
    with pytest.raises(UserError, match=problem) as error:
        method(dataset)
    assert (error.value.key, error.value.value) == ("dataset.count", str(count))
    assert "routing network, which needs their moments" in error.value.remedy


@pytest.mark.parametrize(
    ("changes", "key", "words"),
    [
        (
            {"images": {"name": "digits"}},
            "images.samples",
            "1797: all images of digits are used ... none is left for testing; use fewer",
        ),
        ({"images": {"name": "xor"}}, "images", "'cifar10', 'cifar10_files', 'digits', 'mnist'"),
        ({"count": 0}, "count", "at least 1"),
        (
            {"features": {"name": "principal_components", "count": 65}},
            "features.count",
            "65: images of 64 pixels ... use up to 64",
        ),
        (
            {"features": {"name": "random_convolutions", "size": 9}},
            "features.size",
            "9: images have 8 pixels along a side ... use up to 8",
        ),
        (
            {"features": {"name": "random_convolutions", "size": 5, "pool": 5}},
            "features.pool",
            "5: filters of size 5 have 4 positions along a side; use up to 4",
        ),
        ({"inputs": "flip"}, "inputs", "'rotation', 'pixel_permutation' or 'identity'"),
        ({"arc": float("nan")}, "arc", "finite"),
    ],
)
def test_invalid_configuration_is_refused(changes, key, words):
    check_refusal(make, changes, key, words)
