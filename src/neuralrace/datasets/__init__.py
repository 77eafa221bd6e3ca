"""Datasets: one file per concept, one entry here each."""

from neuralrace.datasets.base import Data, Dataset, Modes
from neuralrace.datasets.gaussian_mixture import GaussianMixture
from neuralrace.datasets.hierarchy import Hierarchy
from neuralrace.datasets.images import Digits, Mnist
from neuralrace.datasets.modes import PrescribedModes

DATASETS: tuple[type[Dataset], ...] = (
    Digits,
    GaussianMixture,
    Hierarchy,
    Mnist,
    PrescribedModes,
)

__all__ = ["DATASETS", "Data", "Dataset", "Modes"]
