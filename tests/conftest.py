"""The strictness that every test runs under.

Set before JAX and the library are imported, and in the environment, so that processes which tests
start inherit it: no implicit promotion of types or ranks. Shapes of arrays are checked when the
functions of the library are called.
"""

import atexit
import compileall
import gc
import os
import re
from collections.abc import Iterator
from pathlib import Path

from compiling import CACHE, QUICK
from warm_python import PYTHON

# kernels that a machine is set up with; workers leave them out too
os.environ.pop("OPENBLAS_CORETYPE", None)
os.environ.pop("OPENBLAS_L2_SIZE", None)
# compiled modules save a second or two in each of the many processes that tests start
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_NUMPY_DTYPE_PROMOTION"] = "strict"
os.environ["JAX_NUMPY_RANK_PROMOTION"] = "raise"
os.environ["MPLBACKEND"] = "agg"
# this process compiles quickly; processes that tests start do not inherit this, and compile as
# those of a user
os.environ.update(QUICK)

import jax
import pytest
from hypothesis import settings
from jaxtyping import install_import_hook
from xdist.scheduler import LoadScopeScheduling

LIBRARY = Path(__file__).parents[1] / "src" / "neuralrace"
# modules with shapes of arrays in their signatures; to check all others would take a third of the
# suite's time, and pyright checks their types
install_import_hook(
    [
        "neuralrace." + ".".join(path.relative_to(LIBRARY).with_suffix("").parts)
        for path in LIBRARY.rglob("*.py")
        if "jaxtyping" in path.read_text(encoding="utf-8")
    ],
    "beartype.beartype",
)
settings.register_profile("reproducible", deadline=None, derandomize=True)
settings.load_profile("reproducible")

jax.jit(lambda: 0)()  # from now on, the compiler has its flags
del os.environ["XLA_FLAGS"]
os.environ["JAX_COMPILATION_CACHE_DIR"] = str(CACHE)

SHARING = (
    "tests/figures",
    "tests/repository/site",
    "tests/repository/test_docs.py",
    "tests/repository/test_packaging.py",
    "tests/workflow/finished",
    "tests/workflow/faults/slurm",
)
"""Folders and files whose tests share what takes long to make."""
TESTS = Path(__file__).parent
MODULES = frozenset(
    path.relative_to(TESTS.parent).as_posix()
    for path in TESTS.rglob("test_*.py")
    if re.search(r"fixture\(.*scope=\"module\"", path.read_text(encoding="utf-8"))
)
"""Files with fixtures for all of their tests, which each process would make again."""
LONG = (
    "tests/figures",
    "tests/test_api.py",
    "tests/workflow",
    "tests/extensions",
    "tests/board",
    "tests/theory",
    "tests/repository",
    "src/neuralrace/testing",
)
"""Folders and files of long tests."""


class Together(LoadScopeScheduling):
    """Tests that share what takes long run in one process, all others wherever there is time.

    Not by `--dist loadgroup`, which pytest 9.2 and pytest-xdist 3.8 no longer do together: marked
    tests are handed out like any others, and nothing tells.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        alone = file if file in MODULES else nodeid
        return next((place for place in SHARING if f"{file}/".startswith(f"{place}/")), alone)


def pytest_configure(config: pytest.Config) -> None:
    """Compiles the library once, also for the workspaces into which it is copied."""
    if not hasattr(config, "workerinput"):  # not in the workers of pytest-xdist
        compileall.compile_dir(LIBRARY, quiet=2)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log) -> Together:
    """Tells pytest-xdist how to hand out tests."""
    return Together(config, log)


def pytest_collection_finish() -> None:
    """Has later collections of garbage skip modules and tests; they take a twelfth of a test."""
    gc.freeze()
    atexit.register(gc.freeze)  # and the one as Python ends


@pytest.fixture(scope="session", autouse=True)
def ending_python() -> Iterator[None]:
    """Ends the process that processes of tests are forks of."""
    yield
    PYTHON.end()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts long tests first, so that none is left for one process when all others are done."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))
