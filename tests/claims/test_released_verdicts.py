"""The verdicts on variants that the repository carries: up to date, and right on a sample."""

import json
import os
from pathlib import Path

import pytest

from builders import REPOSITORY
from compiling import QUICK
from neuralrace.claims.spec import read_claims
from neuralrace.claims.stored import stored_verdicts
from neuralrace.claims.table import read_variants
from neuralrace.claims.variants import judged_as, varied_statements
from neuralrace.config.cost import estimate_cost
from neuralrace.config.load import config_folder
from neuralrace.config.variants import VARIANT_SETS
from neuralrace.workflow.study import Study
from warm_python import PYTHON

STORED = config_folder() / "verdicts.json"
SAMPLE = 2
"""Statements of each paper whose variants are run again: the cheapest ones."""


@pytest.fixture(scope="module")
def study():
    return Study({})


@pytest.fixture(scope="module")
def claims(study):
    return read_claims([Path(file) for file in study.claims_files])


def released(group):
    return read_variants(config_folder() / f"{group}.json").statements


@pytest.mark.parametrize("group", VARIANT_SETS)
def test_every_judged_statement_has_a_verdict_that_is_up_to_date(group, study, claims):
    cells, found = study.plan.cells, released(group)
    stale = set()
    for statement, variant, _ in varied_statements(claims, cells, group):
        checksum = judged_as(statement, cells, lambda cell: cells[cell].sha256())
        known = found.get(statement.id)
        tried = known and {(each.setting, each.factor) for each in known.verdicts}
        if not known or known.judged_as != checksum or tuple(variant) not in tried:
            stale.add(statement.id)
    assert not stale, f"run make {group} again"


def test_every_judged_statement_has_a_stored_verdict_that_is_up_to_date(claims):
    read = stored_verdicts(STORED, claims)
    assert read.stale == [], "run make verdicts again"
    assert [row.surprise for row in (*read.claims, *read.findings) if row.surprise] == []


RUN = """
import json, sys
from neuralrace.training.environment import set_up_environment
set_up_environment(1, gpu=False)
from pathlib import Path
from neuralrace.claims.judge import judge
from neuralrace.claims.spec import read_claims
from neuralrace.claims.variants import at_variant, varied_statements
from neuralrace.config.variants import FRESH
from neuralrace.results.cells import open_results
from neuralrace.workflow import variants
from neuralrace.workflow.job import job
from neuralrace.workflow.study import Study

root, names = Path(sys.argv[1]), sys.argv[2:]
study = Study({})
claims = read_claims([Path(file) for file in study.claims_files])
chosen = {
    statement.id: (statement, cells)
    for statement, _, cells in varied_statements(claims, study.plan.cells, "blind")
    if statement.id in names
}
runs = {}
for _, cells in chosen.values():
    for name, cell in cells.items():
        experiment, _, label = name.rpartition("/")
        runs.setdefault(experiment, {})[f"fresh/{label}"] = cell.canonical()
for experiment, cells in runs.items():
    output = str(root / experiment / "failed.json")
    code = study.variant_code("blind", experiment)
    with job(experiment, str(root / "log"), (), (output,)) as this:
        variants.run(this, cells, {label: code[label] for label in cells})
results = open_results(root, study.plan.cells, FRESH.name)
verdicts = {}
for name, (statement, _) in chosen.items():
    outcome = judge(at_variant(statement, FRESH), results)
    verdicts[name] = outcome["verdict"], outcome.get("measured")
(root / "verdicts.json").write_text(json.dumps(verdicts))
"""


def test_verdicts_with_fresh_seeds_come_out_again_on_a_sample(study, claims, tmp_path):
    costs = {}
    for statement, _, cells in varied_statements(claims, study.plan.cells, "blind"):
        (paper,) = {name.split("/")[0] for name in cells}
        seconds = sum(estimate_cost(cell).seconds() for cell in cells.values())
        costs.setdefault(paper, []).append((seconds, statement.id))
    names = [name for each in costs.values() for _, name in sorted(each)[:SAMPLE]]
    done = PYTHON.run(["-c", RUN, str(tmp_path), *names], REPOSITORY, os.environ | QUICK)
    assert done.returncode == 0, done.stderr
    found = released("blind")
    verdicts = json.loads((tmp_path / "verdicts.json").read_text())
    assert set(verdicts) == set(names)
    for name, (verdict, measured) in verdicts.items():
        (known,) = found[name].verdicts
        assert verdict == known.verdict, name
        # another processor and other versions round differently, and training amplifies that
        assert measured == pytest.approx(known.measured, rel=0.05, abs=1e-3), name
