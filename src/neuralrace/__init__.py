"""neuralrace: a benchmark suite for the theory of learning dynamics.

`simulate` trains networks beside their theory, and `plot` shows both; `open_results` gives the
results of the workflow. Everything else lives in one room per concept: datasets, models, training,
theory, records, metrics, claims, figures.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neuralrace.figures.cell import plot
    from neuralrace.records.results import open_results
    from neuralrace.simulation import find_reln, reduce, simulate, solve, specify

__all__ = ["find_reln", "open_results", "plot", "reduce", "simulate", "solve", "specify"]

_HOMES = {"open_results": "neuralrace.records.results", "plot": "neuralrace.figures.cell"}


def __getattr__(name: str) -> Any:
    # lazily, so that planning a workflow need not load xarray
    if name not in __all__:
        raise AttributeError(f"module 'neuralrace' has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, "neuralrace.simulation")), name)


def __dir__() -> list[str]:
    return __all__
