"""Variables of `theory.nc` that more than one solution computes: dimensions and long name.

Declarations name these constants, and the registry reads their values without running a module.
"""

LOSS = ("solution time", "loss predicted by theory")
MODE_STRENGTH = ("solution time mode", "effective singular values by theory")
INITIAL_MODE = ("mode", "initial effective singular value that theory starts from")
SINGULAR_VALUES = (
    "solution time layer singular_mode",
    "singular values of the weights by theory",
)
PATHWAY_VALUES = (
    "solution time pathway pathway_mode",
    "singular values of the map of each pathway by theory",
)
LAYER_NORM = (
    "solution time layer",
    "Frobenius norm of the weights by theory",
)
RECEPTIVE_FIELDS = (
    "solution unit input",
    "incoming weights of hidden units at the end by theory",
)
UNTRAINED_ERROR = (
    "solution time",
    "relative squared error of pairs of domains that are never trained, by theory",
)
