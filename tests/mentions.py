"""What a text mentions, and whether it exists: commands, files, keys and names.

`wrong_command` and `wrong_name` return what is wrong, or an empty text. A code span that is none of
these, such as a message or a formula, passes.
"""

import ast
import re
import shlex
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from fnmatch import fnmatch
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
import yaml
from jsonschema import Draft202012Validator
from snakemake.cli import get_argument_parser

from builders import REPOSITORY
from neuralrace.cli import main as cli
from neuralrace.cli.listing import KINDS, descriptions, experiments
from neuralrace.config.load import read_plan
from neuralrace.config.manual import config_schema
from neuralrace.errors import UserError
from neuralrace.extensions.registry import FIGURES
from neuralrace.workflow.study import Study

LIBRARY = REPOSITORY / "src/neuralrace"
SCHEMA = config_schema()
CELL = SCHEMA["$defs"]["Cell"]["properties"]
KEYS = CELL["sweep"]["properties"]
"""Every key of an experiment, dotted."""
OWN = re.compile(
    r"(\.\./)*(neuralrace/)?(mine|my|mypackage|mypapers|spirals|anna|ben|other|part|train|test)\b.*"
    r"|x_size|x2|xmin|year"
)
"""Names of what a reader makes."""
PLACEHOLDER = re.compile(r"[A-Z]+(\.\w+)?|<.*>|\.\.\.")
FOREIGN = re.compile(
    "KillWait|MinJobAge|Partition(Config|TimeLimit)|sacct|squeue|nvidia-smi|tmux|matplotlibrc"
    r"|OPENBLAS_CORETYPE|multiprocessing|-k|standard_name|yes|--xla_gpu_deterministic_ops=true|xarray\..*"
    r"|\w*(Loss|l2_loss|_entropy|Crossentropy)\(.*\)"
)
"""Names of other programs."""
VALUES = re.compile(r"[\w.|*-]+( [\w|*-]+)*")
"""Values in code, side by side, and no sentence."""
MADE = ("results/checkpoints", "results/.neuralrace", "data", ".venv", ".snakemake")
"""Files and folders that commands make, beside those of the rules' files."""
SKIPPED = {".git", ".venv", ".cache", ".snakemake", "__pycache__", "_build"}


# Pages -------------------------------------------------------------------------------------------


@cache
def text(page: Path) -> str:
    """A page."""
    return page.read_text(encoding="utf-8")


def blocks(page: Path, language: str) -> list[str]:
    """Code blocks of a page."""
    return re.findall(rf"^```{language}\n(.*?)^```", text(page), re.S | re.M)


def answer(page: Path, program: str) -> str:
    """The output that a page shows below a program; empty where it shows none."""
    below = text(page).partition(f"```python\n{program}```\n")[2]
    shown = re.match(r"(?:\n[^`\n]+\n)?\n```text\n(.*?)^```", below, re.S | re.M)
    return shown[1] if shown else ""


@cache
def spans(page: Path) -> frozenset[str]:
    """Code spans of a page, outside of its code blocks."""
    prose = re.sub(r"^```.*?^```|\{(term|doc|ref)\}`[^`]*`", "", text(page), flags=re.S | re.M)
    return frozenset(re.findall(r"(?<!`)`([^`\n]+)`(?!`)", prose))


def lines(page: Path) -> Iterator[str]:
    """Lines that a page tells a reader to type."""
    for block in blocks(page, "console"):
        whole = block.replace("\\\n", " ")
        yield from re.findall(r"^\$ (.*)$", whole, re.M) or whole.splitlines()
    yield from spans(page)


# What exists -------------------------------------------------------------------------------------


@cache
def cells(page: Path | None) -> frozenset[str]:
    """Papers, experiments and cells: those configured, and those that a page configures itself."""
    known = set(Study({}, []).plan.cells) if page is None else set(cells(None))
    for block in blocks(page, "yaml") if page else ():
        content = yaml.safe_load(block) or {}
        known.update(experiments(content))
        with suppress(UserError):  # some only change an experiment, or read data
            known.update(read_plan(content, {}).cells)
    return frozenset("/".join(name.split("/")[:depth]) for name in known for depth in (1, 2, 3))


