"""Networks, their activations and the laws that their weights are drawn from."""
