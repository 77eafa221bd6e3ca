"""The generated manual and schema of configurations agree with the models and with each other."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from snakemake.utils import update_config

from builders import REPOSITORY
from neuralrace.config.cost import estimate_cost
from neuralrace.config.load import read_plan
from neuralrace.config.manual import config_schema, key_lines, key_tables
from neuralrace.config.reference import reference
from neuralrace.config.yaml import read_yaml
from neuralrace.errors import UserError
from neuralrace.extensions.registry import METRICS, OBSERVABLES, SOLUTIONS

CONFIG = REPOSITORY / "config"
REFERENCE = reference()
OTHERS = ("claims.yaml", "held_out.yaml", "findings.yaml")
"""Files of `config` that configure no experiments."""
FILES = sorted(path for path in CONFIG.glob("*/*.yaml") if path.name not in OTHERS)
PAPERS = sorted(path.parent for path in CONFIG.glob("*/experiments.yaml"))
MANUAL = (CONFIG / "README.md").read_text(encoding="utf-8")
SCHEMA = Draft202012Validator(config_schema())


def blocks(language: str) -> list[str]:
    """Code blocks of the manual in one language."""
    return re.findall(rf"```{language}\n(.*?)```", MANUAL, flags=re.DOTALL)


EXAMPLE = next(yaml.safe_load(block) for block in blocks("yaml") if "sweep:" in block)


def keys(node: dict, prefix: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Paths of all keys of nested mappings."""
    found = []
    for key, value in node.items():
        found.append((*prefix, key))
        if isinstance(value, dict):
            found += keys(value, (*prefix, key))
    return found


def changed(path: tuple[str, ...], value: object) -> dict:
    """The example with one key set to another value."""
    config = json.loads(json.dumps(EXAMPLE))
    node = config
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    return config


def accepted(config: dict) -> bool:
    """Whether the plan can be read."""
    try:
        read_plan(config, {"example.yaml": config})
    except UserError:
        return False
    return True


def test_schema_is_written_to_the_file_that_is_named(tmp_path: Path):
    file = tmp_path / "schema.json"
    subprocess.run([sys.executable, "-m", "neuralrace.config.manual", file], check=True)
    assert json.loads(file.read_text(encoding="utf-8")) == config_schema()


def test_lines_show_the_keys_inside_a_prefix():
    lines = key_lines("training.optimiser")
    assert "training.optimiser.name: momentum" in lines
    assert any(line.startswith("  training.optimiser.momentum: ") for line in lines)
    assert not any("learning_rate" in line for line in lines)
    assert len(key_lines()) > len(lines) > 0
    assert key_lines("train") == []


def test_reference_describes_every_declared_variable():
    headings = re.findall(r"^### (\w+) `(\w+)`$", REFERENCE, flags=re.MULTILINE)
    assert headings == [
        (kind, name)
        for kind, entries in (
            ("Metric", METRICS), ("Solution", SOLUTIONS), ("Observable", OBSERVABLES)
        )
        for name in entries
    ]  # fmt: skip
    places = {f"#{kind}-{name}".lower() for kind, name in headings}
    assert set(re.findall(r"\(#(\w+-\w+)\)", REFERENCE)) == {place[1:] for place in places}
    entries = [*METRICS.values(), *SOLUTIONS.values(), *OBSERVABLES.values()]
    sections = re.split(r"^### ", REFERENCE, flags=re.MULTILINE)[1:]
    for entry, section in zip(entries, sections, strict=True):
        rows = re.findall(r"^\| `(.+?)` \|.*\| (.+) \|$", section, flags=re.MULTILINE)
        assert [name for name, _ in rows] == list(entry.declaration.variables)
        assert all(name in section for name in entry.declaration.requires.replace("|", " ").split())
        assert ("Source: " in section) == ("Source: " in entry.text)


def test_generating_the_manual_imports_no_heavy_package():
    heavy = ("jax", "flax", "optax", "xarray", "netCDF4", "matplotlib", "sklearn", "scipy")
    code = (
        "import sys; from neuralrace.config.manual import *\n"
        "from neuralrace.config.reference import reference\n"
        "config_schema(); key_tables(); reference()\n"
        f"print([n for n in {heavy} if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_schema_is_a_schema():
    Draft202012Validator.check_schema(config_schema())


def test_every_key_has_a_meaning():
    rows = [line for line in key_tables().splitlines() if line.startswith("| `")]
    assert rows
    for row in rows:
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]]
        assert len(cells) == 4
        assert all(cells), row
        assert cells[3].endswith("."), row


