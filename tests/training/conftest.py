"""Small runs for the tests of training."""

from functools import partial

import pytest

from builders import MIXTURE, build_ensemble


@pytest.fixture(scope="session")
def make_run():
    """A function that builds a small run; its arguments replace top-level keys."""
    return partial(build_ensemble, MIXTURE)
