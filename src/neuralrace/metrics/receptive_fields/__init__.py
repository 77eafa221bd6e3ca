"""Metrics of receptive fields."""
