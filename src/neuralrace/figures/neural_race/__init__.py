"""Figures on gated networks and the neural race."""
