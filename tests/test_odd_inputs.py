"""What people bring as inputs and targets: taken as NumPy would, or refused with the reason."""

import re
import warnings

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import xarray as xr

import neuralrace as nr
from neuralrace.errors import UserError

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(12, 5)), RNG.normal(size=(12, 2))
LABELS = np.arange(12) % 3
SPECIES = np.array(["setosa", "virginica"])[np.arange(12) % 2]
ROUNDED = X.astype(ml_dtypes.bfloat16).astype(float)
FAST = {"hidden": [3], "init_scales": [0.1], "learning_rate": 0.1, "steps": 20, "records": 20}


class Tensor:
    """A tensor as PyTorch has it: NumPy reads it only on the CPU, without a gradient."""

    is_sparse = False

    def __init__(self, array, grad=False, device="cpu", dtype="float32", sparse=False):
        self.array, self.grad, self.device, self.is_sparse = array, grad, device, sparse
        self.dtype = f"torch.{dtype}"

    def _changed(self, **parts):
        now = {"grad": self.grad, "device": self.device, "sparse": self.is_sparse}
        return Tensor(self.array, dtype=self.dtype.removeprefix("torch."), **now | parts)

    def detach(self):
        return self._changed(grad=False)

    def cpu(self):
        return self._changed(device="cpu")

    def float(self):
        return Tensor(self.array, self.grad, self.device)

    def to_dense(self):
        return self._changed(sparse=False)

    def __array__(self, dtype=None, copy=None):
        if self.grad:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad.")
        if self.device != "cpu" or self.is_sparse:
            raise TypeError(f"can't convert {self.device} device type tensor to numpy.")
        if "bfloat16" in self.dtype:
            raise TypeError("Got unsupported ScalarType BFloat16")
        return self.array


class OnGpu:
    """An array as CuPy has it."""

    __cuda_array_interface__ = ()

    def __init__(self, array):
        self.get = lambda: array

    def __array__(self, dtype=None, copy=None):
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")


class Polars:
    """A frame as polars has it: names in a list, columns by name, no positions."""

    class Column:
        def __init__(self, entries, dtype):
            self.entries, self.dtype = entries, dtype

        def __array__(self, dtype=None, copy=None):
            return np.array(self.entries)

        def __iter__(self):
            return iter(self.entries)

        def is_null(self):
            return np.array([each is None for each in self.entries])

    def __init__(self, **columns):
        self.data, self.columns = columns, [*columns]
        self.shape = len(next(iter(columns.values()))), len(columns)

    def __getitem__(self, name):
        kind = {str: "String", float: "Float64"}.get(type(self.data[name][0]), "Null")
        return Polars.Column(self.data[name], kind)

    def __array__(self, dtype=None, copy=None):
        return np.array([*self.data.values()]).T


class Unwilling:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("not now")


def frame(**columns):
    return pd.DataFrame({f"c{n}": X[:, n] for n in range(2)} | columns)


def named(array, *dims):
    return xr.DataArray(array, dims=dims)


def holed(column=1, value=np.nan):
    return frame().assign(**{f"c{column}": [value, *X[1:, column]]})


