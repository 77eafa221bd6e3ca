"""What jobs of the workflow do: one module for each stage, and the processes that they run in."""
