"""Another dataset with negated or permuted targets, for reversal learning."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field

from neuralrace.datasets.base import Data, Dataset, Sizes
from neuralrace.datasets.random_streams import generator
from neuralrace.extensions.registry import ChoiceOf


class ChangedTargets(Dataset):
    """The inputs of another dataset with changed targets, as in reversal learning.

    Negated targets and permuted outputs keep the singular vectors of the other dataset, with
    negative strengths or permuted entries: with negated targets, strengths of modes continue where
    they are, and with permuted outputs they jump.

    Source: Braun, Dominé, Fitzgerald, Saxe 2022, for negated targets (reversal learning).
    """

    model_config = ConfigDict(defer_build=True)
    example: ClassVar[Mapping[str, Any]] = {"of": {"name": "hierarchy"}}
    name: Literal["changed_targets"]
    of: Annotated[Dataset, ChoiceOf("datasets", without=("changed_targets", "sequence"))]
    """The other dataset."""
    change: Literal["negated", "permuted_outputs", "permuted_samples"] = "negated"
    """Whether targets change their sign, or are permuted at random among outputs or samples."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the permutation."""

    @property
    def contexts(self) -> Any:
        """Those of the other dataset; None if it has none."""
        return getattr(self.of, "contexts", None)

    @property
    def sizes(self) -> Sizes:
        """Those of the other dataset."""
        return self.of.sizes

    def load(self) -> Data:
        """The other dataset with its new targets.

        Raises:
            UserError: files of the other dataset are missing or damaged.
        """
        data = self.of.load()
        u, s, v = data.modes.output_basis, data.modes.s, data.modes.input_basis
        rng = generator(self.seed, "permutation of targets")
        match self.change:
            case "negated":
                return replace(data, y=-data.y, signed_basis=(u, -s, v))
            case "permuted_outputs":
                order = rng.permutation(data.y.shape[1])
                return replace(data, y=data.y[:, order], signed_basis=(u[order], s, v))
            case "permuted_samples":
                order = rng.permutation(len(data.y))
                return replace(data, y=data.y[order], signed_basis=None)
