"""Figures on deep linear networks."""
