"""Training: gradient descent on all runs of a cell, with observables recorded during training.

Formulas of the theory and networks' architectures do not belong here.
"""
