"""Initialisation laws: one class in one file each, which nothing else names."""
