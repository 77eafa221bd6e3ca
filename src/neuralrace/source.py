"""The library as source: what a module imports and declares, read without running it.

Planning needs both, and running every module would load JAX, xarray and Matplotlib with them.
"""

import ast
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


def declared(path: Path, decorator: str) -> Any:
    """The argument of a decorator on the one function of a module that has it, a literal.

    Raises:
        ValueError: no function has it, more than one has, or it is no literal.
    """
    calls = [
        call
        for node in syntax(path).body
        if isinstance(node, ast.FunctionDef)
        for call in node.decorator_list
        if isinstance(call, ast.Call) and ast.unparse(call.func) == decorator
    ]
    if len(calls) != 1:
        raise ValueError(f"{path}: has {len(calls)} functions with @{decorator} and needs one")
    try:
        return ast.literal_eval(calls[0].args[0])
    except ValueError as error:
        raise ValueError(f"{path}: @{decorator} takes a literal: {error}") from None
