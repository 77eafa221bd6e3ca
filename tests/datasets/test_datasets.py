"""Every dataset has the correlations that its docstring states."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import check_refusal
from sklearn.datasets import load_digits

from neuralrace.datasets.digits import Digits
from neuralrace.datasets.gaussian_mixture import GaussianMixture
from neuralrace.datasets.hierarchy import Hierarchy
from neuralrace.datasets.modes import PrescribedModes


@given(data=st.data(), inputs=st.integers(1, 7), outputs=st.integers(1, 7))
@settings(max_examples=25)
def test_prescribed_modes_are_the_modes(data, inputs, outputs):
    strengths = st.floats(-9, 9).filter(lambda s: abs(s) > 1e-3)
    values = data.draw(st.lists(strengths, min_size=1, max_size=min(inputs, outputs)))
    basis = data.draw(st.sampled_from(["coordinates", "random"]))
    task = PrescribedModes(
        name="modes",
        singular_values=tuple(values),
        inputs=inputs,
        outputs=outputs,
        basis=basis,
        seed=data.draw(st.integers(0, 3)),
    ).load()
    np.testing.assert_allclose(task.sigma_xx, np.eye(inputs), atol=1e-14)
    modes = task.modes
    rotated = modes.output_basis.T @ task.sigma_yx @ modes.input_basis
    expected = np.zeros((outputs, inputs))
    expected[range(len(values)), range(len(values))] = values
    np.testing.assert_allclose(rotated, expected, atol=1e-12)
    for square in (modes.output_basis, modes.input_basis):
        np.testing.assert_allclose(square.T @ square, np.eye(len(square)), atol=1e-12)
    np.testing.assert_allclose(modes.d, 1, atol=1e-12)
    assert modes.joint


def test_random_bases_are_rotated_and_depend_on_the_seed():
    def load(**changes):
        fixed = {"name": "modes", "singular_values": (3.0, 1.0), "inputs": 4, "outputs": 3}
        return PrescribedModes(**(fixed | changes)).load().sigma_yx

    rotated = load(basis="random", seed=1)
    np.testing.assert_array_equal(rotated, load(basis="random", seed=1))
    assert np.abs(rotated - load(basis="random", seed=2)).max() > 0.1
    assert np.abs(rotated - load()).max() > 0.1
    np.testing.assert_allclose(np.diag(load()), [3, 1, 0])


def test_more_modes_than_units_are_refused():
    parameters = {"name": "modes", "singular_values": (1.0,) * 3, "inputs": 2, "outputs": 5}
    words = "3 modes do not fit into 2 inputs and 5 outputs; use at most 2"
    check_refusal(PrescribedModes, parameters, "singular_values", words)


def test_modes_of_the_hierarchy_are_contrasts_of_a_tree():
    task = Hierarchy(name="hierarchy").load()
    np.testing.assert_array_equal(task.sigma_xx, np.eye(4) / 4)
    # the contrasts of a binary tree, by hand: orthogonal in items, so sigma_yx maps them to modes
    contrasts = np.array([[1, 1, 1, 1], [1, 1, -1, -1], [1, -1, 0, 0], [0, 0, 1, -1]], dtype=float)
    contrasts /= np.linalg.norm(contrasts, axis=1, keepdims=True)
    expected = np.sqrt([7, 3, 1, 1]) / 4
    np.testing.assert_allclose(np.linalg.norm(task.sigma_yx @ contrasts.T, axis=0), expected)
    np.testing.assert_allclose(task.modes.s, expected)
    np.testing.assert_allclose(task.modes.d, 1 / 4)
    assert task.modes.joint
    assert (len(task.item_names), len(task.output_names)) == task.y.shape


def test_digits_are_those_of_scikit_learn():
    task = Digits(name="digits").load()
    images, labels = load_digits(return_X_y=True)
    assert task.x.shape == (1797, 64)
    assert task.y.shape == (1797, 10)
    np.testing.assert_array_equal(task.y.sum(axis=1), 1)
    np.testing.assert_array_equal(task.y.argmax(axis=1), labels)
    np.testing.assert_allclose([task.x.mean(), task.x.std()], [0, 1], atol=1e-12)
    # one mean and one scale for all pixels, so differences of pixels keep their ratios
    np.testing.assert_allclose((task.x - task.x[0]) * images.std(), images - images[0], atol=1e-10)
    np.testing.assert_array_equal(Digits(name="digits", samples=12).load().y, task.y[:12])
    assert not task.modes.joint


def test_digits_after_the_training_images_are_held_out():
    images, labels = load_digits(return_X_y=True)
    few = Digits(name="digits", samples=1500).images()
    assert few.shape == (1, 8, 8)
    np.testing.assert_array_equal(np.vstack([few.pixels, few.held_out_pixels]), images)
    np.testing.assert_array_equal(np.hstack([few.labels, few.held_out_labels]), labels)
    assert len(few.labels) == 1500
    assert Digits(name="digits").images().held_out_pixels.shape == (0, 64)


MIXTURE = GaussianMixture(name="gaussian_mixture", inputs=4, outputs=2, samples_per_component=300)


@pytest.mark.parametrize("whiten", [True, False])
def test_mixture_is_centred_whitened_and_linear_in_the_inputs(whiten):
    task = MIXTURE.model_copy(update={"whiten": whiten}).load()
    assert task.x.shape == (900, 4)
    np.testing.assert_allclose(task.x.mean(axis=0), 0, atol=1e-12)
    if whiten:
        np.testing.assert_allclose(task.sigma_xx, np.eye(4), atol=1e-12)
    else:
        assert np.abs(task.sigma_xx - np.eye(4)).max() > 0.1
    assert task.modes.joint == whiten
    # the teacher is a linear map of the centred or whitened inputs, without noise
    teacher = np.linalg.lstsq(task.x, task.y, rcond=None)[0]
    np.testing.assert_allclose(task.x @ teacher, task.y, atol=1e-12)


def test_whitening_does_not_change_the_teacher():
    def teacher(whiten):
        task = MIXTURE.model_copy(update={"whiten": whiten}).load()
        return np.linalg.lstsq(task.x, task.y, rcond=None)[0]

    np.testing.assert_allclose(teacher(True), teacher(False), atol=1e-12)


def test_too_few_samples_to_whiten_are_refused():
    few = {"name": "gaussian_mixture", "components": 2, "samples_per_component": 5, "inputs": 10}
    words = "10 samples ... cannot be whitened in 10 inputs; use more samples than inputs"
    check_refusal(GaussianMixture, few, "whiten", words)
    assert np.isfinite(GaussianMixture(**few, whiten=False).load().x).all()


@pytest.mark.parametrize("whiten", [True, False])
def test_new_samples_have_the_moments_of_the_fixed_sample(whiten):
    mixture = MIXTURE.model_copy(update={"whiten": whiten})
    fixed = mixture.load()
    with jax.enable_x64(True):
        draw = jax.jit(mixture.sampler(), static_argnums=1)
        x, y = map(np.asarray, draw(jax.random.key(0), 20_000))
        again, _ = draw(jax.random.key(0), 20_000)
        other, _ = draw(jax.random.key(1), 20_000)
    assert x.dtype == np.float64
    np.testing.assert_array_equal(x, again)
    assert not (x == np.asarray(other)).any()

    def monomials(x):
        pairs = [x[:, i] * x[:, j] for i in range(4) for j in range(i + 1)]
        return np.stack([*x.T, *pairs], axis=1)

    # 14 first and second moments, each within 4.5 standard errors of the difference: fewer than 1
    # of 10,000 seeds has one outside
    a, b = monomials(fixed.x), monomials(x)
    error = np.sqrt(a.var(axis=0) / len(a) + b.var(axis=0) / len(b))
    assert np.abs((a.mean(axis=0) - b.mean(axis=0)) / error).max() < 4.5
    teacher = np.linalg.lstsq(fixed.x, fixed.y, rcond=None)[0]
    np.testing.assert_allclose(y, x @ teacher, atol=1e-10)


def test_fixed_samples_have_no_sampler():
    assert Hierarchy(name="hierarchy").sampler() is None
    assert Digits(name="digits").sampler() is None


def test_correlations_are_averages_over_samples():
    task = MIXTURE.load()
    np.testing.assert_allclose(
        task.sigma_yx,
        np.mean([np.outer(y, x) for x, y in zip(task.x, task.y, strict=True)], axis=0),
    )
    np.testing.assert_allclose(task.y_power, np.mean([y @ y for y in task.y]))
