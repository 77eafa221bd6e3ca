"""The strictness that every test runs under.

Set before JAX and the library are imported, and in the environment, so that processes which tests
start inherit it: no implicit promotion of types or ranks. Annotations of the library are checked
when its functions are called.
"""

import os
from pathlib import Path

# kernels that a machine is set up with; workers leave them out too
os.environ.pop("OPENBLAS_CORETYPE", None)
os.environ.pop("OPENBLAS_L2_SIZE", None)
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_NUMPY_DTYPE_PROMOTION"] = "strict"
os.environ["JAX_NUMPY_RANK_PROMOTION"] = "raise"
os.environ["MPLBACKEND"] = "agg"

import pytest
from hypothesis import settings
from jaxtyping import install_import_hook
from xdist.scheduler import LoadScopeScheduling

LIBRARY = Path(__file__).parents[1] / "src" / "neuralrace"
# all but the conformance suite, whose assertions pytest rewrites
install_import_hook(
    [f"neuralrace.{path.stem}" for path in LIBRARY.glob("[!_]*") if path.name != "testing"],
    "beartype.beartype",
)
settings.register_profile("reproducible", deadline=None, derandomize=True)
settings.load_profile("reproducible")

SHARING = (
    "tests/figures",
    "tests/repository/site",
    "tests/workflow/finished",
    "tests/workflow/faults/slurm",
)
"""Folders whose tests share what takes minutes to make."""


class FoldersTogether(LoadScopeScheduling):
    """Tests of a folder that share a fixture run in one process, all others wherever there is time.

    Not by `--dist loadgroup`, which pytest 9.2 and pytest-xdist 3.8 no longer do together: marked
    tests are handed out like any others, and nothing tells.
    """

    def _split_scope(self, nodeid: str) -> str:
        folder = nodeid.partition("::")[0].rpartition("/")[0]
        return folder if folder in SHARING else nodeid


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log) -> FoldersTogether:
    """Tells pytest-xdist how to hand out tests."""
    return FoldersTogether(config, log)
