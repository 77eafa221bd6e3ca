"""The configuration: keys of a cell, loading, sweeps, requirements, estimates, manual."""
