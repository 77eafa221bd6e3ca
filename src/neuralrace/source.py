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

    arguments: tuple[Any, ...]
    """Of the decorator, in their order."""
    keywords: dict[str, Any]
    """Of the decorator, by name."""
    text: str
    """Docstring of the function."""


def decorated(path: Path, decorator: str) -> dict[str, Decorated]:
    """The functions of a module that have a decorator, by name; its arguments are literals.

    Raises:
        ValueError: an argument is no literal.
    """
    found = {}
    for node in syntax(path).body:
        if not isinstance(node, ast.FunctionDef):
            continue
        for call in node.decorator_list:
            if isinstance(call, ast.Call) and ast.unparse(call.func) == decorator:
                try:
                    arguments = tuple(ast.literal_eval(value) for value in call.args)
                    keywords = {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}
                except ValueError as error:
                    raise ValueError(f"{path}: @{decorator} takes literals: {error}") from None
                found[node.name] = Decorated(arguments, keywords, ast.get_docstring(node) or "")
    return found


def declared(path: Path, decorator: str) -> Any:
    """The argument of a decorator on the one function of a module that has it.

    Raises:
        ValueError: no function has it, more than one has, or the argument is no literal.
    """
    functions = list(decorated(path, decorator).values())
    if len(functions) != 1:
        raise ValueError(f"{path}: has {len(functions)} functions with @{decorator}, not one")
    return functions[0].arguments[0]
