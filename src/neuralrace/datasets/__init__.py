"""Datasets: one file per concept, one entry here each."""

from neuralrace.datasets.base import Data, Dataset, Domains, Modes
from neuralrace.datasets.contextual import Contextual
from neuralrace.datasets.gaussian_mixture import GaussianMixture
from neuralrace.datasets.hierarchy import Hierarchy
from neuralrace.datasets.images import Digits, Mnist
from neuralrace.datasets.modes import PrescribedModes
from neuralrace.datasets.routing import Routing
from neuralrace.datasets.structural_forms import StructuralForm
from neuralrace.datasets.table import Table
from neuralrace.datasets.xor import Xor

DATASETS: tuple[type[Dataset], ...] = (
    Contextual,
    Digits,
    GaussianMixture,
    Hierarchy,
    Mnist,
    PrescribedModes,
    Routing,
    StructuralForm,
    Table,
    Xor,
)

__all__ = ["DATASETS", "Data", "Dataset", "Domains", "Modes"]