FLOATS = [np.float16, np.float32, np.float64, np.longdouble, ">f8", ml_dtypes.bfloat16]
WHOLE = [np.int8, np.uint8, np.int32, np.int64, np.uint64, bool]
COUNTS = np.arange(24).reshape(12, 2) % 2
TAKEN = {
    # arrays of NumPy
    **{
        f"x of {np.dtype(t).name}": ((X.astype(t), Y), X.astype(t).astype(float), Y) for t in FLOATS
    },
    **{
        f"y of {np.dtype(t).name}": ((X, Y.astype(t)), X, Y.astype(t).astype(float)) for t in FLOATS
    },
    **{f"x of {np.dtype(t).name}": ((COUNTS.astype(t), Y), COUNTS, Y) for t in WHOLE},
    **{f"one-hot y of {np.dtype(t).name}": ((X, COUNTS.astype(t)), X, COUNTS) for t in WHOLE},
    "column-major x": ((np.asfortranarray(X), Y), X, Y),
    "x that is a view": ((np.tile(X, 2)[:, ::2], Y), np.tile(X, 2)[:, ::2], Y),
    "read-only x": ((np.broadcast_to(X[0], (12, 5)), Y), np.tile(X[0], (12, 1)), Y),
    "matrix": ((np.matrix([[1.0, 2], [3, 4]]), Y[:2]), [[1, 2], [3, 4]], Y[:2]),
    "objects that are numbers": ((X.astype(object), Y), X, Y),
    "masked array without a mask": ((np.ma.array(X), Y), X, Y),
    "negative zeros": ((np.where(X > 0, X, -0.0), Y), np.where(X > 0, X, 0), Y),
    "repeated samples": ((X[[0] * 12], Y), X[[0] * 12], Y),
    "one sample": ((X[:1], Y[:1]), X[:1], Y[:1]),
    "one input": ((X[:, :1], Y), X[:, :1], Y),
    "more inputs than samples": ((X[:3], Y[:3]), X[:3], Y[:3]),
    "as many inputs as samples": ((X[:5], Y[:5]), X[:5], Y[:5]),
    # vectors and columns of targets
    "vector y": ((X, Y[:, 0]), X, Y[:, :1]),
    "list y": ((X, Y[:, 0].tolist()), X, Y[:, :1]),
    "series y": ((X, pd.Series(Y[:, 0])), X, Y[:, :1]),
    "vector of float labels": ((X, LABELS.astype(float)), X, LABELS[:, None]),
    "column of two labels": ((X, LABELS[:, None] % 2), X, LABELS[:, None] % 2),
    "column of signs": ((X, 2 * (LABELS[:, None] % 2) - 1), X, 2 * (LABELS[:, None] % 2) - 1),
    "column of many whole numbers": ((X, np.arange(12)[:, None]), X, np.arange(12)[:, None]),
    "one-hot labels": ((X, np.eye(3)[LABELS]), X, np.eye(3)[LABELS]),
    "boolean one-hot labels": ((X, LABELS[:, None] == range(3)), X, np.eye(3)[LABELS]),
    # lists
    "nested lists": ((X.tolist(), Y.tolist()), X, Y),
    "nested tuples": ((tuple(map(tuple, X)), Y), X, Y),
    "list of arrays": (([*X], [*Y]), X, Y),
    "list of tensors": (([Tensor(row, grad=True) for row in X], Y), X, Y),
    "range": ((X, np.array([*range(12)], dtype=float)), X, np.arange(12)[:, None]),
    # other libraries
    "JAX": ((jnp.asarray(X), jnp.asarray(Y)), X.astype(np.float32), Y.astype(np.float32)),
    "bfloat16 of JAX": ((jnp.asarray(X, dtype=jnp.bfloat16), Y), ROUNDED, Y),
    "tensor": ((Tensor(X), Tensor(Y)), X, Y),
    "tensor with gradient": ((Tensor(X, grad=True), Tensor(Y, grad=True)), X, Y),
    "tensor on a GPU": ((Tensor(X, device="cuda:0"), Y), X, Y),
    "tensor with gradient on a GPU": ((Tensor(X, True, "cuda:0"), Y), X, Y),
    "tensor of bfloat16": ((Tensor(ROUNDED, dtype="bfloat16"), Y), ROUNDED, Y),
    "tensor of bfloat16 on a GPU": ((Tensor(ROUNDED, True, "mps", "bfloat16"), Y), ROUNDED, Y),
    "sparse tensor": ((Tensor(X, sparse=True), Y), X, Y),
    "vector tensor y": ((X, Tensor(Y[:, 0], grad=True)), X, Y[:, :1]),
    "CuPy": ((OnGpu(X), OnGpu(Y)), X, Y),
    **{
        f"sparse {kind}": ((getattr(scipy.sparse, f"{kind}_array")(X), Y), X, Y)
        for kind in ("csr", "csc", "coo", "lil", "dok", "dia", "bsr")
    },
    "sparse matrix": ((scipy.sparse.csr_matrix(X), Y), X, Y),
    "sparse one-hot y": ((X, scipy.sparse.csr_array(np.eye(3)[LABELS])), X, np.eye(3)[LABELS]),
    # frames
    "frame": ((pd.DataFrame(X), pd.DataFrame(Y)), X, Y),
    "frame with names": ((frame(), Y), X[:, :2], Y),
    "frame with an index": ((frame().set_index(SPECIES), Y), X[:, :2], Y),
    "frame with equal names": ((pd.DataFrame(X, columns=["a"] * 5), Y), X, Y),
    "frame of mixed numbers": ((frame(c=LABELS), Y), np.c_[X[:, :2], LABELS], Y),
    "frame of extension numbers": ((frame().astype("Float64"), Y), X[:, :2], Y),
    "frame of truth values": ((frame(c=LABELS > 0), Y), np.c_[X[:, :2], LABELS > 0], Y),
    "column of a frame as y": ((X, frame()["c0"]), X, X[:, :1]),
    "part of a frame as y": ((X, frame()[["c0"]]), X, X[:, :1]),
    "polars": ((Polars(a=[*X[:, 0]], b=[*X[:, 1]]), Y), X[:, :2], Y),
    # xarray
    "xarray": ((named(X, "sample", "feature"), Y), X, Y),
    "xarray, transposed": ((named(X.T, "feature", "sample"), Y), X, Y),
    "xarray, both transposed": (
        (named(X.T, "pixel", "example"), named(Y.T, "output", "example")), X, Y,
    ),
    "xarray of other names": ((named(X, "a", "b"), Y), X, Y),
    "xarray vector y": ((X, named(Y[:, 0], "sample")), X, Y[:, :1]),
}  # fmt: skip
"""Arguments, and the inputs and targets that a plain NumPy conversion gives."""
REFUSED = {
    # class labels
    "labels": ((X, LABELS), r"y: has 3 class labels: 0, 1, 2; .* np\.eye\(3\)\[y\]; if they are q"),
    "labels from 1": ((X, LABELS + 1), r"y: has 3 .*eye\(3\)\[np\.unique\(y, return_inverse=True"),
    "list of labels": ((X, LABELS.tolist()), r"y: has 3 class labels: .*np\.eye\(3\)\[y\]"),
    "series of labels": ((X, pd.Series(LABELS)), r"y: has 3 class labels"),
    "column of labels": ((X, LABELS[:, None]), r"y: has 3 class labels.*\[np\.ravel\(y\)\]"),
    "tensor of labels": ((X, Tensor(LABELS, device="cuda:0")), r"y: has 3 class labels"),
    "two labels": ((X, LABELS % 2), r"y: has 2 class labels: 0, 1; .*np\.eye\(2\)"),
    "truth values": ((X, LABELS > 0), r"y: has 2 class labels: False, True; .*unique\(y, "),
    "text labels": ((X, SPECIES), r"y: has 2 class labels: 'setosa', 'virginica'; .*unique.*\]$"),
    "column of text": ((X, SPECIES[:, None]), r"y: has 2 class labels.*np\.ravel\(y\), return"),
    "text labels in a list": ((X, SPECIES.tolist()), r"y: has 2 class labels: 'setosa'"),
    "text labels of pandas": ((X, pd.Series(SPECIES)), r"y: has 2 class labels: 'setosa'"),
    "categories": ((X, pd.Series(SPECIES, dtype="category")), r"y: has 2 class labels: 'setosa'"),
    "bytes": ((X, SPECIES.astype("S")), r"y: has 2 class labels: 'setosa'"),
    "whole numbers": ((X, np.arange(12)), r"y: has 12 class labels: 0, 1, .*\.\.\.; .*quantities"),
    # axes
    "vector x": (
        (X[:, 0], Y), r"x: has shape \(12,\); .*np\.reshape\(x, \(-1, 1\)\) for a single inp"),
    "list x": (
        ([1.0, 2.0], Y), r"x: has shape \(2,\); .*np\.reshape\(x, \(1, -1\)\) for a single sample"),
    "series x": ((pd.Series(X[:, 0]), Y), r"x: has shape \(12,\); .*single input"),
    "images": (
        (X.reshape(12, 5, 1), Y),
        r"x: has shape \(12, 5, 1\); .* such as np\.reshape\(x, \(12, -1\)\)$"),
    "y of three axes": (
        (X, Y[None]), r"y: has shape \(1, 12, 2\); give an array with two axes .* such as y\[0\]$"),
    "number x": ((3.0, Y), r"x: has shape \(\); .* such as \[\[3\.0\]\]"),
    "no samples": ((X[:0], Y[:0]), r"x: has shape \(0, 5\); .* at least one sample and one input$"),
    "no inputs": ((X[:, :0], Y), r"x: has shape \(12, 0\); .* at least one sample and one input$"),
    "empty list": (([], []), r"x: has shape \(0,\)"),
    "x transposed": (
        (X.T, Y), r"x: has 5 rows, and y has 12; x looks transposed; did you mean x\.T\?$"),
    "y transposed": (
        (X, Y.T), r"y: has 2 rows, and x has 12; y looks transposed; did you mean y\.T\?$"),
    "both transposed": (
        (X.T, Y.T), r"y: has 2 rows, and x has 5; both .* did you mean x\.T and y\.T\?$"),
    "x transposed, vector y": (
        (X.T, Y[:, 0]), r"x: has 5 rows, and y has 12; .* did you mean x\.T\?$"),
    "lengths": ((X, Y[:7]), r"y: has 7 rows, and x has 12; give both one row for each sample$"),
    # no numbers
    "complex": (
        (X * 1j, Y),
        r"x: holds complex numbers; give .* np\.hstack\(\[np\.real\(x\), np\.imag\(x\)\]\)$"),
    "complex list": (([[1j]], [[1.0]]), r"x: holds complex numbers"),
    "text": ((np.array([["a", "b"]]), Y[:1]), r"x: holds text, such as 'a'; give numbers"),
    "numbers as text": (
        ([["1", "2"]], Y[:1]), r"x: holds numbers as text, .* np\.asarray\(x, dtype=float\)$"),
    "y as text": ((X, Y.astype(str)), r"y: holds numbers as text"),
    "dates": (
        (np.array([["2020-01-01"]], "M8[D]"), Y[:1]),
        r"x: holds dates \(datetime64\[D\]\); .* / np\.timedelta64\(1, 'D'\)$"),
    "durations": (
        (np.array([[1]], "m8[s]"), Y[:1]),
        r"x: holds durations \(timedelta64\[s\]\); .* / np\.timedelta64\(1, 's'\)$"),
    "structured": (
        (np.zeros(3, "f8,f8"), Y[:3]), r"x: is a structured array .* f0, f1; convert it by numpy"),
    "records": ((frame().to_records(index=False), Y), r"x: is a structured .* c0, c1"),
    "ragged": (([[1, 2], [3]], Y[:2]), r"x: has rows of unequal length: row 1 has 1 number, row 0"),
    "ragged y": ((X[:2], [[1.0], [2.0, 3.0]]), r"y: has rows of unequal length: row 1"),
    "number among rows": (([[1, 2], 3], Y[:2]), r"x: .*: row 1 is not a list, row 0 has 2 numbers"),
    "None in a list": (
        ([[1.0, None]], Y[:1]),
        r"x: entry \[0, 1\] is None; fill them in, or leave those samples out"),
    "text in a list of objects": ((np.array([[1, "a"]], object), Y[:1]), r"x: entry \[0, 1\] is '"),
    "generator": (((row for row in X), Y), r"x: is a generator; give np\.array\(list\(x\)\)$"),
    "set": (({1.0, 2.0}, Y), r"x: is a set, which has no order; give"),
    "object": ((object(), Y), r"x: is of type object"),
    "function": ((np.mean, Y), r"x: is a function; .* did you forget to call it\?"),
    "unwilling": ((Unwilling(), Y), r"x: cannot convert Unwilling to an array \(not now\); give"),
    "None": ((None, Y), r"x: is None; give an array of numbers"),
    # numbers that do not do
    "not finite": (
        (X + np.inf, Y),
        r"x: has 60 NaN or infinite values, first in row 0; check how it was comp"),
    "NaN": (
        (X, np.where(Y[4, 1] == Y, np.nan, Y)),
        r"y: has 1 NaN or infinite value, first in row 4; fill .* both x and y$"),
    "NaN in a vector": ((X, np.where(LABELS > 1, np.nan, 1)), r"y: has 4 NaN .*first in row 2"),
    "masked": (
        (np.ma.masked_less(X, 0), Y),
        r"x: has masked entries; fill .* leave those samples out of both x and y"),
    "masked y": (
        (X, np.ma.masked_less(Y, 0)),
        r"y: has masked entries; fill .* leave those samples out of both x and y"),
    "zeros": ((X, 0 * Y), r"y: all numbers are 0"),
    "huge": ((1e200 * X, Y), r"x: the largest number is"),
    "long": (
        (np.longdouble("1e400") * X.astype(np.longdouble), Y),
        r"x: has numbers that are too large for float64; resc"),
    "tiny": ((X, 1e-200 * Y), r"y: the largest number is"),
    "large sparse": (
        (scipy.sparse.csr_array((10**6, 10**6)), Y),
        r"x: is too large for a dense array: shape \(10"),
    # frames
    "text column": (
        (frame(kind=SPECIES), Y),
        r"x: the column 'kind' holds .* pd\.get_dummies\(x, columns=\['kind'\], dtype=float\)$"),
    "category column": (
        (frame(kind=pd.Categorical(SPECIES)), Y), r"x: the column 'kind' is categorical; .* pd\."),
    "dates column": ((frame(day=pd.Timestamp(0)), Y), r"x: the column 'day' holds dates or times"),
    "missing values": ((holed(), Y), r"x: the column 'c1' has 1 missing value; fill them in"),
    "missing, extension": (
        (holed().astype("Float64"), Y), r"x: the column 'c1' has 1 missing value"),
    "None in a column": (
        (holed(0, None).astype(object), Y), r"x: the column 'c0' has 1 missing value"),
    "missing in y": ((X, holed()[["c1"]]), r"y: the column 'c1' has 1 missing value"),
    "missing in y, vector": ((X, holed()["c1"]), r"y: has 1 NaN or infinite value, first in row 0"),
    "NA in y, vector": ((X, holed().astype("Float64")["c1"]), r"y: (entry \[0\] i|has 1 NaN)"),
    "text beside y": ((X, frame(kind=SPECIES)), r"y: the column 'kind' holds text"),
    "polars text": (
        (Polars(a=[1.0], b=["u"]), Y[:1]),
        r"x: the column 'b' holds text, .* x\.to_dummies\('b'\)$"),
    "polars missing": ((Polars(a=[1.0, None]), Y[:2]), r"x: the column 'a' has 1 missing value"),
    # other things in the place of x
    "dictionary": (
        ({"a": X}, Y), r"x: is a dict without the key 'name' .*; give x and y as two arrays"),
    "dataset of xarray": (
        (xr.Dataset({"a": ("n", Y[:, 0])}), Y),
        r"x: is an xarray Dataset .* 'a'; give .* x\['a'\]$"),
    "path": (
        ("my.npz", None), r"x: 'my.npz': is a file path; give {'name': 'file', 'path': 'my.npz'}"),
    "path in capitals": (("MY.CSV", None), r"x: 'MY.CSV': is a file path"),
    "dataset with y": (("hierarchy", Y), r"y: must be absent, as the dataset 'hierarchy' has"),
    "y missing": ((X, None), r"y: is missing; give targets \(sample, output\), or a dataset as x"),
}  # fmt: skip
"""Arguments, and a pattern for the message."""
OPTIONS = {
    "loss in capitals": ({"loss": "MSE"}, r"loss: 'MSE': expected .*; did you mean mse\?"),
    "loss": ({"loss": "crossentropy"}, r"loss: 'crossentropy': .*did you mean cross_entropy\?"),
    "mse with more": ({"loss": {"name": "mse", "normalisation": "sum"}}, r"loss\.normalisation: '"),
    "optimiser": ({"optimiser": "sdg"}, r"optimiser: .*'sdg'; did you mean sgd\?"),
    "batch": ({"batch": "ful"}, r"batch: .*'ful'; did you mean full\?"),
    "activation": ({"activation": "ReLu"}, r"activation: 'ReLu': .*did you mean relu\?"),
    "precision": ({"precision": "float16"}, r"precision: 'float16': .*did you mean"),
    "init": ({"init": "Normal"}, r"init: .*'Normal'; did you mean normal"),
    "metric": ({"metrics": "half_time"}, r"metrics\.0: 'half_time': .* did you mean half_times"),
    "theory": ({"theory": "exakt"}, r"theory\.0: 'exakt': .* did you mean exact"),
    "observable": ({"observables": "mode_strengt"}, r"observables\.0: .* did you mean mode_streng"),
    "gates of text": ({"gates": [["a"] * 12]}, r"gates: holds text, such as 'a'"),
    "gates by vector": ({"gates": np.ones(12)}, r"gates: has shape \(12,\); .*single pathway$"),
    "gates transposed": (
        {"gates": np.ones((12, 3))}, r"gates: has shape \(12, 3\), .* did you mean gates\.T\?$"),
    "gates of a dataset": (
        {"x": "hierarchy", "y": None, "gates": np.ones((2, 3))}, r"gates: row 0 has 3 values"),
    "theory that does not apply": (
        {"theory": "exact"}, r"theory: 'exact': .*x: its inputs are not white: <x x\^T> differs "
        r"from [\d.]+ I by \d+%; whiten them, .*; these apply: aligned_modes, flow$"),
    "theory of another network": (
        {"theory": "exact", "hidden": [3, 3]}, r"theory: 'exact': does not .*: hidden: \[3, 3\]:"),
    "theory of another loss": (
        {"theory": "flow", "loss": "cross_entropy", "y": np.eye(3)[LABELS]},
        r"theory: 'flow': does not apply to this experiment: loss: 'cross_entropy': use squared"),
}  # fmt: skip
"""Other arguments, and a pattern for the message."""


