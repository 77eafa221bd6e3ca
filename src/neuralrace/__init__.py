"""neuralrace: a benchmark suite for the theory of learning dynamics.

`simulate` trains networks beside their theory, and `plot` shows both. `open_results` gives the
results of the workflow, `open_tree`, `combine`, `to_frame` and `claims_table` the same for analyses
with xarray and pandas. Everything else has a package per concept: datasets, networks, training,
theory, results, metrics, claims, figures.
"""

from importlib import import_module, metadata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neuralrace.api import find_reln, reduce_race, simulate, solve, specify
    from neuralrace.claims.table import claims_table
    from neuralrace.figures.plot import plot
    from neuralrace.results.analysis import combine, open_tree, to_frame
    from neuralrace.results.cells import open_results

    __version__: str

_MODULES = {
    "claims_table": "claims.table",
    "combine": "results.analysis",
    "find_reln": "api",
    "open_results": "results.cells",
    "open_tree": "results.analysis",
    "plot": "figures.plot",
    "reduce_race": "api",
    "simulate": "api",
    "solve": "api",
    "specify": "api",
    "to_frame": "results.analysis",
}

__all__ = [
    "__version__",
    "claims_table",
    "combine",
    "find_reln",
    "open_results",
    "open_tree",
    "plot",
    "reduce_race",
    "simulate",
    "solve",
    "specify",
    "to_frame",
]


def __getattr__(name: str) -> Any:
    # lazily, so that planning a workflow need not load xarray
    if name == "__version__":
        return metadata.version("neuralrace")
    if name == "figures":
        return import_module("neuralrace.figures")
    if name in _MODULES:
        return getattr(import_module(f"neuralrace.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'neuralrace' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
