"""Tasks of networks: how the trainer builds a network on a dataset, and its loss."""
