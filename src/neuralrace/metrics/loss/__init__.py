"""Metrics of the loss curve."""
