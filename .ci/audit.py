"""Asks for known vulnerabilities of what a run installs, and says so where nobody answers.

pip-audit itself calls a lock clean whose packages its source does not know, as a mirror behind a
proxy knows none.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

AUDIT = (sys.executable, "-m", "pip_audit", "--disable-pip", "--require-hashes", "-f", "json")


def audit(lock: str) -> int:
    """Prints what is known of the packages of a lock; the exit status, 1 where one is vulnerable.

    That nobody could be asked is no failure, as it says nothing of the packages; that the lock
    cannot be read, or lacks a hash, is one.
    """
    order = [*AUDIT, "--progress-spinner", "off", "--requirement", lock]
    read = subprocess.run([*order, "--dry-run"], capture_output=True, text=True, check=False)  # noqa: S603
    if read.returncode:
        print(f"audit: {lock}: {read.stderr.strip()}")
        return 1
    asked = subprocess.run(order, capture_output=True, text=True, check=False)  # noqa: S603
    if not asked.stdout.strip():
        why = asked.stderr.strip().splitlines()[-1]
        print(f"audit: says nothing, its source did not answer ({why})")
        return 0
    return told(json.loads(asked.stdout)["dependencies"])


def told(packages: Sequence[dict[str, Any]]) -> int:
    """Prints what a source said of packages; the exit status, 1 where one is vulnerable."""
    unknown = [package["name"] for package in packages if "skip_reason" in package]
    if len(unknown) == len(packages):
        print(f"audit: says nothing, its source knows none of {len(packages)} packages")
        return 0
    found = [(package, each) for package in packages for each in package.get("vulns", ())]
    known = f"audit: {len(packages) - len(unknown)} of {len(packages)} packages"
    print(f"{known}, {len(found)} known vulnerabilities")
    for package, each in found:
        mended = ", ".join(each["fix_versions"]) or "no version"
        names = ", ".join([each["id"], *each["aliases"]])
        print(f"- {package['name']} {package['version']}: {names}; mended in {mended}")
    if unknown:
        print(f"- not known there: {', '.join(unknown)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(audit(*sys.argv[1:]))
