"""Metrics of receptive fields: their shape, and their distance from theory."""
