"""Metrics of modes in linear networks."""
