"""The neural race reduction, from Python arguments."""

from typing import Any

import numpy as np
import xarray as xr

from neuralrace.api.arguments import checked_arguments
from neuralrace.api.specification import Named, python_errors, specify
from neuralrace.results.axes import record_steps
from neuralrace.theory.reduction import aligned_strengths, reduction_flow, reduction_loss
from neuralrace.theory.solutions.gated import ALIGNED
from neuralrace.theory.solutions.problem import Problem
from neuralrace.training.environment import warn_of_environment


@checked_arguments(specify)
def reduce_race(
    x: Any, y: Any = None, *, init: Named = "aligned", seeds: int = 1, **options: Any
) -> xr.Dataset:
    """The neural race reduction of a network with given gates: a number for each edge and mode.

    With aligned initial weights, init scales are strengths of edges.

    Args:
        x: as in `specify`.
        y: as in `specify`.
        init: as in `specify`.
        seeds: as in `specify`.
        **options: all other arguments of `specify`.

    Returns:
        `strength` (init_scale, seed, time, edge, mode) and `loss` (init_scale, seed, time) along
        gradient-flow `time` in units of tau. `s` (pathway, mode) and `d` (pathway, other_pathway,
        mode) are the correlations of each pathway. The attribute `violation` is the share of
        correlations that is off the common modes; `spec` is the specification.

    Raises:
        UserError: as `specify`; or the network has no given gates, its pathways have no common
            modes, or its initial weights are not aligned with them.

    Source: Saxe, Sodhani, Lewallen 2022, "The Neural Race Reduction", gradient flow reduction.

    Example:
        >>> import numpy as np
        >>> import neuralrace as nr
        >>> senses = {
        ...     "name": "graph",
        ...     "nodes": {"eye": 2, "ear": 2, "hidden": 8, "name": 2},
        ...     "edges": [["eye", "hidden"], ["ear", "hidden"], ["hidden", "name"]],
        ...     "gates": {"eye": [1, 0], "ear": [0, 1]},
        ... }
        >>> seen_or_heard = {
        ...     "name": "table",
        ...     "x": np.eye(4),  # two things seen, then the same two heard
        ...     "y": [[3, 0], [0, 1], [3, 0], [0, 1]],
        ...     "contexts": [0, 0, 1, 1],
        ... }
        >>> race = nr.reduce_race(seen_or_heard, network=senses, init_scales=[0.05])
        >>> end = race["strength"].isel(init_scale=0, seed=0, time=-1)
        >>> (end.sel(edge="eye->hidden") * end.sel(edge="hidden->name")).values.round(1).tolist()
        [3.0, 1.0]
    """
    warn_of_environment()
    options |= {"init": init, "seeds": seeds, "theory": ["reduction"]}
    cell = specify(x, y, **options)
    with python_errors(options.get("network")):
        problem = Problem(cell, record_steps(cell)[0])
        effective = problem.wiring.effective
        start = aligned_strengths(effective, problem.weights, ALIGNED)
        strengths = reduction_flow(problem.time, effective, start)
    graph = effective.architecture
    pathways = ["->".join(pathway.nodes) for pathway in graph.pathways]
    runs = ("init_scale", "seed", "time")
    return xr.Dataset(
        {
            "strength": ((*runs, "edge", "mode"), strengths),
            "loss": (runs, problem.as_trained(reduction_loss(effective, strengths))),
            "s": (("pathway", "mode"), effective.modes.s),
            "d": (("pathway", "other_pathway", "mode"), effective.modes.d),
        },
        {
            "init_scale": list(cell.init_scales),
            "seed": list(cell.seed_numbers),
            "time": ("time", problem.time, {"units": "tau"}),
            "edge": [graph.edge_name(edge) for edge in range(len(graph.edges))],
            "mode": np.arange(1, effective.modes.s.shape[1] + 1),
            "pathway": pathways,
            "other_pathway": pathways,
        },
        {"spec": cell.canonical(), "violation": effective.modes.violation},
    )
