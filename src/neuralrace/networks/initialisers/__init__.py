"""Initialisers of weights, one class in a module of its own each."""
