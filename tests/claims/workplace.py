"""Claim files and metrics files for the tests."""

import json

import numpy as np
import xarray as xr
import yaml

from neuralrace.claims.judge import judge_papers
from neuralrace.results import files
from neuralrace.results.checksums import fingerprint
from neuralrace.results.schema import SCHEMA_VERSION

SOURCE = {"title": "On learning", "authors": "A. Author", "text_sha256": "0" * 64}
SETUP = {"locator": "sec. 2", "printed": {"network": "one hidden layer"}}


class Workplace:
    """A folder with metrics files and one or more claim files."""

    def __init__(self, root):
        self.root = root
        self.results = root / "results"
        self.cells = []

    def metrics(self, cell, spec=None, **variables):
        """A metrics file: metrics as (tuple of dims, values), coordinates as (dim, values)."""
        paper, experiment, label = cell.split("/")
        attrs = dict.fromkeys(("code_sha256", "versions"), "x")
        attrs |= {"paper": paper, "experiment": experiment, "cell": label}
        attrs |= {"kind": "metrics", "schema": SCHEMA_VERSION, "spec": json.dumps(spec or {})}
        attrs["spec_sha256"] = fingerprint(attrs["spec"])
        described = {"long_name": "made up", "units": "1"}
        data = {n: (*v, described) for n, v in variables.items() if isinstance(v[0], tuple)}
        coords = {n: v for n, v in variables.items() if not isinstance(v[0], tuple)}
        files.write_result(xr.Dataset(data, coords, attrs), self.results / cell / "metrics.nc")
        self.cells.append(cell)

    def per_seed(self, cell, values, spec=None):
        """A metrics file with one value per seed, `m`."""
        values = np.asarray(values, float)
        self.metrics(cell, spec, m=(("seed",), values), seed=("seed", np.arange(len(values))))

    def write(self, *claims, findings=(), paper="deep_linear", **more):
        """A claims file, with the set-up `main`."""
        path = self.root / paper / "claims.yaml"
        path.parent.mkdir(exist_ok=True)
        written = {"source": SOURCE, "setups": {"main": SETUP}, "claims": list(claims)}
        written |= {"findings": list(findings)} | more
        path.write_text(yaml.safe_dump(written), encoding="utf-8")
        return path

    def judge(self, *claims, **more):
        """Rows of the given claims."""
        return judge_papers([self.write(*claims, **more)], self.results, self.cells)[0]

    def find(self, *findings):
        """Rows of the given findings."""
        return judge_papers([self.write(findings=findings)], self.results, self.cells)[1]


def measure(cells="deep_linear/*", metric="m", **more):
    return {"cells": cells, "metric": metric, **more}


def finding(kind="equality", value=1.0, tolerance=0.1, **more):
    """A finding as it is read from YAML, with an alternative far off; what is None is left out."""
    if isinstance(tolerance, int | float):
        tolerance = {"value": tolerance, "why": "finite step"}
    far = -1e6 if kind == "ordering" or more.get("relation") == ">=" else 1e6
    written = {
        "id": "a-finding",
        "statement": "Something is so.",
        "kind": kind,
        "measure": None if "sequence" in more else measure(),
        "expected": {"value": value, "source": "eq. 1"},
        "tolerance": tolerance,
        "alternatives": [{"name": "far off", "value": far, "source": "nowhere"}],
    }
    return {key: value for key, value in (written | more).items() if value is not None}


def claim(kind="equality", value=1.0, tolerance=0.1, expect="reproduced", **more):
    """A claim as it is read from YAML, with an alternative far off; what is None is left out."""
    of_claim = {
        "id": "a-claim",
        "locator": "eq. 1",
        "quote": "It is so.",
        "setup": "main",
        "expect": expect,
        "reason": None if expect == "reproduced" else "it is known",
        "fair": "so it reads" if expect == "discrepant" else None,
    }
    return finding(kind, value, tolerance, **(of_claim | more))


def unassessed(**more):
    """A claim that nothing is measured for."""
    nothing = dict.fromkeys(("measure", "expected", "alternatives"))
    written = claim(**({"expect": "not assessed", "reason": "other data"} | nothing | more))
    return {key: value for key, value in written.items() if key != "tolerance"}
