"""Initialisers of weights, one class in each module."""
