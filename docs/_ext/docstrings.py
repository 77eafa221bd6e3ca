"""Docstrings as reStructuredText: they are plain text with code between backticks and fences."""

import inspect
import re
from collections.abc import Iterator
from typing import Any

from sphinx.application import Sphinx
from sphinx.ext.napoleon import Config, GoogleDocstring
from sphinx.util.inspect import stringify_signature

from neuralrace.extensions.model import ConfigModel

SECTIONS = Config(napoleon_use_rtype=False)


def converted(lines: list[str]) -> Iterator[str]:
    """The lines, where code in fences or set in is a block, and no bar begins a substitution."""
    fenced = False
    text = re.sub(r"(?m)^(\S.*:)\n\n(?= {4}\S)", r"\1:\n\n", "\n".join(lines))
    for line in text.split("\n"):
        if match := re.fullmatch(r"(\s*)```(\w*)", line):
            fenced = not fenced
            yield from [f"{match[1]}.. code-block:: {match[2]}", ""] if fenced else [""]
        elif fenced:
            yield f"    {line}"
        else:
            yield line if line.lstrip().startswith((">>>", "...")) else line.replace("|", r"\|")


def convert(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Does so while Sphinx reads a docstring, with sections as fields.

    Not by the extension of napoleon, to which the first words of an attribute are its type where a
    colon follows them. Help in Python repeats what `specify` says of the arguments that functions
    share with it; the site says it once.
    """
    written = lines
    if what == "function" and inspect.unwrap(obj) is not obj:
        written = inspect.cleandoc(inspect.unwrap(obj).__doc__ or "").splitlines()
    lines[:] = GoogleDocstring(list(converted(written)), SECTIONS, obj=obj).lines()


def signature(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, arguments: str, returns: str
) -> tuple[str, str] | None:
    """No arguments for what a configuration makes: its keys stand in the manual.

    Arguments that a function shares with `specify` are `**options`, as in its source.
    """
    if isinstance(obj, type) and issubclass(obj, ConfigModel):
        return "", returns
    if what == "function" and inspect.unwrap(obj) is not obj:
        own = inspect.signature(inspect.unwrap(obj), follow_wrapped=False)
        shown = stringify_signature(own, show_return_annotation=False, unqualified_typehints=True)
        return shown, returns
    return None


def setup(app: Sphinx) -> dict[str, bool]:
    """Makes this an extension of Sphinx."""
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-docstring", convert)
    app.connect("autodoc-process-signature", signature)
    return {"parallel_read_safe": True}
