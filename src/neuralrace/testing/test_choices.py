"""What is a class: documented, and datasets load alike each time."""

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
from neuralrace.testing.cells import LOADED, example_of, name_of
from neuralrace.training.loss import LOSSES, Loss
from neuralrace.training.settings import OPTIMISERS

CHOICES = (DATASETS, DOMAIN_SCHEMES, INITIALISERS, OPTIMISERS, PAIRS, SAMPLE_SCHEMES)


def test_registries_agree_with_what_can_be_configured():
    assert set(ACTIVATIONS) == set(get_args(Activation))
    assert set(LOSSES) == set(get_args(Loss.model_fields["name"].annotation))
    for choices in CHOICES:
        assert list(map(name_of, choices)) == sorted(set(map(name_of, choices)))


@pytest.mark.parametrize("cls", [cls for each in CHOICES for cls in each], ids=name_of)
def test_choices_are_documented_and_have_an_example(cls):
    where = f"{cls.__module__}: {cls.__name__}"
    assert cls.__doc__, f"{where} has no docstring"
    assert cls.__doc__ != cls.__mro__[1].__doc__, f"{where} has the docstring that it inherits"
    for name, schema in cls.model_json_schema()["properties"].items():
        assert "description" in schema or name == "name", f"{where}.{name} has no docstring"
    lacking = {name for name, field in cls.model_fields.items() if field.is_required()}
    lacking -= {"name", *cls.example}
    assert not lacking, f"{where} has no `example` with values of {sorted(lacking)}"
    cls.model_validate_json(json.dumps(example_of(cls)))


@pytest.mark.parametrize("name", list(LOADED))
def test_dataset(name):
    dataset = LOADED[name].model_validate_json(json.dumps(example_of(LOADED[name])))
    data, again = dataset.load(), dataset.load()
    samples, inputs = data.x.shape
    outputs = data.y.shape[1]
    assert data.y.shape == (samples, outputs)
    if isinstance(dataset, DomainDataset):
        domains = dataset.domains()
        assert dataset.sizes == (*domains.inputs.shape[1:], domains.targets.shape[2])
    else:
        assert dataset.sizes == (samples, inputs, outputs)
    assert data.x.dtype == data.y.dtype == np.float64
    assert np.isfinite(data.x).all()
    assert np.isfinite(data.y).all()
    np.testing.assert_array_equal(data.x, again.x)
    np.testing.assert_array_equal(data.y, again.y)
    assert len(data.item_names) in (0, samples)
    assert len(data.output_names) in (0, outputs)
    assert data.sigma_yx.shape == (outputs, inputs)
    modes = data.modes
    assert modes.s.shape == modes.d.shape == (min(inputs, outputs),)
    np.testing.assert_allclose((modes.u * modes.s) @ modes.v.T, data.sigma_yx, atol=1e-10)
    assert (np.diff(np.abs(modes.s)) <= 1e-12).all()
    np.testing.assert_allclose(
        modes.d, np.einsum("ik,ij,jk->k", modes.v, data.sigma_xx, modes.v), atol=1e-10
    )
