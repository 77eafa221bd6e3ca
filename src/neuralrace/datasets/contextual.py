"""Objects in contexts: some of their properties depend on the context."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float
from pydantic import Field, model_validator

from neuralrace.datasets.base import Data, Dataset, Sizes
from neuralrace.errors import UserError

Structure = Literal["hierarchy", "ring", "cross_cutting"]


REQUIREMENTS: dict[Structure, tuple[Callable[[int], bool], str]] = {
    "hierarchy": (
        lambda objects: objects.bit_count() == 1 and objects >= 2,
        "2, 4, 8 or a higher power of two",
    ),
    "ring": (lambda objects: objects >= 4, "at least 4"),
    "cross_cutting": (
        lambda objects: objects.bit_count() == 1 and objects >= 4,
        "4, 8 or a higher power of two",
    ),
}
"""Which numbers of objects a structure can have: a test, and its description."""


def properties(structure: Structure, objects: int) -> Float[np.ndarray, "property object"]:
    """Matrix of properties and objects: 1 where the object has the property, 0 elsewhere.

    The last rows of every structure are one property for each object alone. The rows before them
    are shared properties:

    - hierarchy: one for every inner node of a binary tree, shared by the objects below the node
      (all objects, each half, each quarter and so on);
    - ring: one for each object, shared with its two neighbours;
    - cross-cutting: two for each binary digit of the object's number, leading digit first, shared
      by all objects with digit 0 and by all with digit 1.

    The squared singular values h^2, the one of the mode of all objects first, are

    - hierarchy: 2n - 1, and m - 1 for each inner node with m of the n objects below it; this mode
      contrasts the two halves of the m objects (15, 7, 3, 3, 1, 1, 1, 1 for 8 objects);
    - ring: (1 + 2 cos(2 pi k/n))^2 + 1 for k = 0 ... n - 1;
    - cross-cutting: (n/2) log2 n + 1, then n/2 + 1 for each digit, and 1 for all others.

    The paper names these structures without giving their matrices, so this function defines them.
    With 8 objects, each object has 4 properties in all three structures.

    Args:
        structure: name of the structure.
        objects: number of objects n.

    Raises:
        UserError: the structure does not exist for this number of objects.

    Source: Jarvis et al., "Make Haste Slowly", secs. 4 and 5, fig. 3.
    """
    _refuse_number(structure, objects)
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


def _refuse_number(structure: Structure, objects: int) -> None:
    possible, numbers = REQUIREMENTS[structure]
    if not possible(objects):
        problem = f"structure {structure} needs {numbers}"
        raise UserError(problem, key="objects", value=objects, remedy="change `objects`")


class Contextual(Dataset):
    """Objects in contexts; each pair is a sample (Jarvis et al., "Make Haste Slowly", secs. 4, 5).

    Inputs are a one-hot code of the object and a one-hot code of the context. The first block of
    targets is a hierarchy over the objects, the same in every context. Each context adds a block of
    its own, which is zero in all other contexts. The first block is linear in the inputs, the
    others are not. `neuralrace.datasets.contextual.properties` gives the matrices.

    If all blocks are hierarchies, the modes for n objects and C contexts are as follows, with s and
    d in units of 1/(nC):

    - one mode of all inputs: s^2 = (2n - 1)(n + C)(C + 1) and d = n + C;
    - C - 1 modes of contexts: s^2 = (2n - 1)n and d = n;
    - n - 1 modes of objects: s^2 = h^2 C (C + 1) and d = C, with h^2 as in the hierarchy alone
      (7, 3, 3, 1, 1, 1, 1 for 8 objects);
    - one direction, objects against contexts, that is zero on all samples: s = d = 0.

    Structures that differ in h^2 of the mode of all objects mix the modes of contexts with the mode
    of all inputs. Then sigma_xx is not diagonal in the modes.

    The best linear map predicts the mean over contexts plus the mean over objects minus the mean
    over both. Its residual has mean zero over contexts and over objects, and is zero in the first
    block. In the block of a context it is the deviation from the mean over objects, times 1 - 1/C
    in this context and -1/C in the others.
    """

    example: ClassVar[Mapping[str, Any]] = {"contexts": 2, "objects": 4}
    name: Literal["contextual"]
    contexts: Annotated[int, Field(ge=2)]
    """Number of contexts C; each adds a block of targets."""
    objects: Annotated[int, Field(ge=2)] = 8
    """Number of objects n: a power of two, as the first block is a hierarchy."""
    structures: tuple[Structure, ...] = ("hierarchy",)
    """Structure of the block of each context: one for all contexts, or one for each."""
    part: Literal["whole", "common", "residual"] = "whole"
    """Targets: the whole, its best linear prediction from the inputs (common), or the residual."""

    @model_validator(mode="after")
    def _structures_exist(self) -> "Contextual":
        if len(self.structures) not in (1, self.contexts):
            raise UserError(
                f"{len(self.structures)} structures for {self.contexts} contexts",
                key="structures",
                value=self.structures,
                remedy="use one for all contexts, or one for each",
            )
        for structure in ("hierarchy", *self.structures):
            _refuse_number(structure, self.objects)
        return self

    @property
    def blocks(self) -> tuple[Structure, ...]:
        """Structure of each block of targets: the common block, then the block of each context."""
        own = (self.structures * self.contexts)[: self.contexts]  # a single structure is repeated
        return "hierarchy", *own

    @property
    def sizes(self) -> Sizes:
        """One sample for each object in each context."""
        objects, contexts = self.objects, self.contexts
        digits = objects.bit_length() - 1
        shared = {"hierarchy": objects - 1, "ring": objects, "cross_cutting": 2 * digits}
        # planning checks any number of contexts, so `blocks` may be too long to list here
        repeated = contexts // len(self.structures)
        own = repeated * sum(objects + shared[structure] for structure in self.structures)
        return Sizes(objects * contexts, objects + contexts, 2 * objects - 1 + own)

    def load(self) -> Data:
        """All objects in the first context, then in the second, and so on."""
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
