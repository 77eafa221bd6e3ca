"""First times at which curves reach a level."""

import numpy as np
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from neuralrace.metrics.values import crossing_time


@given(
    st.lists(st.floats(-3, 3, width=16), min_size=2, max_size=12), st.floats(-2.5, 2.5, width=16)
)
def test_crossing_time_is_the_first_on_the_interpolated_curve(samples, level):
    clock = np.linspace(0, 5, len(samples)) ** 1.5
    time = xr.DataArray(clock, dims="time")
    curve = xr.DataArray([samples, samples[::-1]], dims=("seed", "time"))
    crossed = crossing_time(curve, xr.DataArray([level, level], dims="seed"), time)
    assert crossed.dims == ("seed",)
    for values, first in zip(curve.values, crossed.values, strict=True):
        if values.max() < level:
            assert np.isnan(first)
        elif values[0] >= level:
            assert first == 0
        else:
            np.testing.assert_allclose(np.interp(first, clock, values), level, atol=1e-9)
            assert (values[clock < first * (1 - 1e-12)] < level).all()


def test_crossing_time_of_a_curve_that_diverges():
    curve = xr.DataArray([0.0, 1.0, np.nan, np.nan], dims="time")
    time = xr.DataArray([0.0, 1.0, 2.0, 3.0], dims="time")
    assert float(crossing_time(curve, xr.DataArray(0.25), time)) == 0.25
    assert np.isnan(float(crossing_time(curve, xr.DataArray(2.0), time)))
