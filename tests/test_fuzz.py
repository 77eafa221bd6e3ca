"""Readers of files, after random changes: they read a file or refuse it with a message."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzzing import EDITS, KINDS, reader


@pytest.fixture(scope="module")
def reading(tmp_path_factory):
    with reader(tmp_path_factory.mktemp("fuzz")) as process:
        yield process


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60)
@given(edits=EDITS, sealed=st.booleans())
def test_a_randomly_changed_file_is_read_or_refused(reading, kind, edits, sealed):
    assert reading.read_edited(kind, edits, sealed) in ("read", "refused")


@pytest.mark.parametrize("kind", KINDS)
def test_an_undamaged_file_is_read(reading, kind):
    assert reading.read_edited(kind, [], True) == "read"
