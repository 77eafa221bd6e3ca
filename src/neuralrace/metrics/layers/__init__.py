"""Metrics that compare layers: norms, balance, growth."""
