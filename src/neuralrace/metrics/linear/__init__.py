"""Metrics of linear networks by mode: learning times, alignment and interference."""
