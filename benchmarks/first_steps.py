"""Follows the first steps of the documentation to the letter, in a new folder, and times them.

What docs/start.md and "In a package of your own" in CONTRIBUTING.md show is run in its order:
console blocks as commands, Python blocks as programs; a block after "`file`:" becomes that file.

    python benchmarks/first_steps.py
"""

import os
import re
import subprocess
import time
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

REPOSITORY = Path(__file__).parents[1]
PARTS = (("docs/start.md", ""), ("CONTRIBUTING.md", "In a package of your own"))
BLOCK = re.compile(r"(?:`([^`\n]+)`:\n\n)?```(\w+)\n(.*?)```", re.DOTALL)
MARK = "@@@ "


def sections(path: str, only: str) -> dict[str, str]:
    """The sections of a page that show something, each as a program of the shell."""
    found = {}
    for section in (REPOSITORY / path).read_text(encoding="utf-8").split("\n## ")[1:]:
        title, _, text = section.partition("\n")
        if only in ("", title) and (blocks := BLOCK.findall(text)):
            found[title] = "\n".join(command(*block) for block in blocks)
    return found


def command(file: str, language: str, text: str) -> str:
    """What a block shows, for the shell."""
    if file:
        return f"cat > {file} <<'END'\n{text}END"
    if language == "python":
        return f"python - <<'END'\n{text}END"
    if language != "console":
        return ""
    return text.replace("$ ", "").replace("<this repository>", f"{REPOSITORY} neuralrace")


def main() -> None:
    """Prints the seconds of each section."""
    programs = {k: v for part in PARTS for k, v in sections(*part).items()}
    script = "set -euo pipefail\n" + "".join(
        f"echo '{MARK}{title}'\n{text}\n" for title, text in programs.items()
    )
    began: list[tuple[str, float]] = []
    with TemporaryDirectory() as folder:
        process = subprocess.Popen(
            ["bash", "-c", script + f"echo '{MARK}end'\n"],
            cwd=folder,
            env=os.environ | {"MPLBACKEND": "agg"},
            stdout=subprocess.PIPE,
            text=True,
        )
        for line in process.stdout or ():
            print(line, end="", flush=True)
            if line.startswith(MARK):
                began.append((line.removeprefix(MARK).strip(), time.perf_counter()))
        if process.wait():
            raise SystemExit(f"{began[-1][0]}: ended with {process.returncode}")
    for (title, start), (_, end) in pairwise(began):
        print(f"{end - start:7.1f} s  {title}")
    print(f"{began[-1][1] - began[0][1]:7.1f} s  in all")


if __name__ == "__main__":
    main()
