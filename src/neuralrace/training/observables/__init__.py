"""Observables: what is recorded during training.

An observable is a function of one network (see `view.View`) that returns named arrays. The trainer
batches it over runs and calls it inside the compiled loop.
"""
