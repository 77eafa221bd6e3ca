"""Metrics: one file each, found by listing; see `neuralrace.extensions.registry`."""
