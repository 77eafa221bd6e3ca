"""The recorded Gram matrix of hidden space, as blocks by mode."""

import numpy as np
import xarray as xr

from neuralrace.results.cells import CellResults


def vectors(cell: CellResults) -> tuple[xr.DataArray, xr.DataArray, xr.DataArray]:
    """Inner products of encoders and decoders in hidden space.

    Returns:
        The blocks encoder-encoder, decoder-decoder and encoder-decoder, each with dimensions
        (..., mode, other_mode).
    """
    gram = cell.trajectory["gram"]
    rank = len(cell.modes)
    encoders, decoders = slice(0, rank), slice(rank, 2 * rank)

    def block(rows: slice, columns: slice) -> xr.DataArray:
        part = gram.isel(vector=rows, other_vector=columns)
        part = part.rename(vector="mode", other_vector="other_mode")
        return part.assign_coords(mode=cell.modes, other_mode=cell.modes)

    return block(encoders, encoders), block(decoders, decoders), block(encoders, decoders)


def diagonal(matrix: xr.DataArray) -> xr.DataArray:
    """Entries (k, k) of an array with dimensions mode and other_mode."""
    rank = matrix.sizes["mode"]
    index = xr.DataArray(np.arange(rank), dims="mode", coords={"mode": matrix["mode"]})
    return matrix.isel(mode=index, other_mode=index).drop_vars("other_mode")
