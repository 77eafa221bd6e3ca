"""Datasets: inputs and targets, with their correlations.

Each dataset is one class in one file. `neuralrace.extensions.registry` finds the class there, so no
list of datasets is kept. What networks do with the samples belongs to `networks` and `training`.
"""

from neuralrace.datasets.base import Data, Dataset, DomainDataset, Domains, Mixture, Modes

__all__ = ["Data", "Dataset", "DomainDataset", "Domains", "Mixture", "Modes"]
