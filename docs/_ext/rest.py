"""Plain words as reStructuredText."""

import re


def words(text: str) -> str:
    """One paragraph in which no sign is markup, but for mathematics between dollars."""
    parts = re.split(r"\$(.+?)\$", " ".join(text.split()))
    escaped = (re.sub(r"([\\*`|_])", r"\\\1", part) for part in parts[::2])
    maths = (rf"\ :math:`{part}`\ " for part in parts[1::2])
    return "".join(part for pair in zip(escaped, [*maths, ""], strict=True) for part in pair)


def heading(text: str, line: str, anchor: str = "") -> str:
    """A title over a line of signs, with a label before it."""
    label = f".. _{anchor}:\n\n" if anchor else ""
    return f"{label}{text}\n{line * len(text)}\n"


def indented(text: str, by: int = 3) -> str:
    """A block inside a directive."""
    return "".join(f"{' ' * by}{line}" if line.strip() else line for line in text.splitlines(True))


def table(rows: list[list[str]], widths: str) -> str:
    """A table whose first row is its head; cells are reStructuredText of one line."""
    lines = (f"   {'-' if column else '* -'} {cell}" if not column else f"     - {cell}"
             for row in rows for column, cell in enumerate(row))  # fmt: skip
    options = f"   :header-rows: 1\n   :widths: {widths}\n   :class: site-table\n"
    return f".. list-table::\n{options}\n" + "\n".join(lines) + "\n"
