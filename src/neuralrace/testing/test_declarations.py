"""Declarations of metrics, solutions, observables and figures."""

import pytest

from neuralrace.testing.declarations import EXTENSIONS, faults


@pytest.mark.parametrize(
    ("registry", "entry"),
    [
        pytest.param(registry, entry, id=f"{registry.kind}-{entry.name}")
        for registry in EXTENSIONS
        for entry in registry.values()
    ],
)
def test_declaration_is_valid(registry, entry):
    messages = faults(registry, entry)
    assert not messages, "\n".join(messages)
    function = entry.load()
    assert callable(function), f"{entry.module}: {entry.function} is not a function"
    assert function.__doc__, f"{entry.module}: {entry.function} has no docstring"
