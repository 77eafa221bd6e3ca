"""Jobs of the workflow: one module for each stage, and the worker processes that run them."""

import sys

from neuralrace.errors import UserError

if sys.platform == "win32":  # which has no file locks, limits or signals as the workflow uses them
    raise UserError("the workflow runs on Linux and macOS only", remedy="on Windows, use WSL")
