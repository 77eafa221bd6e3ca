"""Tasks: how the trainer builds a network on a dataset, and what its loss is."""
