"""Experiments in a few lines of Python: specify, simulate and solve without configuration files.

The functions build the same `Cell` as a configuration file would, with the same validation. The
workflow's code then trains, solves and measures it. Users import them from `neuralrace`, which
loads the module of a function at its first use.
"""
