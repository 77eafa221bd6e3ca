"""Metrics of ReLU networks, and of gated networks that imitate them."""
