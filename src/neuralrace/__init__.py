"""neuralrace."""
