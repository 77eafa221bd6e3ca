"""Extensions that are classes: documentation, examples, and data that are reproducible."""

import json
from typing import get_args

import numpy as np
import pytest

from neuralrace.config.cell import DATASETS, INITIALISERS
from neuralrace.datasets.base import DomainDataset
from neuralrace.networks.gated import SAMPLE_SCHEMES
from neuralrace.networks.layered import Activation
from neuralrace.networks.modules.activations import ACTIVATIONS
from neuralrace.networks.routing import DOMAIN_SCHEMES, PAIRS
from neuralrace.testing.cells import LOADABLE, example_of, name_of
from neuralrace.training.loss import LOSSES, MSE, Loss
from neuralrace.training.settings import OPTIMISERS

CHOICES = (DATASETS, DOMAIN_SCHEMES, INITIALISERS, OPTIMISERS, PAIRS, SAMPLE_SCHEMES)


def test_registries_agree_with_the_configuration():
    assert set(ACTIVATIONS) == set(get_args(Activation))
    assert {*LOSSES, MSE} == set(get_args(Loss.model_fields["name"].annotation))
    for classes in CHOICES:
        assert list(map(name_of, classes)) == sorted(set(map(name_of, classes)))


@pytest.mark.parametrize("cls", [cls for classes in CHOICES for cls in classes], ids=name_of)
def test_choices_are_documented_and_have_an_example(cls):
    where = f"{cls.__module__}: {cls.__name__}"
    assert cls.__doc__, f"{where} has no docstring"
    assert cls.__doc__ != cls.__mro__[1].__doc__, f"{where} inherits its docstring"
    for name, schema in cls.model_json_schema()["properties"].items():
        assert "description" in schema or name == "name", (
            f"{where}.{name} has no docstring below it"
        )
    missing = {name for name, field in cls.model_fields.items() if field.is_required()}
    missing -= {"name", *cls.example}
    assert not missing, f"{where}.example has no value for the required keys {sorted(missing)}"
    cls.model_validate_json(json.dumps(example_of(cls)))


@pytest.mark.parametrize("name", list(LOADABLE))
def test_dataset_loads_consistent_and_reproducible_arrays(name):
    cls = LOADABLE[name]
    dataset = cls.model_validate_json(json.dumps(example_of(cls)))
    data, again = dataset.load(), dataset.load()
    samples, inputs = data.x.shape
    outputs = data.y.shape[1]
    where = f"{cls.__module__}: {cls.__name__}"
    assert data.y.shape == (samples, outputs), f"{where}.load: x and y differ in samples"
    if isinstance(dataset, DomainDataset):
        domains = dataset.domains()
        sizes = (*domains.inputs.shape[1:], domains.targets.shape[2])
    else:
        sizes = (samples, inputs, outputs)
    assert dataset.sizes == sizes, f"{where}.sizes differs from the arrays of `load`"
    for array, same in ((data.x, again.x), (data.y, again.y)):
        assert array.dtype == np.float64, f"{where}.load: arrays must be float64"
        assert np.isfinite(array).all(), f"{where}.load: arrays have values that are not finite"
        np.testing.assert_array_equal(array, same, f"{where}.load: another call gives other arrays")
    assert len(data.item_names) in (0, samples), f"{where}.load: one item name for each sample"
    assert len(data.output_names) in (0, outputs), f"{where}.load: one name for each output"
    assert data.sigma_yx.shape == (outputs, inputs)
    modes = data.modes
    assert modes.s.shape == modes.d.shape == (min(inputs, outputs),)
    np.testing.assert_allclose((modes.u * modes.s) @ modes.v.T, data.sigma_yx, atol=1e-10)
    assert (np.diff(np.abs(modes.s)) <= 1e-12).all(), f"{where}: modes are not sorted by strength"
    np.testing.assert_allclose(
        modes.d, np.einsum("ik,ij,jk->k", modes.v, data.sigma_xx, modes.v), atol=1e-10
    )
