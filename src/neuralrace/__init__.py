"""neuralrace: a benchmark suite for the theory of learning dynamics.

- `simulate` trains networks and solves their theory; `plot` shows both; `solve`, `specify`,
  `reduce_race` and `find_reln` do parts of this.
- `benchmark` scores theories, yours beside ours, on simulations of the same runs.
- `theories` lists them, what they assume, and which apply to your network.
- `open_results` opens the results of the workflow; `open_tree`, `combine`, `to_frame` and
  `claims_table` are for analyses with xarray and pandas.
- `UserError` is raised about arguments, configurations and files.

Each subpackage is about one concept: datasets, networks, training, theory, results, metrics,
claims, figures.
"""

import gc
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neuralrace import claims as claims
    from neuralrace import datasets as datasets
    from neuralrace import figures as figures
    from neuralrace import metrics as metrics
    from neuralrace import networks as networks
    from neuralrace import results as results
    from neuralrace import theory as theory
    from neuralrace import training as training
    from neuralrace.api.benchmark import benchmark
    from neuralrace.api.reduction import reduce_race
    from neuralrace.api.relu import find_reln
    from neuralrace.api.simulation import simulate, solve
    from neuralrace.api.specification import specify
    from neuralrace.api.theories import theories
    from neuralrace.claims.table import claims_table
    from neuralrace.errors import UserError
    from neuralrace.figures.plot import plot
    from neuralrace.results.analysis import combine, open_tree, to_frame
    from neuralrace.results.cells import open_results

    __version__: str

_MODULES = {
    "UserError": "errors",
    "benchmark": "api.benchmark",
    "claims_table": "claims.table",
    "combine": "results.analysis",
    "find_reln": "api.relu",
    "open_results": "results.cells",
    "open_tree": "results.analysis",
    "plot": "figures.plot",
    "reduce_race": "api.reduction",
    "simulate": "api.simulation",
    "solve": "api.simulation",
    "specify": "api.specification",
    "theories": "api.theories",
    "to_frame": "results.analysis",
}
_SUBPACKAGES = (
    "claims",
    "datasets",
    "figures",
    "metrics",
    "networks",
    "results",
    "theory",
    "training",
)
__all__ = [
    "UserError",
    "__version__",
    "benchmark",
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
    "theories",
    "to_frame",
]


def __getattr__(name: str) -> Any:
    # imported at first use: the workflow imports this package often, and most of it loads slowly
    if name == "__version__":
        from importlib.metadata import version

        return version("neuralrace")
    if name in _SUBPACKAGES:
        return _imported(name)
    if name in _MODULES:
        return getattr(_imported(_MODULES[name]), name)
    raise AttributeError(f"module 'neuralrace' has no attribute {name!r}")


def _imported(module: str) -> Any:
    """A module of this package."""
    # The garbage collector would look again and again at 200,000 objects of JAX, Flax and xarray,
    # none of which can go: a seventh of the time of imports.
    collects = gc.isenabled()
    gc.disable()
    try:
        return import_module(f"neuralrace.{module}")
    finally:
        if collects:
            gc.enable()


def __dir__() -> list[str]:
    return sorted([*__all__, *_SUBPACKAGES])
