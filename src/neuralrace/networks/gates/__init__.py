"""Gating: architecture graphs, schemes by which pathways open, and what pathways learn from.

A scheme, or a choice of trained pairs, is one class in one file, which nothing else names.
"""
