"""The library as source: what a module imports and declares, read without running it.

Planning needs both, and running every module would load JAX, xarray and Matplotlib with them.
"""

import ast
import inspect
import re
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

IMPORT = re.compile(
    r"(?:^|[:;])[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(?:\(([^)]*)\)|([^;\n]+))"
    r"|import[ \t]+([^;\n]+))",
    re.MULTILINE,
)
"""An import statement: module, names in parentheses or without; or modules alone."""
COMMENT = re.compile(r"#.*")
REMARK = re.compile(
    r"""
      ( \"{3} [^"\\]* (?: (?: \\. | "(?!"") ) [^"\\]* )* \"{3}  # a text: it stays
      | '{3} [^'\\]* (?: (?: \\. | '(?!'') ) [^'\\]* )* '{3}
      | " [^"\\]* (?: \\. [^"\\]* )* "
      | ' [^'\\]* (?: \\. [^'\\]* )* '
      )
    | (?: \n [ \t]* (?: \#[^\n]* )? )+ (?= \n )  # lines that are blank or a comment
    | [ \t]* \#[^\n]*
    """,
    re.DOTALL | re.VERBOSE,
)
"""Comments and blank lines, and texts, in which neither is one.

Exact up to Python 3.11. Later ones take the same quotes again inside an f-string.
"""


@cache
def syntax(path: Path) -> ast.Module:
    """The syntax tree of a module."""
    return ast.parse(path.read_bytes(), str(path))


def without_comments(path: Path) -> str:
    """A module of this library as it would be without comments and blank lines.

    Every plan asks this of the whole library, and the tokens of Python take thirty times as long.
    """
    return REMARK.sub(r"\1", path.read_text(encoding="utf-8")).lstrip("\n")


def docstring(path: Path) -> str:
    """The docstring of a module."""
    return ast.get_docstring(syntax(path)) or ""


@cache
def imports(path: Path) -> tuple[str, ...]:
    """Names of all modules that a file may import, also inside functions.

    Every plan asks this of the whole library, and a syntax tree takes thirty times as long. A line
    of a docstring that reads as an import would count as one.
    """
    names: list[str] = []
    for module, group, rest, plain in IMPORT.findall(path.read_text(encoding="utf-8")):
        listed = COMMENT.sub("", group or rest or plain).split(",")
        named = [entry.split()[0] for entry in listed if entry.strip()]
        names += [f"{module}.{name}" for name in named] if module else named
    return tuple(names)


def attributes(path: Path, name: str) -> dict[str, str]:
    """Texts below the annotated attributes of a class of a module, by attribute."""
    found = (n.body for n in syntax(path).body if isinstance(n, ast.ClassDef) and n.name == name)
    return {
        attribute.target.id: inspect.cleandoc(below.value.value)
        for body in found
        for attribute, below in pairwise(body)
        if isinstance(attribute, ast.AnnAssign)
        and isinstance(attribute.target, ast.Name)
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
        and isinstance(below.value.value, str)
    }


@dataclass(frozen=True)
class Decorated:
    """A function with a decorator that is called."""

    keywords: dict[str, Any]
    """Of the decorator, by name."""
    text: str
    """Docstring of the function."""


def decorated(path: Path, decorator: str) -> dict[str, Decorated]:
    """The functions of a module that have a decorator, by name.

    Its keywords are literals, which may contain names of constants (see `_Constants`).

    Raises:
        ValueError: an argument is no literal, or has no keyword.
    """
    found, constants = {}, _Constants(path)
    for node in syntax(path).body:
        if not isinstance(node, ast.FunctionDef):
            continue
        for call in node.decorator_list:
            if isinstance(call, ast.Call) and ast.unparse(call.func) == decorator:
                if call.args:
                    raise ValueError(f"{path}: @{decorator} takes keywords only")
                try:
                    literals = {k.arg: constants.visit(deepcopy(k.value)) for k in call.keywords}
                    keywords = {str(k): ast.literal_eval(v) for k, v in literals.items()}
                except ValueError as error:
                    raise ValueError(f"{path}: @{decorator} takes literals: {error}") from None
                found[node.name] = Decorated(keywords, ast.get_docstring(node) or "")
    return found


class _Constants(ast.NodeTransformer):
    """Replaces the names of constants by their values.

    A constant is assigned at the top level of the module, or of a module that it is imported from.
    """

    def __init__(self, path: Path):
        self.path = path

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return _constant(self.path, node.id) or node


def _constant(path: Path, name: str) -> ast.expr | None:
    for node in syntax(path).body:
        if isinstance(node, ast.Assign):
            if any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
                return node.value
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            original = {alias.asname or alias.name: alias.name for alias in node.names}
            spec = find_spec(node.module) if name in original else None
            if spec and spec.origin:
                return _constant(Path(spec.origin), original[name])
    return None
