#!/usr/bin/env bash
# Everything on a machine with a GPU, within MINUTES (12): `make figures`, where its time went, and
# verdicts that differ from those of the repository. Needs `make cuda`.
#
#     benchmarks/gpu.sh [MINUTES]
#
# When time is up, the run is interrupted; another call continues it. PYTHON names a Python other
# than that of .venv, with neuralrace installed.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
"$python" -c 'import jax; print(*jax.devices("cuda"), sep="\n")' 2> /dev/null ||
  { echo "JAX finds no GPU: run make cuda, and look at nvidia-smi" >&2; exit 1; }

code=0
timeout --signal INT "${1:-12}m" "$python" -m snakemake --cores all figures || code=$?
"$python" benchmarks/workflow.py
if [ "$code" = 0 ]; then
  "$python" -m neuralrace.claims.stored results results/verdicts.json "$(git rev-parse HEAD)"
  "$python" - << 'COMPARE'
import json
from pathlib import Path

known, here = (
    json.loads(Path(folder, "verdicts.json").read_text())["statements"]
    for folder in ("config", "results")
)
for name in sorted(known.keys() | here.keys()):
    before, now = (verdicts.get(name, {}).get("status") for verdicts in (known, here))
    if before != now:
        print(f"{name}: {now} here, {before} in the repository")
print(f"{len(here)} statements judged")
COMPARE
fi
exit "$code"
