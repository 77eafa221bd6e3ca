"""A job makes what was planned, by code that nobody touches, or leaves what was there."""

import json
import logging

import pytest

from neuralrace import provenance
from neuralrace.atomic import keep
from neuralrace.errors import UserError
from neuralrace.job import Job
from neuralrace.make import Workshop
from neuralrace.schedule import keys
from neuralrace.seal import seal_file
from neuralrace.spec import Cell

CELL = "paper/experiment/main"
SPEC = {
    "dataset": {"name": "modes", "singular_values": [2.0, 1.0], "inputs": 3, "outputs": 2},
    "network": {"name": "layered", "hidden": [2]},
    "init": {"name": "aligned"},
    "init_scales": [0.1],
    "seeds": 1,
    "training": {"learning_rate": 0.02, "steps": 40},
    "record": {"every": 10, "observables": ["mode_strength"]},
    "solutions": ["aligned_modes"],
    "metrics": ["analytic_fit"],
}
KINDS = {"trajectory", "theory", "metrics"}


@pytest.fixture
def cell():
    return Cell.model_validate_json(json.dumps(SPEC))


@pytest.fixture
def shop(tmp_path):
    return Workshop(tmp_path, 300.0, Job(logging.getLogger("neuralrace")))


@pytest.fixture
def made(shop, cell):
    """The files of a cell, by kind, once they are made."""
    shop.make(CELL, cell, keys(CELL, cell), ())
    return {kind: shop.root / CELL / f"{kind}.nc" for kind in KINDS}


@pytest.fixture
def edited(tmp_path, monkeypatch):
    """A source file that was edited since its digest was taken, and taken back."""
    source = tmp_path / "module.py"
    source.write_text("TRUE = 1\n")
    monkeypatch.setattr(provenance, "READ", {source: provenance._state(source)})
    source.write_text("TRUE = 2\n")
    source.write_text("TRUE = 1\n")


def test_other_code_than_was_planned_makes_nothing(shop, cell):
    planned = keys(CELL, cell) | {"metrics": "by code of before"}
    with pytest.raises(UserError, match="edited after this run was planned"):
        shop.make(CELL, cell, planned, ())
    assert not list(shop.root.rglob("*.nc"))


@pytest.mark.usefixtures("edited")
def test_code_that_is_edited_meanwhile_makes_nothing(shop, cell):
    with pytest.raises(UserError, match=r"module\.py: was edited while this job ran"):
        shop.make(CELL, cell, keys(CELL, cell), ())
    assert not list(shop.root.rglob("*.nc"))


def test_what_cannot_be_made_leaves_what_was_there(shop, cell, made, request):
    before = {kind: path.read_bytes() for kind, path in made.items()}
    for path in made.values():
        keep(path)
        path.unlink()  # as Snakemake does before it starts the job
    request.getfixturevalue("edited")
    with pytest.raises(UserError, match="was edited"):
        shop.make(CELL, cell, keys(CELL, cell), ())
    assert {kind: path.read_bytes() for kind, path in made.items()} == before


def test_a_damaged_file_is_set_aside_and_made_as_it_was(shop, cell, made):
    path = made["trajectory"]
    sound, damaged = path.read_bytes(), path.read_bytes()[:-1]
    path.write_bytes(damaged)
    shop.make(CELL, cell, {"trajectory": keys(CELL, cell)["trajectory"]}, ())
    assert path.read_bytes() == sound
    assert path.with_name("trajectory.nc.damaged").read_bytes() == damaged


def test_metrics_of_a_trajectory_that_was_not_planned_are_not_made(shop, cell, made):
    seal_file(made["trajectory"]).write_text(f"# made from another\n{'0' * 64}  trajectory.nc\n")
    made["metrics"].unlink()
    with pytest.raises(UserError, match=r"trajectory\.nc: was not made from the present config"):
        shop.make(CELL, cell, {"metrics": keys(CELL, cell)["metrics"]}, ())
    assert not made["metrics"].exists()
