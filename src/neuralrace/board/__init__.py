"""The benchmark: which theory of learning holds where, on the same simulations.

A task is an experiment of `config/benchmark`: a problem over init scales and one more axis. An
entry is a solution, found by listing, or a baseline. Their scores are the metric `theory_scores`;
the board puts the scores of all tasks together. Experiments, solutions and metrics themselves
belong to their own parts of the library.
"""
