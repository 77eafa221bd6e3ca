"""Contents of `neuralrace show`: a cell before it runs, or a result file; and their layout."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from neuralrace.extensions.registry import SOLUTIONS

if TYPE_CHECKING:  # the layout alone, as of names that are listed, needs no models
    from neuralrace.config.cell import Cell


def about_cell(cell: "Cell", gpu: bool) -> dict[str, Any]:
    """Sizes, estimated time (core-seconds) and memory (MB) of a cell, and which theory applies.

    Args:
        cell: specification of the cell.
        gpu: whether there is a GPU to train on.

    Raises:
        UserError: the dataset cannot be loaded, and its sizes are known only then.
    """
    from neuralrace.config.cost import estimate_cost
    from neuralrace.config.requirements import unmet

    cost, sizes = estimate_cost(cell, gpu), cell.dataset.sizes
    run = cell.resolved.arithmetic(cell.dataset, sizes, cell.init, cell.training)
    unmet_by_theory = {
        name: unmet(cell, entry.declaration.requires, data=True)
        for name, entry in SOLUTIONS.items()
    }
    return {
        **({"data": data} if (data := cell.dataset.describe()) else {}),
        "runs": len(cell.init_scales) * cell.seeds,
        **sizes._asdict(),
        "weights": int(run.weights),
        "core_seconds": {
            stage: round(getattr(cost, stage), 2)
            for stage in ("compile", "train", "solve", "measure")
        },
        "memory_mb": cost.memory_mb,
        "device": cost.device,
        "theories_that_apply": [name for name, reason in unmet_by_theory.items() if not reason],
        "specification": cell.model_dump(mode="json"),
        "theories_that_do_not": {
            name: str(reason) for name, reason in unmet_by_theory.items() if reason
        },
    }


def about_file(path: Path) -> dict[str, Any]:
    """Attributes of a result file, and dimensions, meaning and unit of its variables.

    Raises:
        UserError: the file is missing, damaged, or no result file.
    """
    from neuralrace.results.files import read_result  # loads xarray, which cells do not need

    dataset = read_result(path)
    return {
        "attributes": dataset.attrs | {"spec": json.loads(dataset.attrs["spec"])},
        "variables": {
            str(name): {
                "dimensions": {str(dim): size for dim, size in variable.sizes.items()},
                "meaning": variable.attrs.get("long_name", ""),
                "units": variable.attrs.get("units", "1"),
            }
            for name, variable in dataset.variables.items()
        },
    }


def layout(content: Mapping[str, Any], as_json: bool, digits: int = 17) -> str:
    """Content as text.

    Args:
        content: mappings, lists and plain values.
        as_json: whether to write JSON, for programs; YAML, for people, otherwise.
        digits: significant digits of numbers in YAML.
    """
    text = json.dumps(content, indent=2, ensure_ascii=False, default=str)
    if as_json:
        return text
    # through JSON: plain types, and no YAML aliases for values that occur twice
    plain = json.loads(text, parse_float=lambda number: float(f"{float(number):.{digits}g}"))
    style = {"default_flow_style": False, "sort_keys": False, "width": 100}
    return yaml.dump(plain, Dumper=Plain, allow_unicode=True, **style).rstrip()


class Plain(yaml.SafeDumper):
    """YAML with mappings line by line, plain lists on one line, and few escaped quotes."""

    def represent_sequence(self, tag: str, sequence: Any, flow_style: bool | None = None) -> Any:
        """See `yaml.SafeDumper`."""
        flat = not any(isinstance(item, Mapping) for item in sequence)
        return super().represent_sequence(tag, sequence, flow_style=flat)

    def represent_scalar(self, tag: str, value: Any, style: str | None = None) -> Any:
        """See `yaml.SafeDumper`."""
        quoted = "'" in value and ": " in value and len(value) < 80
        return super().represent_scalar(tag, value, '"' if quoted else style)
