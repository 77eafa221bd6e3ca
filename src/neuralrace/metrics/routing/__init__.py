"""Metrics of routing between domains."""
