"""Errors of pairs of domains: values below the axis, and outputs with gaps between pairs."""

import numpy as np
import xarray as xr
from drawn_panels import drawn
from matplotlib.figure import Figure

from neuralrace.figures import domains
from neuralrace.figures.neural_race import pathways


def test_values_below_the_floor_are_open_triangles():
    ax = Figure().subplots()
    values = [xr.DataArray(v, dims="seed") for v in ([1e-12, 1e-10, 1e-9], [1e-3, 1e-2, 1e-9])]
    domains.draw_runs(ax, [1, 2], values, domains.TRAINED)
    (below,) = [line for line in ax.lines if line.get_markerfacecolor() == "white"]
    np.testing.assert_array_equal(below.get_xydata(), [[1, domains.FLOOR]])
    (text,) = ax.texts
    assert text.get_text() == "below $10^{-8}$"
    (medians,) = [line for line in ax.lines if line.get_markevery() is not None]
    np.testing.assert_array_equal(medians.get_ydata(), [domains.FLOOR, 1e-3])
    assert medians.get_markevery() == [False, True]
    filled = [line for line in ax.lines if line.get_marker() == "v" and line is not below]
    assert sorted(len(line.get_xdata()) for line in filled) == [1, 3]


def test_no_line_around_pairs_hides_an_output(results_of):
    results = results_of("neural_race/pathways")
    ax = drawn(pathways.panel_g, results)[0]
    (image,) = ax.get_images()
    tiles = np.asarray(np.ma.filled(image.get_array(), np.nan))
    outputs = results.cell("pathways").get("trajectory", "pair_outputs")
    shown = outputs.isel(init_scale=0, seed=0, snapshot=-1).values
    assert np.isfinite(tiles).sum() == shown.size
    left, right, bottom, top = image.get_extent()
    assert (right - left, bottom - top) == tiles.shape[::-1]
    (frame,) = [line for line in ax.lines if np.isnan(line.get_xdata()).any()]
    x, y = frame.get_xdata(), frame.get_ydata()
    for start in range(0, len(x), 3):  # each line: two ends, and a break
        column, row = np.mean([x[start : start + 2], y[start : start + 2]], axis=1)
        assert np.isnan(tiles[int(np.floor(row - top)), int(np.floor(column - left))])
