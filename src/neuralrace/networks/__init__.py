"""Networks: configurations, gates, initialisers, Flax modules, and tasks for the trainer.

Configurations are read without JAX; only `modules` and `tasks` import it.
"""
