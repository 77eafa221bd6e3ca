"""How unequal the layers of a routing network end."""

import xarray as xr
from xarray import ufuncs

from neuralrace.errors import UserError
from neuralrace.metrics.describe import Values, described
from neuralrace.records.evidence import Evidence


def value_ratio(evidence: Evidence) -> Values:
    """Singular values of the hidden layer over those of the outer layers at the end, by mode.

    A hidden matrix that M input and M output domains share grows to sqrt(M) times the outer layers
    from a small start: gradient flow keeps M b_in^2 - b_h^2. The number K of output domains that an
    input domain is trained with does not enter. Both are those of the first block; the k-th value
    of a layer is taken for mode k of the task, which it is once the mode has outgrown its start.

    Raises:
        UserError: the network does not route, or has no hidden matrix.

    Source: Saxe, Sodhani, Lewallen 2022, fig. 4.
    """
    values = evidence.recorded("singular_values", "singular_values").isel(time=-1, drop=True)
    if len(evidence.routing.hidden) < 2:
        raise UserError("network.hidden: value_ratio needs at least two hidden layers")
    s = evidence.data.modes.s
    modes = {"mode": evidence.modes}
    learned = xr.DataArray(s > 1e-9 * s.max(), modes, ("mode",))
    values = values.rename(singular_mode="mode").reindex(modes).where(learned)
    hidden = values.isel(layer=slice(1, -1)).mean("layer", skipna=False)
    size = evidence.routing.families(evidence.cell.dataset.count)[0].size
    partners = evidence.trained_pairs[:, :size, :size].sum((1, 2)) / size
    numbers = {
        "m": (xr.DataArray(size), "sqrt(M) of M domains in a block"),
        "k": (
            xr.DataArray(partners, {"seed": values["seed"]}, ("seed",)),
            "sqrt(K) of K trained partners in a block",
        ),
    }
    return {
        f"hidden_over_{side}_over_sqrt_{letter}": described(
            hidden / values.isel(layer=layer, drop=True) / ufuncs.sqrt(number),
            f"final singular value of the hidden over the {side} layer, over {of}",
        )
        for side, layer in (("input", 0), ("output", -1))
        for letter, (number, of) in numbers.items()
    }
