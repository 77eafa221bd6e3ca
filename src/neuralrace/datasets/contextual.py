"""Objects shown in contexts: some properties hold always, some in one context only."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float
from pydantic import Field, model_validator

from neuralrace.datasets.base import Data, Dataset, Sizes

Structure = Literal["hierarchy", "ring", "cross_cutting"]


def _power_of_two(number: int) -> bool:
    return number.bit_count() == 1


REQUIREMENTS: dict[Structure, tuple[Callable[[int], bool], str]] = {
    "hierarchy": (
        lambda objects: _power_of_two(objects) and objects >= 2,
        "2, 4, 8 or a higher power of two",
    ),
    "ring": (lambda objects: objects >= 4, "at least 4"),
    "cross_cutting": (
        lambda objects: _power_of_two(objects) and objects >= 4,
        "4, 8 or a higher power of two",
    ),
}
"""What numbers of objects a structure can have."""


def properties(structure: Structure, objects: int) -> Float[np.ndarray, "property object"]:
    """Which object has which property: 1 where it does, 0 where not.

    Every structure ends with one property of each object's own. Before these, a hierarchy has one
    property for every inner node of a binary tree, held by the objects below it: all objects, each
    half, each quarter and so on; a ring has one for each object, held by it and its two neighbours;
    a cross-cutting structure has two for each binary digit of the objects' numbers, held by those
    with digit 0 and by those with digit 1, the leading digit first.

    The squared singular values h^2, the one of the mode of all objects first, are

    - hierarchy: 2n - 1, and m - 1 for each inner node with m of the n objects below it, which
      contrasts the halves of these m (15, 7, 3, 3, 1, 1, 1, 1 for 8 objects);
    - ring: (1 + 2 cos(2 pi k/n))^2 + 1 for k = 0 ... n - 1;
    - cross-cutting: (n/2) log2 n + 1, then n/2 + 1 for each digit, and 1 for all others.

    The text of the paper names these structures and does not write their matrices out; they are
    defined here and nowhere else. With 8 objects, each object has 4 properties in all three.

    Args:
        structure: kind of structure.
        objects: number of objects n.

    Raises:
        ValueError: the structure does not exist for so many objects.

    Source: Jarvis et al., "Make Haste Slowly", secs. 4 and 5, fig. 3.
    """
    _fits(structure, objects)
    own = np.eye(objects)
    digits = objects.bit_length() - 1
    match structure:
        case "hierarchy":
            levels = [2**level for level in range(digits)]
            shared = [np.kron(np.eye(nodes), np.ones(objects // nodes)) for nodes in levels]
        case "ring":
            shared = [own + np.roll(own, 1, axis=1) + np.roll(own, -1, axis=1)]
        case "cross_cutting":
            leading_first = np.arange(digits)[::-1, None]
            digit = np.arange(objects) >> leading_first & 1
            shared = [np.stack([1 - digit, digit], axis=1).reshape(-1, objects)]
    return np.vstack([*shared, own])


def _fits(structure: Structure, objects: int) -> None:
    fits, wanted = REQUIREMENTS[structure]
    if not fits(objects):
        raise ValueError(f"objects: structure {structure} needs {wanted}, not {objects}")


class Contextual(Dataset):
    """Objects in contexts, each pair a sample (Jarvis et al., "Make Haste Slowly", secs. 4 and 5).

    Inputs are one-hot in the object and one-hot in the context. Targets are a hierarchy over the
    objects that holds in every context, and for each context a block that holds in this one and is
    zero in all others. The first block is linear in the inputs, the others are not. The matrices
    are those of `neuralrace.datasets.contextual.properties`.

    If all contexts have a hierarchy too, the modes for n objects and C contexts, with s and d in
    units of 1/(nC), are one of all inputs, s^2 = (2n - 1)(n + C)(C + 1) and d = n + C; C - 1 of
    contexts, s^2 = (2n - 1)n and d = n; and n - 1 of objects, s^2 = h^2 C (C + 1) and d = C, with
    h^2 as in the hierarchy alone (7, 3, 3, 1, 1, 1, 1 for 8 objects). One last input vector,
    objects against contexts, is zero on all samples: s = d = 0. Contexts whose structures differ in
    h^2 of all objects together mix the modes of contexts with that of all inputs, and sigma_xx is
    not diagonal in these modes.

    The best linear map of all inputs answers with the mean over contexts plus the mean over objects
    minus the mean over both. What it leaves has mean zero over contexts and over objects: none of
    the first block, and of the block of a context the deviations from the mean over objects, times
    1 - 1/C in this context and -1/C in the others.
    """

    example: ClassVar[Mapping[str, Any]] = {"contexts": 2, "objects": 4}
    name: Literal["contextual"]
    contexts: Annotated[int, Field(ge=2)]
    """Contexts, and blocks of targets that hold in one of them."""
    objects: Annotated[int, Field(ge=2)] = 8
    """Objects; a power of two, for the hierarchy that holds in every context."""
    structures: tuple[Structure, ...] = ("hierarchy",)
    """Structure of each context's own block: one for all contexts, or one for each."""
    part: Literal["whole", "common", "residual"] = "whole"
    """Targets: the whole, what the best linear map of all inputs gives, or what that leaves."""

    @model_validator(mode="after")
    def _structures_exist(self) -> "Contextual":
        if len(self.structures) not in (1, self.contexts):
            raise ValueError(
                f"structures: {len(self.structures)} for {self.contexts} contexts; "
                "give one for all contexts, or one for each"
            )
        for structure in ("hierarchy", *self.structures):
            _fits(structure, self.objects)
        return self

    @property
    def blocks(self) -> tuple[Structure, ...]:
        """Structure of each block of targets: of all contexts together, then of each by itself."""
        own = (self.structures * self.contexts)[: self.contexts]  # one for all is repeated
        return "hierarchy", *own

    @property
    def sizes(self) -> Sizes:
        """A sample for each object in each context."""
        objects, contexts = self.objects, self.contexts
        digits = objects.bit_length() - 1
        held = {"hierarchy": objects - 1, "ring": objects, "cross_cutting": 2 * digits}
        repeated = contexts // len(self.structures)  # one for all contexts, or one for each
        own = repeated * sum(objects + held[structure] for structure in self.structures)
        return Sizes(objects * contexts, objects + contexts, 2 * objects - 1 + own)

    def load(self) -> Data:
        """Context after context, in each all objects; items are named "object in context"."""
        objects, contexts = self.objects, self.contexts
        everywhere, only = np.ones((contexts, 1)), np.eye(contexts)
        x = np.hstack([np.kron(everywhere, np.eye(objects)), np.kron(only, np.ones((objects, 1)))])
        common, *own = self.blocks
        blocks = [np.kron(everywhere, properties(common, objects).T)]
        for context, structure in enumerate(own):
            blocks.append(np.kron(only[:, [context]], properties(structure, objects).T))
        y = np.hstack(blocks)
        if self.part != "whole":
            linear = x @ np.linalg.lstsq(x, y, rcond=None)[0]
            y = linear if self.part == "common" else y - linear
        return Data(
            x=x,
            y=y,
            item_names=tuple(f"{o} in {c}" for c in range(contexts) for o in range(objects)),
            contexts=np.repeat(np.arange(contexts), objects),
            input_groups=(objects, contexts),
        )
