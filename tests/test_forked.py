"""Short jobs in processes of their own: their end is told once, whoever else starts one."""

import subprocess
import sys
from pathlib import Path

CALLS = 200
SCRIPT = f"""
import sys
from concurrent.futures import ThreadPoolExecutor
from neuralrace.errors import UserError
from neuralrace.forked import call

def told(status):
    try:
        call("sys", "exit", status)
    except UserError as error:
        return str(error)
    return ""

if __name__ == "__main__":
    sys.setswitchinterval(1e-6)  # threads come between each other's steps
    with ThreadPoolExecutor(8) as threads:
        ends = list(threads.map(told, [3, *[0] * {CALLS}, 4]))
    print(*ends, sep="|")
"""


def test_jobs_of_many_threads_end_as_they_end(tmp_path: Path):
    script = tmp_path / "many.py"
    script.write_text(SCRIPT, encoding="utf-8")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    said = "sys.exit ended with exit status"
    assert done.stdout.strip().split("|") == [f"{said} 3", *[""] * CALLS, f"{said} 4"]