@cache
def tree() -> tuple[str, ...]:
    """Files and folders of the repository, by their path in it."""
    paths, folders = [], [REPOSITORY]
    while folders:
        inside = [
            path
            for path in folders.pop().iterdir()
            if path.name not in SKIPPED and path != REPOSITORY / "results"
        ]
        paths += inside
        folders += [path for path in inside if path.is_dir()]
    return tuple(path.relative_to(REPOSITORY).as_posix() for path in paths)


@cache
def rules() -> frozenset[str]:
    """Names of the rules."""
    return frozenset(re.findall(r"^rule (\w+):", _rules(), re.M))


@cache
def written() -> tuple[re.Pattern[str], ...]:
    """Patterns of the files that rules write, of their checksum files, and of folders of both."""
    templates = set()
    for name in re.findall(r'"<((?:results|figures)>/[^"]+)"', _rules()):
        whole = name.replace(">", "").replace("{cell}", "{paper}/{experiment}/{label}")
        *folders, file = whole.split("/")
        templates |= {"/".join(folders[:depth]) for depth in range(1, len(folders) + 1)}
        files = {whole, f"{whole}.sha256", whole.rpartition(".")[0] + ".sha256"}
        templates |= files | ({file} if "{" not in file else set())
    patterns = (re.escape(each).replace(r"\{label\}", "[^/]+") for each in templates if each)
    patterns = (re.sub(r"\\\{\w+\\\}", r"\\w+", each) for each in patterns)
    return tuple(re.compile(rf"(results/\w+/)?{each}") for each in patterns)


@cache
def _rules() -> str:
    return "".join(text(path) for path in (REPOSITORY / "workflow").rglob("*.smk"))


@cache
def targets() -> frozenset[str]:
    """Targets and variables of make."""
    makefile = text(REPOSITORY / "Makefile")
    rules = re.findall(r"^([a-z]+):", makefile, re.M)
    return frozenset(rules + re.findall(r"^(?:ifdef )?([A-Z]+)(?: \?=|$)", makefile, re.M))


@cache
def extras() -> frozenset[str]:
    """Extras that can be installed."""
    return frozenset(
        tomllib.loads(text(REPOSITORY / "pyproject.toml"))["project"]["optional-dependencies"]
    )


@cache
def options() -> frozenset[str]:
    """Options of `neuralrace` and of Snakemake, with and without their dashes."""
    parameters = [each for command in cli.commands.commands.values() for each in command.params]
    names = {name for each in parameters for name in each.opts} | {"--help", "--version"}
    names.update(name for action in parser()._actions for name in action.option_strings)
    return frozenset(names | {name.lstrip("-") for name in names})


@cache
def parser():
    """What reads Snakemake's command line."""
    return get_argument_parser()


@cache
def names(kind: str) -> frozenset[str]:
    """Names that `neuralrace list` lists."""
    return frozenset(descriptions(kind))


@cache
def vocabulary(page: Path) -> frozenset[str]:
    """Names in code, profiles and declarations, and in the code blocks of a page."""
    return _everywhere() | {n for b in blocks(page, r"\w+") for n in re.findall(r"[\w-]+", b)}


@cache
def _everywhere() -> frozenset[str]:
    words = {*rules(), *targets(), *extras(), *options(), *FIGURES}
    words |= {name for kind in KINDS for name in names(kind)}
    words |= {part for name in (*KEYS, *FIGURES) for part in re.split("[./]", name)}
    for path in (REPOSITORY / "profiles").rglob("*.yaml"):
        words.update(re.findall(r"[\w-]+", text(path)))
    for path in LIBRARY.rglob("*.py"):
        words |= {path.stem, path.parent.name, *_identifiers(ast.parse(text(path)))}
    return frozenset(words)


def _identifiers(module: ast.Module) -> Iterator[str]:
    """Names in a module, and words of its short texts, such as values and dimensions."""
    for node in ast.walk(module):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.alias(name=name):
                yield name
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield name
            case ast.keyword(arg=str(name)):
                yield name
            case ast.Constant(value=str(words)) if VALUES.fullmatch(words):
                yield from words.split()


