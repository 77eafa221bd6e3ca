"""Figures on ReLU networks and their rectified linear networks."""
