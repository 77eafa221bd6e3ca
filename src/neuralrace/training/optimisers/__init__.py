"""How gradients become steps: one module for each optimiser."""
