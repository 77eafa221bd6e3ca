"""Experiments in a few lines of Python: specify, simulate and solve without configuration files.

The functions build the same `Cell` as a configuration file would, with the same validation. The
workflow's code then trains, solves and measures it.
"""

from neuralrace.api.reduction import reduce_race
from neuralrace.api.relu import find_reln
from neuralrace.api.simulation import simulate, solve
from neuralrace.api.specification import specify

__all__ = ["find_reln", "reduce_race", "simulate", "solve", "specify"]
