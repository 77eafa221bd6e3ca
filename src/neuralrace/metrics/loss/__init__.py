"""Metrics of the loss curve, for networks of every kind."""
