"""Loss at the end beside that of the best constant output."""

import json

import numpy as np
import pytest
from cells import made

from neuralrace.config.cell import Cell
from neuralrace.metrics.dataset import metrics_dataset
from neuralrace.results.axes import axes, provenance_attributes
from neuralrace.results.schema import build

Y = [[0.0], [0.0], [1.0], [0.0]]
ONE_HOT = [[1 - y, y] for (y,) in Y]


def measured(curve, y, **training):
    spec = {
        "dataset": {"name": "table", "x": [[1.0], [2.0], [3.0], [4.0]], "y": y},
        "network": {"name": "layered", "hidden": []},
        "init": {"name": "normal"},
        "init_scales": [0.1],
        "seeds": 2,
        "training": {"learning_rate": 0.1, "steps": 2} | training,
        "record": {"every": 1},
        "metrics": ["relative_loss"],
    }
    cell = Cell.model_validate_json(json.dumps(spec))
    recorded = {"loss": np.array(curve)[None], "diverged_at": np.full((1, 2), -1)}
    attrs = provenance_attributes("paper/experiment/main", cell, "train", ("numpy",))
    trajectory = build("trajectory", recorded, axes(cell, 4), attrs)
    found = metrics_dataset(made(cell, trajectory))
    return found["relative_loss"].values[0]


@pytest.mark.parametrize("normalisation", ["half_mean", "half_sum", "mean", "sum"])
def test_squared_error_of_the_mean_target_is_one(normalisation):
    errors = (np.array(Y) - 0.25) ** 2
    constant = {
        "half_mean": errors.mean() / 2,
        "half_sum": errors.sum() / 2,
        "mean": errors.mean(),
        "sum": errors.sum(),
    }[normalisation]
    loss = [[9, 9, constant], [9, 9, np.nan]]
    found = measured(loss, Y, loss={"normalisation": normalisation})
    np.testing.assert_allclose(found, [1, np.nan])


@pytest.mark.parametrize("y", [Y, ONE_HOT])
def test_cross_entropy_of_the_frequencies_is_one(y):
    constant = -(0.25 * np.log(0.25) + 0.75 * np.log(0.75))
    entropy = {"name": "cross_entropy", "normalisation": "mean"}
    found = measured([[9, 9, constant], [9, 9, 3 * constant]], y, loss=entropy)
    np.testing.assert_allclose(found, [1, 3])
