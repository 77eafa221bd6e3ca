"""Scores of the benchmark: how far each theory is from the simulation of the same runs."""

OTHER_SEEDS = "other_seeds"
"""The entry that predicts the mean over all other seeds of the simulation."""
