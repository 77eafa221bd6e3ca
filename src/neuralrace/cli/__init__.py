"""The command line interface, `neuralrace --help`."""
