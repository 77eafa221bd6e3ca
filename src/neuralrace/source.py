"""The library as source: what a module imports and declares, read without running it.

Planning needs both, and running every module would load JAX, xarray and Matplotlib with them.
"""

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any


@cache
def syntax(path: Path) -> ast.Module:
    """The syntax tree of a module."""
    return ast.parse(path.read_bytes(), str(path))


@cache
def imports(path: Path) -> tuple[str, ...]:
    """Names of all modules that a file may import, also inside functions."""
    names: list[str] = []
    for node in ast.walk(syntax(path)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return tuple(names)


@dataclass(frozen=True)
class Decorated:
    """A function with a decorator that is called."""

    keywords: dict[str, Any]
    """Of the decorator, by name."""
    text: str
    """Docstring of the function."""


def decorated(path: Path, decorator: str) -> dict[str, Decorated]:
    """The functions of a module that have a decorator, by name; its keywords are literals.

    Raises:
        ValueError: an argument is no literal, or has no keyword.
    """
    found = {}
    for node in syntax(path).body:
        if not isinstance(node, ast.FunctionDef):
            continue
        for call in node.decorator_list:
            if isinstance(call, ast.Call) and ast.unparse(call.func) == decorator:
                if call.args:
                    raise ValueError(f"{path}: @{decorator} takes keywords only")
                try:
                    keywords = {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}
                except ValueError as error:
                    raise ValueError(f"{path}: @{decorator} takes literals: {error}") from None
                found[node.name] = Decorated(keywords, ast.get_docstring(node) or "")
    return found
