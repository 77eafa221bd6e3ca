"""Datasets: one file per concept, one entry here each."""

from neuralrace.datasets.base import Data, Dataset, DomainDataset, Domains, Mixture, Modes
from neuralrace.datasets.cifar10 import Cifar10
from neuralrace.datasets.contextual import Contextual
from neuralrace.datasets.digits import Digits
from neuralrace.datasets.gaussian_mixture import GaussianMixture
from neuralrace.datasets.hierarchy import Hierarchy
from neuralrace.datasets.mnist import Mnist
from neuralrace.datasets.modes import PrescribedModes
from neuralrace.datasets.nonlinear_gaussian import NonlinearGaussian
from neuralrace.datasets.routing import Routing
from neuralrace.datasets.single_pulse import SinglePulse
from neuralrace.datasets.structural_forms import StructuralForm
from neuralrace.datasets.table import Table
from neuralrace.datasets.transformed_images import TransformedImages
from neuralrace.datasets.xor import Xor

DATASETS: tuple[type[Dataset], ...] = (
    Cifar10,
    Contextual,
    Digits,
    GaussianMixture,
    Hierarchy,
    Mnist,
    NonlinearGaussian,
    PrescribedModes,
    Routing,
    SinglePulse,
    StructuralForm,
    Table,
    TransformedImages,
    Xor,
)

__all__ = [
    "DATASETS",
    "Data",
    "Dataset",
    "DomainDataset",
    "Domains",
    "Mixture",
    "Modes",
    "TransformedImages",
]