@pytest.mark.parametrize("folder", PAPERS, ids=lambda path: path.name)
def test_each_paper_has_its_files(folder):
    names = {path.name for path in folder.iterdir()}
    assert {"experiments.yaml", "claims.yaml", "smoke.yaml"} <= names
    for path in folder.glob("*.yaml"):
        if path.name != "claims.yaml":
            content = yaml.safe_load(path.read_text(encoding="utf-8"))
            assert list(content["experiments"]) == [folder.name], path


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_schema_accepts_shipped_configuration(path: Path):
    SCHEMA.validate(yaml.safe_load(path.read_text(encoding="utf-8")))


def overridden(name, **settings):
    """The plan of the default configuration under all files of a name."""
    merged: dict = {}
    for path in (*CONFIG.glob("*/experiments.yaml"), *CONFIG.glob(f"*/{name}.yaml")):
        update_config(merged, yaml.safe_load(path.read_text(encoding="utf-8")))
    return read_plan(merged | settings, {})


@pytest.mark.parametrize("name", ["smoke", "full_scale", "mnist", "cifar"])
def test_overrides_make_a_plan_with_the_default_configuration(name):
    plan = overridden(name)
    sizes = {cell.dataset.images.name for cell in plan.cells.values() if is_images(cell)}
    assert sizes == {
        "smoke": {"digits"}, "full_scale": {"mnist", "cifar10", "digits"}, "mnist": {"mnist"},
        "cifar": {"cifar10_files", "digits"},
    }[name]  # fmt: skip


def test_full_scale_is_estimated_at_less_than_an_hour_of_a_gpu():
    plan = overridden("full_scale", gpus=1, only=["neural_race"], memory_mb=128000)
    costs = [estimate_cost(cell, gpu=True) for cell in plan.cells.values()]
    on_gpu = [cost for cost in costs if cost.device == "gpu"]
    compiling = {cost.program: cost.compile for cost in on_gpu}
    assert on_gpu
    assert sum(cost.train for cost in on_gpu) + sum(compiling.values()) < 3600


def is_images(cell):
    return cell.dataset.name == "transformed_images"


def test_example_of_the_manual_is_accepted():
    SCHEMA.validate(EXAMPLE)
    plan = read_plan(EXAMPLE, {"mine.yaml": EXAMPLE})
    cells = re.findall(r"`(deep_linear/stages/\S+)`", MANUAL)
    assert len(plan.cells) == 4
    assert cells
    assert set(cells) <= set(plan.cells)


def test_message_of_the_manual_is_what_is_said():
    config = changed(("experiments", "deep_linear", "stages", "training", "learning_rate"), "fast")
    del config["experiments"]["deep_linear"]["stages"]["sweep"]["training.learning_rate"]
    with pytest.raises(UserError) as caught:
        read_plan(config, {"mine.yaml": config})
    assert [str(caught.value) + "\n"] == blocks("text")


def test_traps_of_the_manual_are_what_yaml_does(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("[1e-3, 010, yes, no, 1:30, 2024-01-01, {<<: {a: 1}}]")
    assert read_yaml(path) == [0.001, 10, "yes", "no", "1:30", "2024-01-01", {"a": 1}]
    assert yaml.safe_load("a: 1\na: 2") == {"a": 2}


@pytest.mark.parametrize("path", keys(EXAMPLE), ids=".".join)
def test_schema_and_plan_refuse_alike(path: tuple[str, ...]):
    """A key of no sense beside each key, and a value of no sense in its place."""
    for config in (changed((*path[:-1], "unheard_of"), {"unheard_of": 1}), changed(path, "no")):
        assert not accepted(config)
        assert not SCHEMA.is_valid(config)


@given(
    learning_rate=st.floats(-1, 1),
    activation=st.sampled_from(["linear", "relu", "Relu", ""]),
    seeds=st.integers(-1, 2),
)
def test_schema_and_plan_agree(learning_rate: float, activation: str, seeds: int):
    config = changed(("experiments", "deep_linear", "stages", "seeds"), seeds)
    del config["experiments"]["deep_linear"]["stages"]["solutions"]  # what they need is no schema's
    config["experiments"]["deep_linear"]["stages"]["sweep"] = {
        "training.learning_rate": [learning_rate],
        "network.activation": [activation],
    }
    assert SCHEMA.is_valid(config) == accepted(config)
