"""Jobs of the workflow: one module for each stage, and the worker processes that run them."""
