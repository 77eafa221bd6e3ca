"""Metrics: one file each, found by listing; see `neuralrace.registry`."""
