"""Flax modules of the networks (`nnx.Module`)."""
