"""Metrics that compare layers: norms, balance and growth."""
