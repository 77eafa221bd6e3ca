"""Rectified linear networks: from a ReLU network to the gated linear network that imitates it."""
