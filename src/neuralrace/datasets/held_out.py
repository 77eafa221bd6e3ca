"""Test samples, which are not trained on: given, or drawn from the samples of a dataset."""

from dataclasses import replace
from typing import Any

import numpy as np

from neuralrace.datasets.base import Data
from neuralrace.datasets.random_streams import generator
from neuralrace.errors import UserError


def check_keys(x_test: Any, y_test: Any, test: float | None) -> None:
    """Raises UserError unless test samples are given as a pair, as a share, or not at all."""
    for key, value, other in (("x_test", x_test, y_test), ("y_test", y_test, x_test)):
        if value is None and other is not None:
            remedy = "give inputs and targets of the test samples, x_test and y_test"
            raise UserError("is missing", key=key, remedy=remedy)
    if test is not None and x_test is not None:
        problem = "is a share of the samples, and x_test are other samples"
        raise UserError(problem, key="test", value=test, remedy="give one of them")


def with_test(
    data: Data, given: tuple[np.ndarray, np.ndarray, np.ndarray | None] | None, share: float | None
) -> Data:
    """Samples with test samples.

    Args:
        data: all samples, or those to train on.
        given: inputs, targets and contexts of the test samples.
        share: share of `data` that becomes test samples, the same ones at every call.

    Raises:
        UserError: test samples have other sizes, or one part would be empty.
    """
    if given is not None:
        x, y, contexts = given
        for key, test, train in (("x_test", x, data.x), ("y_test", y, data.y)):
            if test.shape[1] != train.shape[1]:
                raise UserError(
                    f"has {test.shape[1]} columns, and {key[0]} has {train.shape[1]}",
                    key=key,
                    remedy="give the same columns",
                )
        for key, rows in (("y_test", y), ("contexts_test", contexts)):
            if rows is not None and len(rows) != len(x):
                problem = f"has {len(rows)} entries, and x_test has {len(x)}"
                raise UserError(problem, key=key, remedy="use one of each for every test sample")
        return replace(data, test=Data(x, y, contexts=contexts))
    if share is None:
        return data
    count = round(share * len(data.x))
    if not 0 < count < len(data.x):
        raise UserError(
            f"makes {count} of {len(data.x)} samples test samples",
            key="test",
            value=share,
            remedy="use a share that leaves samples in both parts",
        )
    shuffled = generator(0, "test samples").permutation(len(data.x))
    test, train = np.sort(shuffled[:count]), np.sort(shuffled[count:])
    contexts = data.contexts
    return Data(
        x=data.x[train],
        y=data.y[train],
        contexts=None if contexts is None else contexts[train],
        test=Data(
            x=data.x[test], y=data.y[test], contexts=None if contexts is None else contexts[test]
        ),
    )
