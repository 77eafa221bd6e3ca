"""Flax modules of the networks: what is trained, as `nnx.Module`."""
