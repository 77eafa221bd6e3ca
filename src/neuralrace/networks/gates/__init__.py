"""Gates: architecture graphs, gating schemes, trained pairs, and effective data of pathways.

A gating scheme, or a choice of trained pairs, is one class in a module of its own.
"""
