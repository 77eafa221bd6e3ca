"""Metrics of images by domain, against scikit-learn and SciPy on the images themselves."""

from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from scipy.ndimage import rotate
from sklearn.datasets import load_digits
from sklearn.linear_model import Ridge, RidgeCV

from builders import (
    assert_close,
    build_cell,
    cell_with_requirements,
    metrics_of,
    recorded_trajectory,
    results_in_memory,
)
from neuralrace.datasets.transformed_images import TransformedImages

SAMPLES, COUNT = 1500, 3
IMAGES = {
    "name": "transformed_images",
    "count": COUNT,
    "images": {"name": "digits", "samples": SAMPLES},
}
ROUTING = {
    "dataset": IMAGES,
    "network": {
        "name": "routing",
        "hidden": [6, 6],
        "gates": {"name": "always_on"},
        "pairs": {"name": "random_regular", "partners": 2},
    },
    "init": {"name": "orthogonal"},
    "init_scales": [0.2],
    "seeds": 4,
    "training": {"learning_rate": 0.01, "steps": 2},
    "record": {"every": 1},
}
FITS = (
    "ridge_penalty",
    "ridge_training_error",
    "ridge_held_out_error",
    "ridge_misclassified",
    "least_squares_training_error",
)
image_cell = partial(cell_with_requirements, base=ROUTING)


def measure(cell, **curves):
    """Metrics of curves that have one row for each seed."""
    arrays = {name: np.asarray(curve, float)[None] for name, curve in curves.items()}
    return metrics_of(cell, samples=4, **arrays)


# Task --------------------------------------------------------------------------------------------


def test_trained_pairs_need_no_images(monkeypatch):
    def refuse(_):
        raise AssertionError("images were loaded")

    for name in ("domains", "image_domains", "load"):
        monkeypatch.setattr(TransformedImages, name, refuse)
    cell = image_cell([])
    trained = results_in_memory(cell, recorded_trajectory(cell, samples=4)).trained_pairs
    assert trained.shape == (4, COUNT, COUNT)
    for seed, mask in enumerate(trained):
        np.testing.assert_array_equal(mask, cell.network.mask(COUNT, seed))
        np.testing.assert_array_equal(mask.sum(axis=1), 2)


@pytest.mark.parametrize("metric", ["ridge_baseline", "zero_shot_accuracy"])
def test_other_datasets_are_refused(metric):
    spec = ROUTING | {"metrics": [metric], "dataset": {"name": "routing", "count": COUNT}}
    with pytest.raises(ValueError, match=r"dataset.name: 'routing'.*use transformed_images"):
        build_cell(spec)


# Zero-shot accuracy ------------------------------------------------------------------------------


def test_transfer_is_the_ratio_of_accuracies_above_chance():
    # by seed: half transfers, nothing does, untrained pairs are below chance, all pairs are trained
    trained = np.array([0.9, 0.6, 0.3, 0.8])
    untrained = np.array([0.5, 0.1, 0.0, np.nan])
    metrics = measure(
        image_cell(["zero_shot_accuracy"]),
        trained_accuracy=np.outer(trained, [0, 0.5, 1]),
        untrained_accuracy=np.outer(untrained, [0, 0.5, 1]),
    )
    assert_close(metrics["final_trained_misclassified"][0], 1 - trained)
    assert_close(metrics["final_untrained_misclassified"][0], 1 - untrained)
    assert_close(metrics["misclassified_gap"][0], [0.4, 0.5, 0.3, np.nan])
    assert_close(metrics["transfer"][0], [0.5, 0.0, -0.5, np.nan], atol=1e-15)
    assert set(metrics["transfer"].dims) == {"init_scale", "seed"}


def test_transfer_is_undefined_at_chance():
    accuracy = np.outer([0.1, 0.05, 0.1, 0.11], [1, 1, 1])
    metrics = measure(
        image_cell(["zero_shot_accuracy"]), trained_accuracy=accuracy, untrained_accuracy=accuracy
    )
    assert_close(metrics["transfer"][0], [np.nan, np.nan, np.nan, 1.0])


