"""The audit of dependencies: what it prints of each answer, and its exit status."""

import json
import re
import runpy
import subprocess
from types import SimpleNamespace

import pytest

from builders import REPOSITORY

CI = REPOSITORY / ".ci"
AUDIT = runpy.run_path(str(CI / "audit.py"))["audit"]
FOUND = {"id": "PYSEC-1", "aliases": ["CVE-2026-1"], "fix_versions": ["1.1"], "description": ""}
SOUND = {"name": "sound", "version": "1.0", "vulns": []}
OPEN = {"name": "open", "version": "1.0", "vulns": [FOUND]}
SOURCE = "the source of vulnerabilities"
OF_NONE = "- not assured, as their source does not know them: unknown"
UNKNOWN = {"name": "unknown", "skip_reason": "Dependency not found on PyPI"}


@pytest.mark.parametrize(
    ("packages", "status", "said"),
    [
        ([SOUND, SOUND], 0, ["audit: 2 of 2 packages, 0 known vulnerabilities"]),
        (
            [SOUND, OPEN, UNKNOWN],
            1,
            [
                "audit: 2 of 3 packages, 1 known vulnerabilities",
                "- open 1.0: PYSEC-1, CVE-2026-1; mended in 1.1",
                OF_NONE,
            ],
        ),
        ([SOUND, UNKNOWN], 0, ["audit: 1 of 2 packages, 0 known vulnerabilities", OF_NONE]),
        ([UNKNOWN, UNKNOWN], 2, [f"audit: not assured: {SOURCE} knows none of 2 packages"]),
        (None, 2, [f"audit: not assured: {SOURCE} did not answer (refused)"]),
    ],
)
def test_each_answer_has_an_exit_status_of_its_own(monkeypatch, capsys, packages, status, said):
    def answer(order, **_):
        assert {"--require-hashes", "--disable-pip", "a.lock"} <= set(order)
        if "--dry-run" in order:
            return SimpleNamespace(returncode=0)
        if packages is None:
            return SimpleNamespace(returncode=1, stdout="", stderr="Traceback:\nrefused\n")
        found = any("vulns" in each and each["vulns"] for each in packages)
        return SimpleNamespace(returncode=found, stdout=json.dumps({"dependencies": packages}))

    monkeypatch.setattr(subprocess, "run", answer)
    assert AUDIT("a.lock") == status
    assert capsys.readouterr().out.splitlines() == said


def test_a_lock_without_hashes_fails(tmp_path, capsys):
    lock = tmp_path / "requirements.lock"
    lock.write_text("numpy==2.2\n")
    assert AUDIT(str(lock)) == 1
    assert "numpy==2.2 does not contain a hash" in capsys.readouterr().out


@pytest.mark.parametrize(("status", "goes_on"), [(0, True), (1, False), (2, True), (3, False)])
def test_continuous_integration_goes_on_where_nothing_is_known(status, goes_on):
    (line,) = re.findall(r"^.*audit\.py.*$", (CI / "run").read_text(), re.MULTILINE)
    script = line.replace(".venv/bin/python .ci/audit.py requirements.lock", f"(exit {status})")
    assert script != line
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", f"{script}\naudit\ntrue"], check=False)
    assert (done.returncode == 0) == goes_on
