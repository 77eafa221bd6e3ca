"""Schema of result files: every variable with its dimensions, meaning and unit.

There are three kinds of files: trajectory (recorded in training), theory (solutions for the same
runs) and metrics (computed from both). All have the axes `init_scale` and `seed`.
"""

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Literal

import numpy as np
import xarray as xr

from neuralrace.config.variables import COMMON_VARIABLES, REGISTRIES, RUN_AXES, FileKind
from neuralrace.errors import UserError
from neuralrace.extensions.registry import OBSERVABLES, SOLUTIONS, Variable
from neuralrace.results.checksums import fingerprint

SCHEMA_VERSION = "3"
COORDINATES: dict[str, str] = {
    "init_scale": "factor on every initial weight",
    "seed": "run seed",
    "time": "training time",
    "snapshot": "training time of snapshots",
    "other_snapshot": "the same snapshots",
    "flow_time": "gradient-flow time in units of tau: learning rate x steps x loss normalisation",
    "snapshot_flow_time": "gradient-flow time of snapshots in units of tau",
    "task": "task of a sequence, in the order of training",
    "layer": "layer of weights, 1 nearest the input",
    "pair": "hidden layer between adjacent layers of weights (l, l+1), by l",
    "mode": "singular mode of the task, strongest first",
    "other_mode": "the other mode of a pair",
    "mode_pair": "two modes, by their numbers",
    "depth": "layers of weights",
    "singular_mode": "singular value of a layer, largest first",
    "vector": "hidden-layer image of a singular vector: encoders W_1 v_k, then decoders W_2^T u_k",
    "other_vector": "the same vectors",
    "solution": "theory that the variable comes from",
    "unit": "hidden unit",
    "input": "input unit",
    "output": "output unit",
    "sample": "sample of the dataset",
    "other_sample": "the same samples",
    "pathway": "pathway of a gated network, as its gating scheme lists them, or of a graph",
    "pathway_mode": "singular value of a pathway's map, largest first",
    "candidate": "gated network that may stand for a ReLU network",
    "gates_from": "source of the gates: the network at its start or end, a candidate, or a search",
    "refreshes": "refreshes of gates in the time of training",
    "equation": "equation of the notes",
    "moment": "second moment of gated inputs, and whose eigenvectors it is seen in",
    "fitted_on": "samples that least squares is fitted on",
    "loss_level": "share of the initial loss",
    "plateau": "plateau of the loss, in the order of training",
    "clusters": "number of clusters of gate patterns",
    "source": "when the clustered gates are from: all of training, or its start",
    "run": "run that an imitation is trained for, by its seed",
    "open_in": "contexts that each context pathway of a family is open in",
    "hidden_layer": "hidden layer, 1 nearest the input",
    "ticket": "rule by which hidden units are kept, to train them again",
    "kept": "share of the hidden units that are kept",
    "pattern_kind": "kind of gate patterns that are counted",
    "open_contexts": "contexts in which a unit is open on more than half of the samples",
    "removed": "kind of what is removed from a correlation: input, output or sample",
    "family": "family of pathway blocks, as the gating scheme lists them",
    "domain": "input domain of an encoder, output domain of a decoder",
    "input_domain": "input domain",
    "output_domain": "output domain",
    "item": "item of a domain",
    "domain_item": "items of all input domains, domain by domain",
    "other_domain_item": "the same items",
    "corner": "corner of the XoR square",
    "entry": "entry of the benchmark: a solution, or a baseline that needs simulation",
}
"""Meaning of each coordinate."""
NUMBERED = (
    "task",
    "layer",
    "pair",
    "mode",
    "singular_mode",
    "pathway",
    "pathway_mode",
    "unit",
    "family",
    "domain",
    "input_domain",
    "output_domain",
)
"""Dimensions whose entries are numbered from 1 where they have no other labels."""
TRAJECTORY = dict(COMMON_VARIABLES["trajectory"])
"""Variables of trajectory files by name; `{layer}` and `{below}` in a name stand for the numbers of
a layer and of the one below it."""
for _observable, _entry in OBSERVABLES.items():
    for _name, _variable in _entry.declaration.outputs.items():
        if TRAJECTORY.setdefault(_name, _variable) != _variable:
            raise ValueError(
                f"{_entry.module}: observable {_observable!r}: {_name!r} means something else "
                "already"
            )


@cache
def theory_variables() -> dict[str, Variable]:
    """Variables of theory files, as solutions declare them.

    A variable whose dimensions begin with `solution` may come from several solutions. Any other
    variable comes from the last solution that computes it.
    """
    declared = (entry.declaration.outputs for entry in SOLUTIONS.values())
    return {name: entry for variables in declared for name, entry in variables.items()}


