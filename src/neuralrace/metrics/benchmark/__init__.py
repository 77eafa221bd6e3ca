"""Scores of the benchmark: how far each theory is from the simulation of the same runs."""
