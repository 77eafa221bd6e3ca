"""Scores of theories on the benchmark: which entry is scored on which quantity."""

from typing import Any

import numpy as np
import xarray as xr

import neuralrace as nr

X = np.sqrt(3) * np.eye(3)
Y = X @ np.diag([3.0, 2.0, 1.0])


def _scores(**options: Any) -> xr.Dataset:
    settings: dict[str, Any] = {
        "hidden": [4],
        "init_scales": [0.1],
        "seeds": 3,
        "learning_rate": 0.01,
        "steps": 400,
        "observables": ["layer_norm"],
        "metrics": ["theory_scores"],
        "progress": False,
    }
    return nr.simulate(X, Y, **settings | options)["metrics"].to_dataset()


def test_variable_of_a_single_solution_is_scored_for_that_solution() -> None:
    error = _scores(theory=["flow", "exact"])["layer_norm_error"]
    assert list(error["entry"].values) == ["flow", "exact", "other_seeds"]
    assert float(error.sel(entry="flow").max()) < 0.01  # what the step size costs
    assert error.sel(entry="exact").isnull().all()


def test_other_seeds_are_scored_where_no_theory_predicts() -> None:
    scores = _scores(theory=None, activation="relu")
    for name in ("loss_error", "layer_norm_error"):
        error = scores[name].sel(entry="other_seeds")
        assert (error > 0).all()
