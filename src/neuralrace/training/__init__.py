"""Training: gradient descent on whole ensembles, with observables recorded on the way."""
