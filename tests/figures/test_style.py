"""Marks that several figures share."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from neuralrace.figures import style


@pytest.mark.parametrize("scale", ["linear", "log"])
@pytest.mark.parametrize("across", [False, True])
def test_dots_of_a_beeswarm_do_not_hide_one_another(across: bool, scale: str):
    ax = Figure().subplots()
    names = ("x", "y") if across else ("y", "x")
    ax.set(**{f"{names[0]}scale": scale, f"{names[0]}lim": (0.1, 1)})
    rng = np.random.default_rng(0)
    values = np.sort([0.15, *rng.uniform(0.4, 0.5, 10), 0.8, 0.8 + 1e-9, 0.8 + 2e-9])
    style.swarm(ax, 2, values, 0.3, across=across, marker="o", markersize=5)
    dots = np.column_stack(ax.lines[0].get_data())
    along, aside = (0, 1) if across else (1, 0)
    np.testing.assert_array_equal(dots[:, along], values)
    places = dots[:, aside] - 2
    heights = ax.transData.transform(dots)[:, along] * 72 / ax.figure.dpi
    near = np.abs(heights[:, None] - heights) < 5
    apart = np.abs(places[:, None] - places) > 1e-6
    np.testing.assert_array_equal(near & ~apart, np.eye(len(values), dtype=bool))
    assert np.abs(places).max() == pytest.approx(0.3)
    assert places[0] == 0
    np.testing.assert_allclose(places[-3:].sum(), 0, atol=1e-12)


def test_dots_of_a_beeswarm_are_measured_by_limits_that_take_them_in():
    ax = Figure().subplots()
    style.swarm(ax, 0, np.array([10, 10.001, 20]), 0.2, marker="o")
    places, _ = ax.lines[0].get_data()
    np.testing.assert_allclose(np.asarray(places), [0.1, -0.1, 0], atol=1e-12)
