"""How tests compile: two to three times as fast as a user's processes, for slower programs.

Compiling takes half of the time of tests that train. It optimises little, and leaves out the newer
fusion.
"""

from pathlib import Path

CACHE = Path(__file__).parents[1] / ".cache" / "jax"
"""Compiled programs, for the processes that tests start and for the next run of the suite."""
QUICK = {
    "XLA_FLAGS": "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false",
    "JAX_COMPILATION_CACHE_DIR": str(CACHE / "tests"),
}
"""Environment of the suite itself, and of processes that are a suite or a script themselves."""
