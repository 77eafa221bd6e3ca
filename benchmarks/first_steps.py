"""Does what the documentation shows to three newcomers, to the letter, and times each step.

A step is a section of a page, and the steps run in order in a new clone: console blocks as
commands, Python blocks as programs. A block after "`file`:" becomes that file, and a notebook is
one program. A step fails if a command fails, if the output lacks a line of the text block below it,
or if there is no file that the section names.

    python benchmarks/first_steps.py                # all
    python benchmarks/first_steps.py analyst        # one of them
"""

import argparse
import json
import os
import re
import shlex
import subprocess
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

REPOSITORY = Path(__file__).parents[1]
START = "docs/start.md"
HOURS: dict[str, dict[str, tuple[str, ...]]] = {
    "student": {
        START: ("Install", "A first network", "Change one value", "When something is wrong"),
        "examples/own_data.ipynb": (),
    },
    "analyst": {START: ("Install",), "docs/read_results.md": ()},
    "engineer": {
        START: (
            "Install",
            "All papers, at a fraction of their size",
            "An experiment of your own",
            "On data of your own",
            "Stop and continue",
            "Read the results",
        ),
        "docs/own_package.md": (),
    },
}
"""Sections of each page, in their order; none for all of them. The analyst comes before the
engineer, whose experiments would stand among the results that are compared."""
BLOCK = re.compile(r"(?:`([^`\n]+)`:\n\n)?^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NAMED = re.compile(
    r"(?<![\[`])`(\w[\w./-]*\.(?:png|nc|csv|md|yaml)|(?:results|figures)/[\w./-]+)`(?![`\]])"
)
"""A file or folder that prose names; link labels name files of the repository."""
MARK = "@@@ "


def sections(page: str) -> dict[str, str]:
    """The text of each section of a page by its title; a notebook is one section of one block."""
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    if page.endswith(".ipynb"):
        cells = [(each["cell_type"], "".join(each["source"])) for each in json.loads(text)["cells"]]
        code = "\n".join(source for kind, source in cells if kind == "code")
        return {cells[0][1].partition("\n")[0].removeprefix("# "): f"```python\n{code}\n```\n"}
    parts = (part.partition("\n") for part in text.removeprefix("# ").split("\n## "))
    return {title: body for title, _, body in parts}


def program(section: str, shown: Path) -> str:
    """The shell program of a section.

    Args:
        section: its Markdown.
        shown: a file for the output of a block that is compared with the text block below it.
    """
    lines = []
    blocks = [*BLOCK.findall(section), ("", "", "")]
    for (file, language, text), (_, following, expected) in pairwise(blocks):
        command = shell_command(file, language, text)
        if not command or following != "text":
            lines.append(command)
        elif "Error: " in expected:
            lines.append(f"if {{\n{command}\n}} > {shown} 2>&1; then exit 1; fi")
        else:
            lines.append(f"{{\n{command}\n}} > {shown} 2>&1")
        if command and following == "text":
            wanted = map(shlex.quote, filter(None, expected.split("\n")))
            lines += [f"grep --fixed-strings -- {line} {shown}" for line in wanted]
    named = dict.fromkeys(NAMED.findall(BLOCK.sub("", section)))
    return "\n".join(filter(None, [*lines, *(f"ls -d {name}" for name in named)]))


def shell_command(file: str, language: str, text: str) -> str:
    """What a block shows, for the shell; empty for blocks that show no command, program or file."""
    if file:
        return f"cat > {file} <<'END'\n{text}END"
    if language == "python":
        return f"python - <<'END'\n{text}END"
    if language != "console":
        return ""
    text = re.sub(r"git clone (<[^>]*>|\S+)", f"git clone {REPOSITORY} neuralrace", text)
    # `timeout` ends with 124 where it stopped a command
    text = re.sub(r"^\$ (timeout .*)$", r"$ \1 || [ $? = 124 ]", text, flags=re.MULTILINE)
    return re.sub(r"^\$ ", "", text, flags=re.MULTILINE).rstrip()


def steps(hours: list[str], shown: Path) -> Iterator[tuple[str, str]]:
    """Title and program of each step of some hours; a step of several is done once."""
    done: set[tuple[str, str]] = set()
    for page, titles in (item for hour in hours for item in HOURS[hour].items()):
        texts = sections(page)
        for title in titles or texts:
            if (page, title) not in done and (script := program(texts[title], shown)):
                yield title, script
            done.add((page, title))


def main() -> None:
    """Prints the seconds of each step."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "hours", nargs="*", metavar="HOUR", help=f"{', '.join(HOURS)}; default: all"
    )
    hours = parser.parse_args().hours or list(HOURS)
    if unknown := {*hours} - {*HOURS}:
        parser.error(f"{', '.join(unknown)}: choose from {', '.join(HOURS)}")
    began: list[tuple[str, float]] = []
    with TemporaryDirectory() as folder:
        shown = Path(folder, "shown")
        script = f"set -euo pipefail\ntrap '[ $? = 0 ] || cat {shown}' EXIT\n" + "".join(
            f"echo {shlex.quote(MARK + title)}\n{text}\n"
            for title, text in [*steps(hours, shown), ("end", "")]
        )
        process = subprocess.Popen(
            ["bash", "-c", script],
            cwd=folder,
            env=os.environ | {"MPLBACKEND": "agg"},
            stdout=subprocess.PIPE,
            text=True,
        )
        for line in process.stdout or ():
            print(line, end="", flush=True)
            if line.startswith(MARK):
                began.append((line.removeprefix(MARK).strip(), time.perf_counter()))
        status = process.wait()
    for (title, start), (_, end) in pairwise(began):
        print(f"{end - start:7.1f} s  {title}")
    print(f"{began[-1][1] - began[0][1]:7.1f} s  in all")
    if status:
        raise SystemExit(f"{began[-1][0]}: ended with {status}")


if __name__ == "__main__":
    main()
