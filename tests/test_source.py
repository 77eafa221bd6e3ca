"""What is read of a module without running it."""

import pytest

from neuralrace.source import Decorated, decorated, imports

MODULE = """
import os.path
from a.b import c, d

raise SystemExit("never run")

def plain(): import e

@Figure(reads={"one": {"metrics": "loss"}})
def draw():
    '''Said.'''

@Other(reads={})
def other(): ...
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
    reads = {"one": {"metrics": "loss"}}
    assert decorated(path, "Figure") == {"draw": Decorated({"reads": reads}, "Said.")}
    assert set(imports(path)) == {"os.path", "a.b.c", "a.b.d", "e"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("@Figure({})\ndef draw(): ...", "takes keywords only"),
        ("@Figure(reads=READS)\ndef draw(): ...", "takes literals"),
    ],
)
def test_what_cannot_be_read_is_told(module, text, words):
    path = module(text)
    with pytest.raises(ValueError, match=words) as caught:
        decorated(path, "Figure")
    assert str(path) in str(caught.value)
