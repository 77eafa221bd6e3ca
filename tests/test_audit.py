"""The audit of dependencies: what it says of each answer, and when it fails."""

import json
import runpy
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

AUDIT = runpy.run_path(str(Path(__file__).parents[1] / ".ci/audit.py"))["audit"]
FOUND = {"id": "PYSEC-1", "aliases": ["CVE-2026-1"], "fix_versions": ["1.1"], "description": ""}
SOUND = {"name": "sound", "version": "1.0", "vulns": []}
OPEN = {"name": "open", "version": "1.0", "vulns": [FOUND]}
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
                "- not known there: unknown",
            ],
        ),
        ([UNKNOWN, UNKNOWN], 0, ["audit: says nothing, its source knows none of 2 packages"]),
        (None, 0, ["audit: says nothing, its source did not answer (refused)"]),
    ],
)
def test_what_a_source_says_is_told(monkeypatch, capsys, packages, status, said):
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
