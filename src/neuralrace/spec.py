"""The one definition of an experiment: what can be configured, its types, defaults and meaning.

A `Cell` is one point of an experiment's sweep: a `Run` (what is trained) and what is computed about
it. Init scales and seeds are dimensions inside a run. `neuralrace.plan` reads cells from `config/`.
"""

from typing import Annotated, Literal, TypeVar, Union

from pydantic import Field, model_validator

from neuralrace.base import Strict
from neuralrace.datasets import DATASETS
from neuralrace.models.initialisation import LAWS

Positive = Annotated[int, Field(gt=0)]

Activation = Literal["linear", "relu", "erf", "sigmoid", "tanh"]
Observable = Literal[
    "accuracy",
    "bias_norm",
    "gram",
    "imbalance",
    "layer_norm",
    "linear_map",
    "mode_strength",
    "outputs",
    "rate_gap",
    "singular_values",
    "weights",
]
Solution = Literal[
    "aligned_modes",
    "exact",
    "flow",
    "layered_modes",
    "shallow_modes",
    "symmetric_start",
    "tied",
    "untied_modes",
]
Metric = Literal[
    "alignment",
    "analytic_fit",
    "balance",
    "growth_bound",
    "interference",
    "layer_norm_gaps",
    "layer_ratio",
    "learning_times",
    "linearisation",
    "rate_gaps",
    "unaligned_growth",
]


class Network(Strict):
    """A layered network; input and output widths come from the dataset."""

    hidden: tuple[Positive, ...]
    """Units in each hidden layer; empty for a single layer of weights."""
    activation: Activation = "linear"
    """Activation of the hidden layers."""
    bias: bool = False
    """Whether layers have biases; they start at zero."""
    readout: Literal["trained", "fixed"] = "trained"
    """Whether the last layer is trained or stays as drawn."""


class Loss(Strict):
    """What is minimised, with its normalisation."""

    name: Literal["squared_error", "cross_entropy"] = "squared_error"
    """Squared error, or cross-entropy of the softmax of the outputs."""
    normalisation: Literal["half_mean", "half_sum", "mean", "sum"] = "half_mean"
    """Over samples: 1/2 mean, 1/2 sum, mean or sum; cross-entropy knows mean and sum."""

    @model_validator(mode="after")
    def _no_half_cross_entropy(self) -> "Loss":
        if self.name == "cross_entropy" and self.normalisation.startswith("half"):
            raise ValueError(
                f"normalisation {self.normalisation!r} is for squared_error; "
                "cross_entropy has mean or sum"
            )
        return self

    def factor(self, samples: int) -> float:
        """This loss over its per-sample reference, 1/2 |y - yhat|^2 or -log p, averaged."""
        per_sample = 0.5 if self.name == "squared_error" else 1.0
        factors = {"half_mean": 0.5, "half_sum": 0.5 * samples, "mean": 1.0, "sum": float(samples)}
        return factors[self.normalisation] / per_sample


class FullBatch(Strict):
    """Every step sees every sample."""

    name: Literal["full"] = "full"


class MiniBatch(Strict):
    """Every step sees the next part of a seeded shuffle, anew in each epoch."""

    name: Literal["mini"]
    size: Positive
    """Samples a step; what is left over at the end of an epoch is skipped."""


class FreshBatch(Strict):
    """Every step draws new samples from the dataset's law."""

    name: Literal["fresh"]
    size: Positive
    """Samples a step."""


class Training(Strict):
    """Gradient descent."""

    learning_rate: Annotated[float, Field(gt=0)]
    """Step size of gradient descent on the loss as normalised."""
    steps: Positive
    """Gradient steps; with batch `full`, one step is one epoch."""
    momentum: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Heavy-ball momentum."""
    loss: Loss = Loss()
    """Loss and its normalisation."""
    batch: Annotated[FullBatch | MiniBatch | FreshBatch, Field(discriminator="name")] = FullBatch()
    """Which samples a step sees."""

    def flow_step(self, samples: int) -> float:
        """Gradient-flow time of one step, in units of tau.

        Flow time is that of dW/dt = -grad of the loss averaged over samples, with 1/2 for squared
        error; the theory knows no other clock. Momentum lengthens a step by 1/(1 - momentum).
        """
        return self.learning_rate * self.loss.factor(samples) / (1 - self.momentum)


class Record(Strict):
    """What is observed during training, and how often."""

    every: Positive
    """Steps between two entries of the time axis."""
    snapshots: Positive = 1
    """Intervals between snapshots of large observables (weights, outputs)."""
    observables: tuple[Observable, ...] = ()
    """What is recorded beside the loss."""


class Run(Strict):
    """What is trained: the part of a cell that fixes its trajectory."""

    dataset: Annotated[Union[DATASETS], Field(discriminator="name")]  # pyright: ignore  # noqa: UP007
    """Dataset and its parameters."""
    network: Network
    """Architecture."""
    init: Annotated[Union[LAWS], Field(discriminator="name")]  # pyright: ignore  # noqa: UP007
    """Initialisation law and its parameters."""
    init_scales: Annotated[tuple[Annotated[float, Field(gt=0)], ...], Field(min_length=1)]
    """Factors on every initial weight; a dimension of the results."""
    seeds: Positive
    """Runs per init scale, seeds 0 ... n-1; a dimension of the results."""
    training: Training
    """Gradient descent."""
    record: Record
    """Observations."""
    precision: Literal["float32", "float64"] = "float64"
    """Arithmetic of training; float64 where theory is compared with simulation."""

    @model_validator(mode="after")
    def _consistent(self) -> "Run":
        if len(set(self.init_scales)) < len(self.init_scales):
            raise ValueError(f"init_scales {list(self.init_scales)} repeats a value")
        steps, every, snapshots = self.training.steps, self.record.every, self.record.snapshots
        if steps % every or (steps // every) % snapshots:
            raise ValueError(
                f"training.steps ({steps}) must be a multiple of record.every ({every}) times "
                f"record.snapshots ({snapshots})"
            )
        return self

    @model_validator(mode="after")
    def _observable(self) -> "Run":
        hidden = len(self.network.hidden)
        needs = {
            "gram": (hidden == 1, "one hidden layer"),
            "imbalance": (hidden > 0, "a hidden layer"),
            "rate_gap": (hidden > 0, "a hidden layer"),
        }
        for name in self.record.observables:
            met, need = needs.get(name, (True, ""))
            if not met:
                raise ValueError(f"record.observables: {name!r} needs {need}")
        return self


R = TypeVar("R", bound=Run)


class SolvedRun(Run):
    """A run and the theory that stands beside it."""

    solutions: tuple[Solution, ...] = ()
    """Theory solved from the same initial weights."""


class Cell(SolvedRun):
    """One job's worth: a run, its theory, and what is measured in both."""

    metrics: tuple[Metric, ...] = ()
    """Metrics computed from trajectory and theory."""

    def only(self, part: type[R]) -> R:
        """The part that fixes an earlier stage: editing a metric must not retrain anything."""
        return part.model_construct(**{name: getattr(self, name) for name in part.model_fields})
