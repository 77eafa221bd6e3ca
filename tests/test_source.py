"""What is read of a module without running it."""

import pytest

from neuralrace.source import declared, imports

MODULE = """
import os.path
from a.b import c, d

raise SystemExit("never run")

def plain(): import e

@drawn_from({"one": {"metrics": "loss"}})
def draw(): ...
"""


@pytest.fixture
def module(tmp_path):
    def write(text):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.py"
        path.write_text(text)
        return path

    return write


def test_what_a_module_declares_and_imports(module):
    path = module(MODULE)
    assert declared(path, "drawn_from") == {"one": {"metrics": "loss"}}
    assert set(imports(path)) == {"os.path", "a.b.c", "a.b.d", "e"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def draw(): ...", "has 0 functions with @drawn_from"),
        (
            "@drawn_from({})\ndef draw(): ...\n@drawn_from({})\ndef other(): ...",
            "has 2 functions with @drawn_from",
        ),
        ("@drawn_from(READS)\ndef draw(): ...", "takes literals"),
    ],
)
def test_what_cannot_be_read_is_told(module, text, words):
    path = module(text)
    with pytest.raises(ValueError, match=words) as caught:
        declared(path, "drawn_from")
    assert str(path) in str(caught.value)