# Ridge regression --------------------------------------------------------------------------------


def rotated_digits():
    """Inputs (domain, item, input) of training and of held-out images, and their labels."""
    pixels, labels = load_digits(return_X_y=True)
    mean, std = pixels[:SAMPLES].mean(), pixels[:SAMPLES].std()
    images = np.stack(
        [
            rotate(pixels.reshape(-1, 8, 8), 270 * i / COUNT, (1, 2), reshape=False, order=1)
            for i in range(COUNT)
        ]
    )
    x = (images.reshape(COUNT, -1, 64) - mean) / std
    return x[:, :SAMPLES], labels[:SAMPLES], x[:, SAMPLES:], labels[SAMPLES:]


@pytest.fixture(scope="module")
def baseline():
    return measure(image_cell(["ridge_baseline"]))


def test_ridge_agrees_with_scikit_learn_on_rotated_images(baseline):
    x, labels, held_out_x, held_out_labels = rotated_digits()
    y, held_out_y = np.eye(10)[labels], np.eye(10)[held_out_labels]
    assert baseline["ridge_penalty"].dims == ("input_domain",)
    np.testing.assert_array_equal(baseline["input_domain"], [1, 2, 3])
    for i in range(COUNT):
        fit = baseline.isel(input_domain=i)
        penalty = float(fit["ridge_penalty"])
        model = Ridge(alpha=SAMPLES * penalty, fit_intercept=False, solver="svd").fit(x[i], y)
        assert_close(fit["ridge_training_error"], np.sum((y - model.predict(x[i])) ** 2) / SAMPLES)
        answers = model.predict(held_out_x[i])
        error = np.sum((held_out_y - answers) ** 2) / len(answers)
        assert_close(fit["ridge_held_out_error"], error)
        assert_close(fit["ridge_misclassified"], np.mean(answers.argmax(axis=1) != held_out_labels))
        least = y - x[i] @ np.linalg.lstsq(x[i], y)[0]
        assert_close(fit["least_squares_training_error"], np.sum(least**2) / SAMPLES)


def test_penalty_is_as_good_as_by_leave_one_out(baseline):
    x, labels, _, _ = rotated_digits()
    y = np.eye(10)[labels]
    for i in range(COUNT):
        chosen = SAMPLES * float(baseline["ridge_penalty"][i])
        alphas = np.concatenate([[chosen], SAMPLES * np.geomspace(1e-6, 1e2, 60)])
        model = RidgeCV(alphas, fit_intercept=False, store_cv_results=True).fit(x[i], y)
        errors = model.cv_results_.mean(axis=(0, 1))
        assert errors[0] < 1.002 * errors.min()


def test_baseline_of_digits_is_far_from_chance_and_from_perfect(baseline):
    assert (baseline["ridge_misclassified"] > 0.05).all()
    assert (baseline["ridge_misclassified"] < 0.25).all()
    ordered = (
        baseline["least_squares_training_error"],
        baseline["ridge_training_error"],
        baseline["ridge_held_out_error"],
    )
    assert all((low < high).all() for low, high in pairwise(ordered))


def test_baseline_is_invariant_to_permutations_of_classes_and_pixels(baseline):
    plain = measure(image_cell(["ridge_baseline"], dataset=IMAGES | {"outputs": "identity"}))
    shuffled, same = (
        measure(image_cell(["ridge_baseline"], dataset=IMAGES | {"inputs": inputs}))
        for inputs in ("pixel_permutation", "identity")
    )
    for name in FITS:
        assert_close(plain[name], baseline[name])
        assert_close(same[name], np.full(COUNT, float(baseline[name][0])))
        assert_close(shuffled[name], same[name], rtol=1e-8)


def test_fewer_features_have_larger_errors(baseline):
    few = {"name": "principal_components", "count": 5}
    metrics = measure(image_cell(["ridge_baseline"], dataset=IMAGES | {"features": few}))
    assert (metrics["ridge_misclassified"] > 2 * baseline["ridge_misclassified"]).all()
