"""Metrics of routing networks: zero-shot errors and shared representations."""
