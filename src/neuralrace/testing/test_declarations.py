"""Declarations of metrics, solutions, observables and figures."""

import pytest

from neuralrace.testing.declarations import EXTENSIONS, faults

ENTRIES = [
    pytest.param(registry, entry, id=f"{registry.kind}-{entry.name}")
    for registry in EXTENSIONS
    for entry in registry.values()
]


@pytest.mark.parametrize(("registry", "entry"), ENTRIES)
def test_a_declaration_is_sound(registry, entry):
    found = faults(registry, entry)
    assert not found, "; ".join(found)


@pytest.mark.parametrize(("registry", "entry"), ENTRIES)
def test_what_is_declared_exists(registry, entry):
    function = entry.load()
    assert callable(function), entry.module
    assert function.__doc__, entry.module
