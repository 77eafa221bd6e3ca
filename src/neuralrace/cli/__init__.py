"""The `neuralrace` command: one module for each subcommand that is more than a call."""
