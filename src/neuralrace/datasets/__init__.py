"""Datasets: one file per concept, one entry here each."""

from neuralrace.datasets.base import Data, Dataset, Domains, Mixture, Modes
from neuralrace.datasets.contextual import Contextual
from neuralrace.datasets.gaussian_mixture import GaussianMixture
from neuralrace.datasets.hierarchy import Hierarchy
from neuralrace.datasets.images import Digits, Mnist
from neuralrace.datasets.modes import PrescribedModes
from neuralrace.datasets.nonlinear_gaussian import NonlinearGaussian
from neuralrace.datasets.routing import Routing
from neuralrace.datasets.single_pulse import SinglePulse
from neuralrace.datasets.structural_forms import StructuralForm
from neuralrace.datasets.table import Table
from neuralrace.datasets.xor import Xor

DATASETS: tuple[type[Dataset], ...] = (
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
    Xor,
)

__all__ = ["DATASETS", "Data", "Dataset", "Domains", "Mixture", "Modes"]
