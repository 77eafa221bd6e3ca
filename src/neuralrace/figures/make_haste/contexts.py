"""Three, four and five contexts: ReLU networks and their rectified linear networks.

Follows Jarvis, Klein, Rosman and Saxe, fig. 5: hierarchies in all contexts, and gated networks whose
context pathways are open in all contexts but one (q = C - 1). What differs from the source: its
closed form (dotted) has context pathways begin on the residual with the strength of their initial
weights, and is late. Dashed on the losses is the closed form with what they gain while the common
pathway learns, and dashed on the singular values are joint modes of all pathways; nothing is fitted.
Dashed lies on the gated network. The ReLU network leaves both, the more so the more contexts there
are.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes

from neuralrace.figures import gated, style
from neuralrace.records.results import CellResults, Results
from neuralrace.registry import Figure

LATE = 0.05
"""Loss over initial loss to which times are compared."""


@Figure(
    layout="abc;def;ghi",
    height=4.5,
    heights=(1.1, 1, 1),
    cf=dict.fromkeys("abcdefghi", "Fig. 5"),
    reads={
        "three_contexts four_contexts five_contexts": {
            "trajectory": "loss",
            "metrics": "level_time",
        },
        "three_contexts_gated four_contexts_gated five_contexts_gated": {
            "trajectory": "loss pathway_values",
            "theory": "loss pathway_values",
            "metrics": "level_time",
        },
    },
)
def legend(results: Results) -> Sequence[Artist]:
    """Both networks, theory and the source's closed form."""
    return [
        style.entry("ReLU network", **gated.RELU),
        style.entry("gated, $q = C - 1$", **gated.TWIN),
        style.BAND,
        style.entry("theory", **style.THEORY),
        style.entry("Jarvis et al., closed form", **style.PAPER),
    ]
