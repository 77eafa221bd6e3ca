"""The strictness that every test runs under.

Set before JAX and the library are imported, and in the environment, so that processes which tests
start inherit it: no implicit promotion of types or ranks. Annotations of the library are checked
when its functions are called.
"""

import os

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_NUMPY_DTYPE_PROMOTION"] = "strict"
os.environ["JAX_NUMPY_RANK_PROMOTION"] = "raise"
os.environ["MPLBACKEND"] = "agg"

from hypothesis import settings
from jaxtyping import install_import_hook

install_import_hook("neuralrace", "beartype.beartype")
settings.register_profile("reproducible", deadline=None, derandomize=True)
settings.load_profile("reproducible")
