"""Optimisers, one module each."""
