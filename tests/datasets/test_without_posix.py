"""The Python functions without the modules and functions that Windows does not have."""

import os
import subprocess
import sys

import numpy as np

WITHOUT = """
import os, signal, sys
import jax, matplotlib, netCDF4, pandas, psutil, pydantic, scipy, seaborn, xarray  # may use them

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name in ("fcntl", "grp", "pwd", "resource", "termios"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules.pop(name, None)
for name in ("fork", "getuid", "register_at_fork", "sched_getaffinity", "sysconf", "O_NONBLOCK"):
    delattr(os, name)
for name in ("SIGHUP", "SIGKILL", "SIGPIPE", "pthread_sigmask"):
    delattr(signal, name)

import neuralrace as nr
options = {"hidden": [3], "seeds": 1, "records": 4, "learning_rate": 0.1, "steps": 8}
file = {"name": "file", "path": sys.argv[1]}
tree = nr.simulate(file, init_scales=[0.1], theory=None, **options)
nr.plot(tree).savefig(sys.argv[2])
print(tree.attrs["status"])
"""


def test_simulation_needs_no_posix(tmp_path):
    np.savez(tmp_path / "data.npz", x=np.eye(3), y=np.diag([3.0, 2, 1]))
    command = [sys.executable, "-c", WITHOUT, tmp_path / "data.npz", tmp_path / "plot.png"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
    assert done.stdout.startswith("0 of 1 runs diverged"), done.stderr
    assert (tmp_path / "plot.png").stat().st_size > 1000