def test_there_are_many_of_each():
    assert min(len(TAKEN), len(REFUSED)) > 60


@pytest.mark.parametrize("case", TAKEN)
def test_arrays_are_taken(case):
    (x, y), inputs, outputs = TAKEN[case]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)  # np.matrix
        data = nr.specify(x, y, **FAST).dataset.load()
    np.testing.assert_array_equal(data.x, np.asarray(inputs, dtype=float))
    np.testing.assert_array_equal(data.y, np.asarray(outputs, dtype=float))


@pytest.mark.parametrize("case", REFUSED)
def test_other_arrays_are_refused_with_the_reason(case):
    arguments, message = REFUSED[case]
    assert re.match(message, refusal(*arguments))


@pytest.mark.parametrize("case", [case for case in REFUSED if "class lab" in REFUSED[case][1]])
def test_advice_about_class_labels_makes_one_hot_targets(case):
    (x, y), _ = REFUSED[case]
    if isinstance(y, Tensor):
        y = y.array
    code = re.search(r"np\.eye\(\d+\)\[.+?\](\[1\]\])?(?=;|$)", refusal(x, y))[0]
    one_hot = eval(code, {"np": np, "y": y})
    assert one_hot.shape == (12, len({*np.ravel(y).tolist()}))
    assert (one_hot.sum(axis=1) == 1).all()