# Whether it is said truly ------------------------------------------------------------------------


def is_open(name: str) -> bool:
    """Whether a name stands for any other, or for what a reader makes."""
    return bool(PLACEHOLDER.fullmatch(name) or OWN.fullmatch(name))


def is_file(name: str) -> bool:
    """Whether a file or folder is in the repository, or is written by a command."""
    pattern = re.sub(r"<[^>]+>|\{[^}]+\}", "*", name).rstrip("/")
    made = pattern.replace("*", "x")
    return (
        is_open(name)
        or pattern.startswith(MADE)
        or any(fnmatch(path, each) for each in (pattern, f"*/{pattern}") for path in tree())
        or any(each.fullmatch(made) for each in written())
    )


def is_output(name: str) -> bool:
    """Whether Snakemake can be asked for something: a rule, or a file of a figure or cell."""
    if is_open(name) or name.removeprefix("neuralrace_") in rules():
        return True
    folder, _, file = name.rpartition("/")
    inside = re.sub(".*(figures|results)/", "", folder)
    if file.endswith(".png"):
        known = {each for each in FIGURES if each.startswith(f"{inside}/")}
        drawn = bool(known) if file == "FIGURE.png" else f"{inside}/{file[:-4]}" in known
        return drawn or is_open(inside)
    return is_file(name) and inside in cells(None)


def missing(names: Iterable[str]) -> str:
    """The names, as what does not exist."""
    listed = ", ".join(names)
    return f"does not exist: {listed}" if listed else ""


def neuralrace(words: list[str], page: Path | None) -> str:
    """What is wrong with the arguments of `neuralrace`."""
    if not words or words[0] in ("COMMAND", "--help", "--version"):
        return ""
    command = cli.commands.commands.get(words[0])
    if command is None:
        return missing(words[:1])
    try:
        values = command.make_context(words[0], words[1:]).params
    except click.exceptions.Exit:  # --help
        return ""
    except click.MissingParameter as error:  # a mention of the command alone passes
        return error.format_message() if words[1:] else ""
    except click.UsageError as error:
        return error.format_message()
    what = values.get("what") or ()
    asked = [*values.get("only", ()), *([what] if isinstance(what, str) else what)]
    known = {*cells(page), *names("solutions")}
    wrong = [name for name in asked if not (name in known or is_output(name))]
    wrong += [name for name in (values.get("kind"),) if name not in (None, *KINDS)]
    wrong += [name for name in (values.get("id"),) if name not in (None, "ID", *names("claims"))]
    return missing([*wrong, *(str(p) for p in values.get("configfile", ()) if not is_file(str(p)))])


def snakemake(words: list[str], page: Path | None) -> str:
    """What is wrong with the arguments of Snakemake."""
    if len(words) == 1 and words[0] in options():  # a mention of the option alone
        return ""
    try:
        values = parser().parse_args(words)
    except SystemExit:
        return "Snakemake does not take these arguments"
    outputs = {*values.targets, *(values.forcerun or ()), *(values.until or ())}
    settings = dict(entry.split("=", 1) for entry in values.config or ())
    files = {*map(str, values.configfile or ()), *settings.pop("settings", "").split()}
    wrong = {name for name in outputs if not is_output(name)} | {*settings} - {
        *SCHEMA["properties"]
    }
    return missing(wrong | {name for name in files if not is_file(name)})


def make(words: list[str], page: Path | None) -> str:
    """What is wrong with the arguments of make."""
    return missing(word for word in words if word.partition("=")[0] not in targets())


def python(words: list[str], page: Path | None) -> str:
    """What is wrong with the module or file that Python is to run."""
    if words[0] == "-m":
        return missing(name for name in words[1:2] if not find_spec(name))
    return missing(name for name in words[:1] if name != "-" and not is_file(name))


def pip(words: list[str], page: Path | None) -> str:
    """What is wrong with what is to be installed: the library is in no registry yet."""
    if any(re.match(r"neuralrace\b", word) for word in words):
        return "name a folder or a wheel"
    return missing({name for word in words for name in re.findall(r"\[(\w+)\]", word)} - extras())


