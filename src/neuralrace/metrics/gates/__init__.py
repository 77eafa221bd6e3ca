"""Metrics of gated networks."""
