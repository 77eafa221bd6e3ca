"""What is read of a module without running it."""

import ast
from pathlib import Path

import pytest

import neuralrace
from neuralrace.source import Decorated, decorated, imports

LIBRARY = sorted(Path(neuralrace.__file__).parent.rglob("*.py"))

MODULE = """
import os.path
from a.b import c, d

raise SystemExit("never run")

def plain(): import e; from f.g import (  # both
    h,  # one
    i as j,
)

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
    assert set(imports(path)) == {"os.path", "a.b.c", "a.b.d", "e", "f.g.h", "f.g.i"}


def names_in(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_imports_are_those_of_the_syntax_tree():
    for path in LIBRARY:
        text = path.read_text(encoding="utf-8")
        more = set(imports(path)) ^ set(names_in(ast.parse(text)))
        # an example in a docstring may read as an import, of what nothing rests on
        assert all(f"    import {name} as" in text for name in more), path
        assert more <= {"neuralrace", "numpy"}, path


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
