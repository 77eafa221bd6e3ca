"""Datasets: one class in one file each, which nothing else names."""

from neuralrace.datasets.base import Data, Dataset, DomainDataset, Domains, Mixture, Modes

__all__ = ["Data", "Dataset", "DomainDataset", "Domains", "Mixture", "Modes"]