@pytest.mark.parametrize("case", OPTIONS)
def test_other_arguments_are_refused_with_the_reason(case):
    options, message = OPTIONS[case]
    assert re.match(message, refusal(**{"x": X, "y": Y} | options))


def refusal(*arguments, **options):
    with pytest.raises(UserError) as error:
        nr.specify(*arguments, **FAST | options)
    text = str(error.value)
    assert len(text) < 700, "numbers are dumped"
    for key in ("training.", "network.", "record.", "dataset.", "solutions", "'table'"):
        assert key not in text.replace("`neuralrace list solutions`", "")
    return text


def test_a_name_may_stand_for_a_list_of_one():
    one = {"theory": "flow", "metrics": "half_times", "observables": "mode_strength"}
    several = {key: [name] for key, name in one.items()}
    assert nr.specify(X, Y, **FAST | one) == nr.specify(X, Y, **FAST | several)


def test_mse_is_that_of_other_libraries():
    """Mean over samples and outputs; a step is the learning rate times its gradient."""
    tree = nr.simulate(
        X, Y, **FAST | {"hidden": []}, loss="mse", seeds=1, observables=["weights"], theory="flow",
        snapshots=20, progress=False,
    )  # fmt: skip
    weights = tree["trajectory"]["weight_1"].values[0, 0]
    errors = X @ weights.mT - Y
    np.testing.assert_allclose(
        tree["trajectory"]["loss"][0, 0], np.mean(errors**2, axis=(1, 2)), rtol=1e-6
    )
    slope = 2 * errors[0].T @ X / errors[0].size
    np.testing.assert_allclose(weights[1], weights[0] - 0.1 * slope, rtol=1e-5, atol=1e-7)
    flow = tree["theory"]["loss"].sel(solution="flow")[0, 0]
    np.testing.assert_allclose(tree["trajectory"]["loss"][0, 0], flow, rtol=0.05)
