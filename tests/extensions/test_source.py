"""Imports, declarations and code of a module, read without running it."""

import ast
import io
import tokenize
from pathlib import Path

import pytest

import neuralrace
from neuralrace.errors import UserError
from neuralrace.extensions.source import Decorated, decorated, imports, without_comments

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
    '''Text.'''

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


def test_declarations_and_imports_are_read_from_source(module):
    path = module(MODULE)
    reads = {"one": {"metrics": "loss"}}
    assert decorated(path, "Figure") == {"draw": Decorated({"reads": reads}, "Text.")}
    assert set(imports(path)) == {"os.path", "a.b.c", "a.b.d", "e", "f.g.h", "f.g.i"}


def test_declarations_may_name_constants_of_their_module_or_of_an_imported_one(module):
    text = """
from neuralrace.extensions.registry import ENTRY_POINT_GROUP as GROUP
LOSS = ("time", "loss")

@Solution(requires=GROUP, variables={"loss": LOSS})
def solve(): ...
"""
    keywords = {"requires": "neuralrace", "variables": {"loss": ("time", "loss")}}
    assert decorated(module(text), "Solution") == {"solve": Decorated(keywords, "")}


def names_in(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_imports_equal_those_of_the_syntax_tree():
    for path in LIBRARY:
        text = path.read_text(encoding="utf-8")
        more = set(imports(path)) ^ set(names_in(ast.parse(text)))
        # an example in a docstring may look like an import
        assert all(f"    import {name} as" in text for name in more), path
        assert more <= {"neuralrace", "numpy"}, path


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("@Figure({})\ndef draw(): ...", "takes keywords only"),
        ("@Figure(reads=READS)\ndef draw(): ...", "takes literals"),
    ],
)
def test_an_argument_that_is_no_literal_keyword_is_refused(module, text, words):
    path = module(text)
    with pytest.raises(UserError, match=words) as caught:
        decorated(path, "Figure")
    assert (caught.value.file, caught.value.key) == (str(path), "@Figure")


def tokens(text):
    """Python's tokens of a text, without comments and the ends of their lines."""
    read = tokenize.generate_tokens(io.StringIO(text).readline)
    return [(token.type, token.string) for token in read if token.type != tokenize.NL]


def test_code_without_comments_is_the_same_code():
    """In every file: text that a digest leaves out must not change a result."""
    for path in LIBRARY:
        text, short = path.read_text(encoding="utf-8"), without_comments(path)
        code = [token for token in tokens(text) if token[0] != tokenize.COMMENT]
        assert tokens(short) == code, path


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("# above\nx = 1\n", True),
        ("\n\nx = 1  # beside\n\n\n# below\n", True),
        ("x = 1\n    # indented\n", True),
        ("x = 1\n# it's\n# \"\n", True),
        ("x = 1  # '''\n", True),
        ("x  = 1\n", False),
        ("x = 1\ny = 2\n", False),
        ("x = 1  # '''\ny = 1  # '''\n", False),
    ],
)
def test_only_comments_and_blank_lines_are_removed(module, text, same):
    assert (without_comments(module(text)) == without_comments(module("x = 1\n"))) == same


@pytest.mark.parametrize(
    "text",
    [
        "x = '# {}'\n", 'x = "\\"# {}"\n', "x = r'\\'# {}'\n", 'x = """\n# {}\n\n"""\n',
        "x = \"'\" '# {}'\n", "x = '\\\n# {}'\n", "x = f'{{1}}# {}'\n", 'x = """"# {}"""\n',
        "x = '' '''\n# {}'''\n", "'''A docstring.\n\n    # {}\n'''\n",
    ],
)  # fmt: skip
def test_a_hash_sign_in_a_string_is_no_comment(module, text):
    one, other = (module(text.replace("{}", word)) for word in ("one", "other"))
    assert tokens(one.read_text())
    assert without_comments(one) == one.read_text()
    assert without_comments(one) != without_comments(other)
