"""Claim files and metrics files for the tests."""

import json

import numpy as np
import xarray as xr
import yaml

from neuralrace.claims.judge import judge_papers
from neuralrace.records import files


class Workplace:
    """A folder with metrics files and one or more claim files."""

    def __init__(self, root):
        self.root = root
        self.results = root / "results"
        self.cells = []

    def metrics(self, cell, spec=None, **variables):
        """A metrics file: metrics as (tuple of dims, values), coordinates as (dim, values)."""
        paper, experiment, label = cell.split("/")
        attrs = dict.fromkeys(("spec_sha256", "code_sha256", "versions"), "x")
        attrs |= {"paper": paper, "experiment": experiment, "cell": label}
        attrs |= {"kind": "metrics", "schema": "1", "spec": json.dumps(spec or {})}
        described = {"long_name": "made up", "units": "1"}
        data = {n: (*v, described) for n, v in variables.items() if isinstance(v[0], tuple)}
        coords = {n: v for n, v in variables.items() if not isinstance(v[0], tuple)}
        files.write(xr.Dataset(data, coords, attrs), self.results / cell / "metrics.nc")
        self.cells.append(cell)

    def per_seed(self, cell, values, spec=None):
        """A metrics file with one value per seed, `m`."""
        values = np.asarray(values, float)
        self.metrics(cell, spec, m=(("seed",), values), seed=("seed", np.arange(len(values))))

    def write(self, *claims, paper="deep_linear"):
        """A claims file."""
        path = self.root / f"{paper}.yaml"
        path.write_text(yaml.safe_dump({"claims": list(claims)}))
        return path

    def judge(self, *claims):
        """Rows of the given claims."""
        return judge_papers([self.write(*claims)], self.results, self.cells)


def measure(cells="deep_linear/*", metric="m", **more):
    return {"cells": cells, "metric": metric, **more}


def claim(kind="equality", value=1.0, tolerance=0.1, expect="reproduced", **more):
    """A claim as it is read from YAML; what is None is left out."""
    written = {
        "id": "a-claim",
        "locator": "eq. 1",
        "statement": "Something is so.",
        "kind": kind,
        "measure": None if "sequence" in more else measure(),
        "expected": {"value": value, "source": "eq. 1"},
        "tolerance": {"value": tolerance, "why": "finite step"},
        "expect": expect,
        "reason": None if expect == "reproduced" else "it is known",
    }
    return {key: value for key, value in (written | more).items() if value is not None}