PROGRAMS = {check.__name__: check for check in (neuralrace, snakemake, make, python, pip)}


def wrong_command(line: str, page: Path | None = None) -> str:
    """What is wrong with the commands in a line; a line that is no command passes.

    Args:
        line: what a reader types.
        page: where it stands; it may configure experiments of its own.
    """
    words = shlex.shlex(line, posix=True, punctuation_chars="&|;")
    words.whitespace_split, words.commenters = True, "#"
    commands: list[list[str]] = [[]]
    try:
        for word in words:
            if set(word) <= set("&|;"):
                commands.append([])
            else:
                commands[-1].append(word)
    except ValueError:  # an apostrophe
        return ""
    for program, *arguments in filter(None, commands):
        check = PROGRAMS.get(program.removeprefix(".venv/bin/"))
        if check and (wrong := check(arguments, page)):
            return f"{line}: {wrong}"
    return ""


def resolves(name: str) -> bool:
    """Whether a dotted name is a module of the library, or stands in one."""
    parts = name.replace("nr.", "neuralrace.", 1).split(".")
    for depth in range(len(parts), 0, -1):
        try:
            value = import_module(".".join(parts[:depth]))
            for part in parts[depth:]:
                value = getattr(value, part)
        except (ImportError, AttributeError):
            continue
        return True
    return False


def wrong_entry(span: str) -> str | None:
    """What is wrong with `key: value` of a configuration; None where it is no such entry."""
    try:
        ((key, value),) = yaml.safe_load(span).items()
    except (ValueError, AttributeError, yaml.YAMLError):
        return None
    if "..." in span or (isinstance(value, str) and " " in value):
        return None  # a message
    if key in SCHEMA["properties"]:
        return _invalid({key: value})
    if key not in {*CELL, *KEYS} and "," not in key:
        return None
    # outside of `sweep`, inside of it, or as one of its values
    entries = [{key: value}, {"sweep": {key: value}}, {"sweep": {key: [value]}}]
    wrong = [_invalid({"experiments": {"paper": {"name": entry}}}) for entry in entries]
    return "" if "" in wrong else wrong[0]


def _invalid(content: dict[str, Any]) -> str:
    return "; ".join(error.message for error in Draft202012Validator(SCHEMA).iter_errors(content))


def wrong_name(span: str, page: Path) -> str:
    """What is wrong with a code span that names a file, key, option or identifier.

    Args:
        span: the text of it.
        page: where it stands; code blocks on the same page define names, too.
    """
    if FOREIGN.fullmatch(span):
        return ""
    if re.match("[a-z_., ]+: ", span) and (wrong := wrong_entry(span)) is not None:
        return wrong
    if re.fullmatch(r"--?[a-z][\w-]*([ =].*)?", span):
        return "" if re.split("[ =]", span)[0] in options() else "no such option"
    if re.fullmatch(
        r"[\w.<>*-]*/[\w./{}<>*,-]*|[\w<>.*-]+\.(py|nc|md|ya?ml|toml|json|csv|lock)", span
    ):
        known = span in cells(page) or span in FIGURES or span.startswith(("paper/", "1/"))
        return "" if known or is_file(span) else "no such file"
    name = re.sub(r"\(.*\)$", "", span).lstrip(".@")
    if re.match(r"(nr|neuralrace)\.[\w.]+$", name):
        return "" if resolves(name) else "no such name in the library"
    if not re.fullmatch(r"[A-Za-z_][\w-]*(\.[A-Za-z_]\w*)*", name) or is_open(name):
        return ""
    parts = name.split(".")
    if parts[1:] and parts[0] in CELL:
        return "" if name in KEYS else "no such key"
    if parts[1:] and find_spec(f"neuralrace.{parts[0]}"):
        return "" if resolves(f"neuralrace.{name}") else "no such name in the library"
    known = vocabulary(page)
    affix = "_" in (name[0], name[-1]) and any(name in each for each in known)
    exists = affix or known >= set(parts) or {name, span} & known or is_file(span)
    return "" if exists else "no such name"