def variable(kind: Literal["trajectory", "theory"], name: str) -> Variable | None:
    """Definition of a variable of trajectory or theory files; None for an unknown name."""
    # the declarations of solutions are read only where they are needed
    table = TRAJECTORY if kind == "trajectory" else theory_variables()
    stem, _, number = name.rpartition("_")
    pattern = table.get(f"{stem}_{{layer}}")
    if pattern is None or not re.fullmatch(r"[1-9]\d*", number):
        return table.get(name)
    numbers = {"layer": number, "below": int(number) - 1}
    dims = tuple(dim.format(**numbers) for dim in pattern.dims)
    return Variable(dims, pattern.long_name.format(**numbers), pattern.units)


def build(
    kind: Literal["trajectory", "theory"],
    arrays: Mapping[str, np.ndarray],
    coords: Mapping[str, tuple[str, np.ndarray, str] | np.ndarray],
    attrs: Mapping[str, str],
) -> xr.Dataset:
    """A dataset that follows the schema.

    Args:
        kind: trajectory or theory.
        arrays: values by name, axes (init_scale, seed, *dims of the variable).
        coords: values by name; or (dimension, values, unit) where the dimension has another name or
            the unit is not 1.
        attrs: provenance of the file.

    Raises:
        KeyError: the schema has no variable of that name.
    """
    variables = {}
    for name, values in arrays.items():
        declared = variable(kind, name)
        if declared is None:
            raise KeyError(f"{name} is no variable of a {kind} file")
        described = {"long_name": declared.long_name, "units": declared.units}
        variables[name] = ((*RUN_AXES, *declared.dims), values, described)
    dataset = xr.Dataset(variables, attrs=dict(attrs) | {"kind": kind, "schema": SCHEMA_VERSION})
    numbers = {
        str(dim): np.arange(1, size + 1)
        for dim, size in dataset.sizes.items()
        if dim in NUMBERED and dim not in coords
    }
    axes = {}
    for name, value in (dict(coords) | numbers).items():
        dimension, values, units = value if isinstance(value, tuple) else (name, value, "1")
        axes[name] = (dimension, values, {"long_name": COORDINATES[name], "units": units})
    return dataset.assign_coords(axes)


def check_schema(dataset: xr.Dataset, path: object, kind: FileKind | None = None) -> None:
    """Checks a dataset against the schema.

    Raises:
        UserError: wrong kind or version, a missing attribute, run axis, unit or variable.
    """
    check_origin(dataset.attrs, map(str, dataset.variables), path, kind)
    kind = dataset.attrs["kind"]
    if kind != "metrics" and not set(RUN_AXES) <= set(dataset.dims):
        raise _wrong_content(path, f"lacks the axes {RUN_AXES}")
    if kind == "trajectory" and "loss" not in dataset:
        raise _wrong_content(path, "lacks the variable 'loss'")
    if bare := [
        str(name)
        for name, variable in dataset.variables.items()
        if name in dataset.data_vars and not {"long_name", "units"} <= variable.attrs.keys()
    ]:
        raise _wrong_content(path, f"has variables without long_name or units: {bare}")


def check_origin(
    attrs: Mapping[str, Any], variables: Iterable[str], path: object, kind: FileKind | None = None
) -> None:
    """Checks the attributes of a file against the schema.

    Args:
        attrs: attributes of the file.
        variables: names of all variables in the file.
        path: path of the file, for messages.
        kind: the expected kind of file; any when absent.

    Raises:
        UserError: wrong kind or version, an attribute that is missing or no text, a specification
            whose checksum differs from `spec_sha256`, or a lost variable.
    """
    texts = {name: value for name, value in attrs.items() if isinstance(value, str)}
    recorded = texts.get("kind")
    if recorded not in REGISTRIES or (kind is not None and recorded != kind):
        raise _wrong_content(path, f"is no {kind or 'result'} file (its kind is {recorded!r})")
    if (version := texts.get("schema")) != SCHEMA_VERSION:
        raise _wrong_content(path, f"has schema {version!r}, this version reads {SCHEMA_VERSION!r}")
    missing = {"spec", "spec_sha256", "code_sha256", "versions", "variables"} - texts.keys()
    if missing:
        raise _wrong_content(path, f"lacks the attributes {sorted(missing)}")
    if fingerprint(texts["spec"]) != texts["spec_sha256"]:
        raise _wrong_content(path, "has a specification (spec) that does not match its spec_sha256")
    if not _is_object(texts["spec"]):
        raise _wrong_content(path, "has a specification (spec) that is no JSON object")
    if lost := set(attrs["variables"].split()).difference(variables):
        raise _wrong_content(path, f"lacks the variables {sorted(lost)}")


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _wrong_content(path: object, problem: str) -> UserError:
    remedy = "if the workflow wrote it, delete it and run the workflow again"
    return UserError(problem, file=path, remedy=remedy)
