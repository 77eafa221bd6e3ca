"""Builders of claim files and metrics files."""

import json

import numpy as np
import xarray as xr
import yaml

from neuralrace.claims.judge import judge_papers
from neuralrace.config.cell import Cell
from neuralrace.results import files
from neuralrace.results.checksums import fingerprint
from neuralrace.results.schema import SCHEMA_VERSION

SOURCE = {"title": "On learning", "authors": "A. Author", "text_sha256": "0" * 64}
SETUP = {"locator": "sec. 2", "printed": {"network": "one hidden layer"}}


class ClaimsFolder:
    """A folder with metrics files and one or more claim files."""

    def __init__(self, root):
        self.root = root
        self.results = root / "results"
        self.cells = []

    def metrics(self, cell, spec=None, **variables):
        """Writes a metrics file: metrics as (dims, values), coordinates as (dim, values).

        The specification is that of a `Cell`, or keys of one.
        """
        paper, experiment, label = cell.split("/")
        attrs = dict.fromkeys(("code_sha256", "versions"), "x")
        attrs |= {"paper": paper, "experiment": experiment, "cell": label}
        attrs |= {"kind": "metrics", "schema": SCHEMA_VERSION}
        if isinstance(spec, Cell):
            attrs |= {"spec": spec.canonical(), "spec_sha256": spec.sha256()}
        else:
            attrs["spec"] = json.dumps(spec or {})
            attrs["spec_sha256"] = fingerprint(attrs["spec"])
        described = {"long_name": "made up", "units": "1"}
        data = {n: (*v, described) for n, v in variables.items() if isinstance(v[0], tuple)}
        coords = {n: v for n, v in variables.items() if not isinstance(v[0], tuple)}
        files.write_result(xr.Dataset(data, coords, attrs), self.results / cell / "metrics.nc")
        self.cells.append(cell)

    def attributes(self, cell):
        """Attributes of a metrics file."""
        return files.read_result(self.results / cell / "metrics.nc").attrs

    def per_seed(self, cell, values, spec=None):
        """Writes a metrics file with one value per seed, `m`."""
        values = np.asarray(values, float)
        self.metrics(cell, spec, m=(("seed",), values), seed=("seed", np.arange(len(values))))

    def write(self, *claims, findings=(), paper="deep_linear", **keys):
        """Writes a claim file, with the set-up `main`; returns its path."""
        path = self.root / paper / "claims.yaml"
        path.parent.mkdir(exist_ok=True)
        content = {"source": SOURCE, "setups": {"main": SETUP}, "claims": list(claims)}
        content |= {"findings": list(findings)} | keys
        path.write_text(yaml.safe_dump(content), encoding="utf-8")
        return path

    def judge(self, *claims, **keys):
        """The rows of these claims."""
        return judge_papers([self.write(*claims, **keys)], self.results, self.cells)[0]

    def judge_findings(self, *findings):
        """The rows of these findings."""
        return judge_papers([self.write(findings=findings)], self.results, self.cells)[1]


def measure(cells="deep_linear/*", metric="m", **keys):
    return {"cells": cells, "metric": metric, **keys}


def finding(kind="equality", value=1.0, tolerance=0.1, **changes):
    """A finding as in YAML, with a remote alternative; keys that are None are left out."""
    if isinstance(tolerance, int | float):
        tolerance = {"value": tolerance, "why": "finite step"}
    far = -1e6 if kind == "ordering" or changes.get("relation") == ">=" else 1e6
    content = {
        "id": "a-finding",
        "statement": "Something is so.",
        "kind": kind,
        "measure": None if "sequence" in changes else measure(),
        "expected": {"value": value, "source": "eq. 1"},
        "tolerance": tolerance,
        "alternatives": [{"name": "far off", "value": far, "source": "nowhere"}],
    }
    return {key: value for key, value in (content | changes).items() if value is not None}


def claim(kind="equality", value=1.0, tolerance=0.1, expect="reproduced", **changes):
    """A claim as in YAML, with a remote alternative; keys that are None are left out."""
    of_claim = {
        "id": "a-claim",
        "locator": "eq. 1",
        "quote": "It is so.",
        "setup": "main",
        "expect": expect,
        "reason": None if expect in ("reproduced", "identity", "analogue") else "it is known",
        "identity": "it is one" if expect == "identity" else None,
        "analogue": "digits for photographs" if expect == "analogue" else None,
        "fair": "so it reads" if expect == "wrong" else None,
        "grade": "slip" if expect == "wrong" else None,
    }
    return finding(kind, value, tolerance, **(of_claim | changes))


def unassessed(**changes):
    """A claim that is not assessed, and has no measure."""
    absent = dict.fromkeys(("measure", "expected", "alternatives"))
    content = claim(**({"expect": "not assessed", "reason": "other data"} | absent | changes))
    return {key: value for key, value in content.items() if key != "tolerance"}
