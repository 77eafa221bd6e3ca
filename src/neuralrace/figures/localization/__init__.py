"""Figures on localisation: receptive fields of ReLU networks, and what gates explain of them."""
