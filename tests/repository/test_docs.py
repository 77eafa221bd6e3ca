"""The documentation is true: programs run, commands parse, and files, keys and names exist."""

import re
from pathlib import Path

import numpy as np
import pytest
import yaml

from mentions import PROGRAMS, REPOSITORY, answer, blocks, lines, spans, wrong_command, wrong_name
from neuralrace.cli import main as cli
from neuralrace.config.load import read_plan
from neuralrace.errors import UserError

DOCS = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
PAGES = [*DOCS, REPOSITORY / "CONTRIBUTING.md", REPOSITORY / "config/README.md"]


@pytest.fixture(autouse=True)
def in_the_repository(monkeypatch):
    monkeypatch.chdir(REPOSITORY)


def shown(language: str) -> list:
    """Code blocks of the README and of docs/ in a language, with their page.

    Those of own_package.md are files of a package; tests/extensions installs and runs them.
    """
    return [
        pytest.param(block, page, id=f"{page.stem}-{number}")
        for page in DOCS
        if page.stem != "own_package"
        for number, block in enumerate(blocks(page, language))
    ]


def whole(block) -> bool:
    """Whether a block is a program: no fragment, analysis of results elsewhere, or extension."""
    return not re.search(r"\b(claim_files|Solution)\b|\"results", block.values[0])


@pytest.mark.parametrize(("block", "page"), list(filter(whole, shown("python"))))
def test_programs_run_and_print_what_is_shown(block, page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    message = ""
    try:
        exec(compile(block, "documentation", "exec"), {})
    except UserError as error:
        message = f"neuralrace.errors.UserError: {error}\n"
    printed = capsys.readouterr().out + message
    assert printed or list(tmp_path.iterdir())
    expected = answer(page, block)
    assert set(expected.splitlines()) <= set(printed.splitlines())
    assert message in expected


@pytest.mark.parametrize(("block", "page"), shown("yaml"))
def test_configurations_are_valid(block, page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("my.npz", x=np.eye(2), y=np.eye(2))
    content = yaml.safe_load(block)
    if "experiments" in content:
        assert read_plan(content, {"docs": content}).cells


def where(page: Path) -> str:
    return page.relative_to(REPOSITORY).as_posix()


def test_every_command_on_a_page_parses():
    found = {(where(page), wrong_command(line, page)) for page in PAGES for line in lines(page)}
    assert {(page, wrong) for page, wrong in found if wrong} == set()


def test_every_file_key_and_name_on_a_page_exists():
    named = [(page, span) for page in PAGES for span in sorted(spans(page))]
    found = {
        (where(page), span): wrong_name(span, page)
        for page, span in named
        if span.split()[0] not in PROGRAMS
    }
    assert {place: wrong for place, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize("name", cli.commands.commands)
def test_the_example_in_the_help_of_a_command_parses(name):
    example = str(cli.commands.commands[name].epilog)
    assert example.startswith(f"example: neuralrace {name} ")
    assert wrong_command(example.removeprefix("example: ")) == ""


def test_commands_in_messages_parse():
    sources = [path.read_text(encoding="utf-8") for path in REPOSITORY.glob("src/**/*.py")]
    named = {line for source in sources for line in re.findall(r"`([a-z]+ [^`{}\n]+)`", source)}
    commands = [line for line in named if line.split()[0] in PROGRAMS]
    assert len(commands) > 5
    assert [wrong for line in commands if (wrong := wrong_command(line))] == []


@pytest.mark.parametrize(
    "line",
    [
        "neuralrace claims half-times",
        "neuralrace list metric",
        "neuralrace run deep_linear/stairs",
        "neuralrace run --core 2 deep_linear",
        "neuralrace run --configfile config/tiny.yaml",
        "cd x && snakemake --cores all figure",
        "snakemake --cores all figures/deep_linear/stairs.png",
        "snakemake --cores all --force results/deep_linear/stairs/main/metrics.nc",
        "snakemake --core-s all figures",
        "make figure",
        "python benchmarks/second_steps.py",
        "python -m neuralrace.second_steps",
        "pip install -e '.[gpu]'",
        "pip install 'neuralrace[cluster]'",
    ],
)
def test_a_command_that_does_not_exist_is_found(line):
    assert wrong_command(line)


@pytest.mark.parametrize(
    "span",
    [
        "betas",
        "training.momentum",
        "training: {optimiser: {name: momentum, beta: 0.9}}",
        "dataset.name: digit",
        "only: 3",
        "nr.simulates",
        "theory.modes.strength_of",
        "needs.yaml",
        "theory/race.py",
        "results/claims.txt",
        "--prefers anna.zip",
        "half-times",
    ],
)
def test_a_name_that_does_not_exist_is_found(span):
    assert wrong_name(span, REPOSITORY / "docs/index.md")
