"""Imports and declarations of a module, read from its source without running it.

Planning needs both. Running every module would load JAX, xarray and Matplotlib.
"""

import ast
import inspect
import re
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from importlib.machinery import PathFinder
from itertools import pairwise
from pathlib import Path
from typing import Any

from neuralrace.errors import UserError

IMPORT = re.compile(
    r"(?:^|[:;])[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(?:\(([^)]*)\)|([^;\n]+))"
    r"|import[ \t]+([^;\n]+))",
    re.MULTILINE,
)
"""Import statement: a module with names, in parentheses or not; or modules alone."""
COMMENT = re.compile(r"#.*")
REMARK = re.compile(
    r"""
      ( \"{3} [^"\\]* (?: (?: \\. | "(?!"") ) [^"\\]* )* \"{3}  # a string: it stays
      | '{3} [^'\\]* (?: (?: \\. | '(?!'') ) [^'\\]* )* '{3}
      | " [^"\\]* (?: \\. [^"\\]* )* "
      | ' [^'\\]* (?: \\. [^'\\]* )* '
      )
    | (?: \n [ \t]* (?: \#[^\n]* )? )+ (?= \n )  # lines that are blank or a comment
    | [ \t]* \#[^\n]*
    """,
    re.DOTALL | re.VERBOSE,
)
"""Comments and blank lines; and strings, as a `#` inside them is no comment.

It is exact up to Python 3.11. Later versions allow the same quotes again inside an f-string.
"""


@cache
def syntax(path: Path) -> ast.Module:
    """The syntax tree of a module."""
    return ast.parse(path.read_bytes(), str(path))


def without_comments(path: Path) -> str:
    """The source of a module without comments and blank lines.

    Every plan does this for the whole library, and `tokenize` takes thirty times as long.
    """
    return REMARK.sub(r"\1", path.read_text(encoding="utf-8")).lstrip("\n")


def docstring(path: Path) -> str:
    """The docstring of a module."""
    return ast.get_docstring(syntax(path)) or ""


@cache
def imports(path: Path) -> tuple[str, ...]:
    """Names of all modules that a file may import, also inside functions.

    Every plan does this for the whole library, and a syntax tree takes thirty times as long. A line
    of a docstring that looks like an import counts as one.
    """
    names: list[str] = []
    for module, group, rest, plain in IMPORT.findall(path.read_text(encoding="utf-8")):
        entries = COMMENT.sub("", group or rest or plain).split(",")
        imported = [entry.split()[0] for entry in entries if entry.strip()]
        names += [f"{module}.{name}" for name in imported] if module else imported
    return tuple(names)


def attributes(path: Path, name: str) -> dict[str, str]:
    """Docstrings of the annotated attributes of a class, by attribute.

    Args:
        path: the module.
        name: the class.
    """
    bodies = (n.body for n in syntax(path).body if isinstance(n, ast.ClassDef) and n.name == name)
    return {
        attribute.target.id: inspect.cleandoc(below.value.value)
        for body in bodies
        for attribute, below in pairwise(body)
        if isinstance(attribute, ast.AnnAssign)
        and isinstance(attribute.target, ast.Name)
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
        and isinstance(below.value.value, str)
    }


@dataclass(frozen=True)
class Decorated:
    """A function with a decorator."""

    keywords: dict[str, Any]
    """Keyword arguments of the decorator."""
    text: str
    """Docstring of the function."""


def decorated(path: Path, decorator: str) -> dict[str, Decorated]:
    """The functions of a module that have a decorator, by name.

    Args:
        path: the module.
        decorator: name of the decorator; it is called with keywords. Their values are
            literals, which may contain names of constants (see `_Constants`).

    Raises:
        UserError: an argument is no literal, or has no keyword.
    """
    functions, constants = {}, _Constants(path)
    for node in syntax(path).body:
        if not isinstance(node, ast.FunctionDef):
            continue
        for call in node.decorator_list:
            if isinstance(call, ast.Call) and ast.unparse(call.func) == decorator:
                if call.args:
                    raise UserError("takes keywords only", file=path, key=f"@{decorator}")
                try:
                    keywords = {str(k.arg): _value(k.value, constants) for k in call.keywords}
                except ValueError as error:
                    raise UserError(
                        f"takes literals: {error}", file=path, key=f"@{decorator}"
                    ) from None
                functions[node.name] = Decorated(keywords, ast.get_docstring(node) or "")
    return functions


def _value(node: ast.expr, constants: "_Constants") -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:  # few declarations name constants, and copying a tree is slow
        return ast.literal_eval(constants.visit(deepcopy(node)))


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
            file = _module_file(node.module) if name in original else None
            if file:
                return _constant(file, original[name])
    return None


def _module_file(name: str) -> Path | None:
    """The file of a module; unlike `importlib.util.find_spec`, this imports no parent package."""
    spec, folders = None, None
    for part in name.split("."):
        spec = PathFinder.find_spec(part, folders)
        if spec is None:
            return None
        folders = spec.submodule_search_locations
    return Path(spec.origin) if spec and spec.origin else None
