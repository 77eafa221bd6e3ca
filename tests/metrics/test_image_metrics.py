"""Metrics of images by domain, against scikit-learn and SciPy on the images themselves."""

from itertools import pairwise

import numpy as np
import pytest
from cells import cell_of, complete, made, tabulated
from scipy.ndimage import rotate
from sklearn.datasets import load_digits
from sklearn.linear_model import Ridge, RidgeCV

from neuralrace.datasets.transformed_images import TransformedImages
from neuralrace.metrics.dataset import metrics_dataset
from neuralrace.results.axes import axes, provenance_attributes
from neuralrace.results.schema import build

SAMPLES, COUNT = 1500, 3
IMAGES = {
    "name": "transformed_images",
    "count": COUNT,
    "images": {"name": "digits", "samples": SAMPLES},
}
SPEC = {
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


def make_cell(*metrics, dataset=IMAGES, **parts):
    return complete(SPEC | {"metrics": metrics, "dataset": dataset} | parts)


def record(cell, **arrays):
    """A trajectory with these curves, one row for each seed."""
    arrays = {name: np.asarray(curve, float)[None] for name, curve in arrays.items()}
    arrays["loss"] = np.ones((1, cell.seeds, 3))
    arrays["diverged_at"] = np.full((1, cell.seeds), -1)
    attrs = provenance_attributes("paper/experiment/main", cell, "train", ("numpy",))
    return build("trajectory", arrays, axes(cell, 4), attrs)


def measure(cell, **arrays):
    return metrics_dataset(made(cell, record(cell, **arrays)))


def close(actual, expected, **tolerance):
    np.testing.assert_allclose(np.squeeze(actual.values), expected, **{"rtol": 1e-9} | tolerance)


# The task --------------------------------------------------------------------------------------


def test_trained_pairs_need_no_images(monkeypatch):
    def refuse(_):
        raise AssertionError("images were loaded")

    for name in ("domains", "image_domains", "load"):
        monkeypatch.setattr(TransformedImages, name, refuse)
    cell = make_cell()
    trained = made(cell, record(cell)).trained_pairs
    assert trained.shape == (4, COUNT, COUNT)
    for seed, mask in enumerate(trained):
        np.testing.assert_array_equal(mask, cell.network.mask(COUNT, seed))
        np.testing.assert_array_equal(mask.sum(axis=1), 2)


@pytest.mark.parametrize("metric", ["ridge_baseline", "zero_shot_accuracy"])
def test_other_datasets_are_refused(metric):
    spec = SPEC | {"metrics": [metric], "dataset": {"name": "routing", "count": COUNT}}
    with pytest.raises(ValueError, match=r"dataset.name: 'routing': use transformed_images"):
        cell_of(spec)


# Zero-shot classification ----------------------------------------------------------------------


def test_zero_shot_accuracy_above_chance():
    # by seed: half transfers, nothing does, untrained pairs are below chance, all pairs are trained
    trained = np.array([0.9, 0.6, 0.3, 0.8])
    untrained = np.array([0.5, 0.1, 0.0, np.nan])
    found = measure(
        make_cell("zero_shot_accuracy"),
        trained_accuracy=np.outer(trained, [0, 0.5, 1]),
        untrained_accuracy=np.outer(untrained, [0, 0.5, 1]),
    )
    close(found["final_trained_misclassified"], 1 - trained)
    close(found["final_untrained_misclassified"], 1 - untrained)
    close(found["misclassified_gap"], [0.4, 0.5, 0.3, np.nan])
    close(found["transfer"], [0.5, 0.0, -0.5, np.nan], atol=1e-15)
    assert set(found["transfer"].dims) == {"init_scale", "seed"}


def test_nothing_learned_has_no_transfer():
    accuracy = np.outer([0.1, 0.05, 0.1, 0.11], [1, 1, 1])
    found = measure(
        make_cell("zero_shot_accuracy"), trained_accuracy=accuracy, untrained_accuracy=accuracy
    )
    close(found["transfer"], [np.nan, np.nan, np.nan, 1.0])


# Ridge regression ------------------------------------------------------------------------------


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
    return measure(make_cell("ridge_baseline"))


def test_ridge_is_that_of_scikit_learn_on_rotated_images(baseline):
    x, labels, held_out_x, held_out_labels = rotated_digits()
    y, held_out_y = np.eye(10)[labels], np.eye(10)[held_out_labels]
    assert baseline["ridge_penalty"].dims == ("input_domain",)
    np.testing.assert_array_equal(baseline["input_domain"], [1, 2, 3])
    for i in range(COUNT):
        found = baseline.isel(input_domain=i)
        penalty = float(found["ridge_penalty"])
        model = Ridge(alpha=SAMPLES * penalty, fit_intercept=False, solver="svd").fit(x[i], y)
        close(found["ridge_training_error"], np.sum((y - model.predict(x[i])) ** 2) / SAMPLES)
        answers = model.predict(held_out_x[i])
        error = np.sum((held_out_y - answers) ** 2) / len(answers)
        close(found["ridge_held_out_error"], error)
        close(found["ridge_misclassified"], np.mean(answers.argmax(axis=1) != held_out_labels))
        least = y - x[i] @ np.linalg.lstsq(x[i], y)[0]
        close(found["least_squares_training_error"], np.sum(least**2) / SAMPLES)


def test_penalty_does_as_well_as_that_of_leaving_one_out(baseline):
    x, labels, _, _ = rotated_digits()
    y = np.eye(10)[labels]
    for i in range(COUNT):
        chosen = SAMPLES * float(baseline["ridge_penalty"][i])
        alphas = np.concatenate([[chosen], SAMPLES * np.geomspace(1e-6, 1e2, 60)])
        model = RidgeCV(alphas, fit_intercept=False, store_cv_results=True).fit(x[i], y)
        errors = model.cv_results_.mean(axis=(0, 1))
        assert errors[0] < 1.002 * errors.min()


def test_a_baseline_of_digits_is_far_from_chance_and_from_perfect(baseline):
    assert (baseline["ridge_misclassified"] > 0.05).all()
    assert (baseline["ridge_misclassified"] < 0.25).all()
    ordered = (
        baseline["least_squares_training_error"],
        baseline["ridge_training_error"],
        baseline["ridge_held_out_error"],
    )
    assert all((low < high).all() for low, high in pairwise(ordered))


def test_what_changes_no_regression_changes_no_baseline(baseline):
    plain = measure(make_cell("ridge_baseline", dataset=IMAGES | {"outputs": "identity"}))
    shuffled, same = (
        measure(make_cell("ridge_baseline", dataset=IMAGES | {"inputs": inputs}))
        for inputs in ("pixel_permutation", "identity")
    )
    for name in FITS:
        close(plain[name], baseline[name])
        close(same[name], np.full(COUNT, float(baseline[name][0])))
        close(shuffled[name], same[name], rtol=1e-8)


def test_features_are_seen(baseline):
    few = {"name": "principal_components", "count": 5}
    found = measure(make_cell("ridge_baseline", dataset=IMAGES | {"features": few}))
    assert (found["ridge_misclassified"] > 2 * baseline["ridge_misclassified"]).all()


def test_baselines_are_in_the_table(baseline):
    table = tabulated(baseline)
    rows = table[table["metric"] == "ridge_misclassified"]
    assert rows["input_domain"].tolist() == [1, 2, 3]
    np.testing.assert_array_equal(rows["value"], baseline["ridge_misclassified"])
