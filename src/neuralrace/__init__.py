"""neuralrace: a benchmark suite for the theory of learning dynamics.

`open_results` gives the results of the workflow; everything else lives in one room per concept:
datasets, models, training, theory, records, metrics, claims, figures.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neuralrace.records.results import open_results

__all__ = ["open_results"]


def __getattr__(name: str) -> Any:
    # lazily, so that planning a workflow need not load xarray
    if name == "open_results":
        from neuralrace.records.results import open_results

        return open_results
    raise AttributeError(f"module 'neuralrace' has no attribute {name!r}")
