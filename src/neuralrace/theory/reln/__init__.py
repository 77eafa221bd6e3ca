"""Rectified linear networks (ReLN): gated linear networks that imitate a ReLU network.

Source: Jarvis, Klein, Rosman, Saxe, "Make Haste Slowly".
"""
