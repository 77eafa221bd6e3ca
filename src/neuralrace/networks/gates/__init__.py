"""Gates: architecture graphs, gating schemes, trained pairs, and effective data of pathways.

Each gating scheme, and each choice of trained pairs, is one class.
"""
