"""Initial weights given as arrays: by layer, or as PyTorch, Flax and Keras keep them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from neuralrace.api.arrays import real_numbers
from neuralrace.errors import UserError, listed

OUT_IN = {"weight": True, "kernel": False}
"""Whether an array of this name is (out, in), as of PyTorch, or (in, out), as of Flax."""


def are_weights(init: Any) -> bool:
    """Whether the argument `init` is arrays, and not an initialiser by its name or as a mapping."""
    if isinstance(init, Mapping):
        return "name" not in init and any(np.ndim(each) for _, each in _entries(init))
    return isinstance(init, list | tuple) or hasattr(init, "shape")


def initial_arrays(init: Any, inputs: int, outputs: int) -> dict[str, np.ndarray]:
    """Initial weights as the initialiser `file` takes them, each (out, in).

    Args:
        init: a list of arrays, first layer first, or a mapping of names to arrays, which may be
            nested. Names such as `x->hidden 1 of pathway 1` are those of edges.
        inputs: number of inputs of the network.
        outputs: number of its outputs.

    Raises:
        UserError: the arrays are no weights of such a network, their order of axes is ambiguous, or
            biases are not zero.
    """
    if hasattr(init, "shape"):
        raise UserError(
            f"is one array of shape {tuple(init.shape)}",
            key="init",
            remedy="give a list with an array for each layer, [W1, W2]",
        )
    entries = {name: real_numbers(f"init.{name}", each) for name, each in _entries(init)}
    matrices = dict[str, np.ndarray]()
    for name, array in entries.items():
        _check(name, array)
        if array.ndim == 2:
            matrices[name] = array
    if not matrices:
        raise UserError("has no matrix of weights", key="init", remedy="give one for each layer")
    if all("->" in name for name in matrices):
        return matrices
    stems = {re.sub(r"\d+", "", name) for name in matrices}
    if isinstance(init, Mapping) and len(stems) == 1:  # JAX sorts Dense_10 before Dense_2
        numbers = {name: [int(n) for n in re.findall(r"\d+", name)] for name in matrices}
        matrices = {name: matrices[name] for name in sorted(matrices, key=numbers.__getitem__)}
    known = [OUT_IN.get(re.split(r"[./]", re.sub(r"_?\d+$", "", name))[-1]) for name in matrices]
    fitting = [
        turned
        for unknown in (True, False)
        if _chained(turned := _turned(matrices, known, unknown), inputs, outputs)
    ]
    shapes = ", ".join(f"{name} {array.shape}" for name, array in matrices.items())
    if not fitting:
        raise UserError(
            f"has the shapes {shapes}, which are no layers from {inputs} inputs to {outputs} "
            "outputs",
            key="init",
            remedy="give arrays (out, in), first layer first",
        )
    plain = not isinstance(init, Mapping) and len(matrices) == len(entries)
    if len(fitting) > 1 and None in known and not plain:  # a list of matrices is (out, in)
        raise UserError(
            f"has square arrays, which may be (out, in) or (in, out): {shapes}",
            key="init",
            remedy="give a list of arrays (out, in) without biases, or call them weight, (out, "
            "in), or kernel, (in, out)",
        )
    return {f"weight_{number}": array for number, array in enumerate(fitting[0], start=1)}


def _entries(init: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Arrays by dotted names; those of a list by numbers from 0."""
    if not isinstance(init, Mapping):
        yield from ((str(number), each) for number, each in enumerate(init))
        return
    for key, value in init.items():
        if isinstance(value, Mapping):
            yield from _entries(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _check(name: str, array: np.ndarray) -> None:
    """Raises UserError unless an array is a finite matrix, or a bias of zeros."""
    key = f"init.{name}"
    if array.ndim == 3:
        raise UserError(
            f"has three axes, {array.shape}",
            key=key,
            remedy="give (out, in) of one time and one run, such as the last entry of the first "
            "axis, W[-1]",
        )
    if array.ndim not in (1, 2) or not array.size:
        raise UserError(f"has shape {array.shape}", key=key, remedy="give an array (out, in)")
    if not np.isfinite(array).all():
        raise UserError("has numbers that are not finite", key=key, remedy="give others")
    if array.ndim == 1 and array.any():
        problem = "is a bias that is not zero, and biases start at zero here"
        raise UserError(problem, key=key, remedy="leave it out, or train without biases")


def _turned(
    matrices: Mapping[str, np.ndarray], known: Sequence[bool | None], unknown: bool
) -> list[np.ndarray]:
    """The matrices as (out, in), where those whose order of axes is not known have this one."""
    return [
        array if (unknown if out_in is None else out_in) else array.T
        for array, out_in in zip(matrices.values(), known, strict=True)
    ]


def _chained(layers: Sequence[np.ndarray], inputs: int, outputs: int) -> bool:
    """Whether matrices (out, in) are the layers of a network."""
    widths = [inputs, *(len(each) for each in layers)]
    return widths[-1] == outputs and widths[:-1] == [each.shape[1] for each in layers]


def hidden_units(init: Mapping[str, np.ndarray], hidden: Any) -> list[int]:
    """Units of the hidden layers that initial weights have.

    Raises:
        UserError: the argument `hidden` says otherwise.
    """
    units = [len(each) for each in init.values()][:-1]
    if hidden is not None and [*hidden] != units:
        raise UserError(
            f"init has weights of hidden layers of {listed(map(str, units)) or 'no'} units",
            key="hidden",
            value=hidden,
            remedy="leave it out",
        )
    return units
