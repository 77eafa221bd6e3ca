"""Metrics of pathways and their gates: shares, correlations, and theory of frozen gates."""
