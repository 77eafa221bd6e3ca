"""Changed targets: which numbers move where, and what stays."""

import numpy as np
import pytest
from pydantic import ValidationError

from neuralrace.datasets.changed_targets import ChangedTargets
from neuralrace.datasets.contextual import Contextual
from neuralrace.datasets.gaussian_mixture import GaussianMixture
from neuralrace.datasets.modes import PrescribedModes

MIXTURE = GaussianMixture(
    name="gaussian_mixture", components=3, samples_per_component=4, inputs=3, outputs=5
)
CHANGES = ("negated", "permuted_outputs", "permuted_samples")


def changed(change, of=MIXTURE, seed=0):
    return ChangedTargets(name="changed_targets", of=of, change=change, seed=seed)


def rows(values):
    return sorted(map(tuple, values))


@pytest.mark.parametrize("change", CHANGES)
def test_inputs_and_sizes_are_those_of_the_other_dataset(change):
    data, other = changed(change).load(), MIXTURE.load()
    np.testing.assert_array_equal(data.x, other.x)
    assert changed(change).sizes == MIXTURE.sizes
    assert np.abs(data.y - other.y).max() > 0.1


def test_targets_change_their_sign_or_place():
    y = MIXTURE.load().y
    np.testing.assert_array_equal(changed("negated").load().y, -y)
    outputs, samples = changed("permuted_outputs").load().y, changed("permuted_samples").load().y
    assert rows(outputs.T) == rows(y.T)
    assert rows(samples) == rows(y)


@pytest.mark.parametrize("change", ["permuted_outputs", "permuted_samples"])
def test_permutations_depend_on_the_seed(change):
    y = changed(change, seed=1).load().y
    np.testing.assert_array_equal(changed(change, seed=1).load().y, y)
    assert np.abs(changed(change, seed=2).load().y - y).max() > 0.1


@pytest.mark.parametrize("change", CHANGES)
def test_modes_are_those_of_the_changed_targets(change):
    data = changed(change).load()
    modes, (u, s, vt) = data.modes, np.linalg.svd(data.sigma_yx, full_matrices=False)
    np.testing.assert_allclose(abs(modes.s), s, atol=1e-13)
    np.testing.assert_allclose((modes.u * modes.s) @ modes.v.T, (u * s) @ vt, atol=1e-13)


def test_negated_modes_keep_their_vectors_and_change_their_signs():
    task = PrescribedModes(name="modes", singular_values=(2.0, -1.0), inputs=3, outputs=2)
    modes, other = changed("negated", of=task).load().modes, task.load().modes
    np.testing.assert_array_equal(modes.s, [-2.0, 1.0])
    np.testing.assert_array_equal(modes.u, other.u)
    np.testing.assert_array_equal(modes.v, other.v)


def test_contexts_are_those_of_the_other_dataset():
    task = Contextual(name="contextual", contexts=3, objects=4)
    assert changed("negated", of=task).contexts == 3
    assert changed("negated").contexts is None
    np.testing.assert_array_equal(changed("negated", of=task).load().contexts, task.load().contexts)


@pytest.mark.parametrize("inner", ["changed_targets", "sequence"])
def test_datasets_of_datasets_are_not_changed(inner):
    with pytest.raises(ValidationError, match=inner):
        ChangedTargets.model_validate({"name": "changed_targets", "of": {"name": inner}})
