"""Asks for known vulnerabilities of what a run installs.

pip-audit reports a lock as clean whose packages its source does not know, as a mirror behind a
proxy knows none. Here that is an outcome of its own: nothing is known.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

PIP_AUDIT = (sys.executable, "-m", "pip_audit", "--disable-pip", "--require-hashes", "-f", "json")
CLEAN, VULNERABLE, NOT_ASSURED = 0, 1, 2
"""Exit status: no vulnerability is known; one is, or the lock cannot be read; nobody knows."""


def audit(lock: str) -> int:
    """Prints what is known of the packages of a lock, and returns the exit status.

    Args:
        lock: path of a requirements file with hashes.
    """
    command = [*PIP_AUDIT, "--progress-spinner", "off", "--requirement", lock]
    parsed = subprocess.run([*command, "--dry-run"], capture_output=True, text=True, check=False)  # noqa: S603
    if parsed.returncode:
        print(f"audit: {lock}: {parsed.stderr.strip()}")
        return VULNERABLE
    answer = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if not answer.stdout.strip():
        reason = answer.stderr.strip().splitlines()[-1]
        print(f"audit: not assured: the source of vulnerabilities did not answer ({reason})")
        return NOT_ASSURED
    return report(json.loads(answer.stdout)["dependencies"])


def report(packages: Sequence[dict[str, Any]]) -> int:
    """Prints what is known of packages, and returns the exit status.

    Args:
        packages: as pip-audit lists them; those that its source does not know have a `skip_reason`.
    """
    unknown = [package["name"] for package in packages if "skip_reason" in package]
    if len(unknown) == len(packages):
        print(
            f"audit: not assured: the source of vulnerabilities knows none of {len(packages)} "
            "packages"
        )
        return NOT_ASSURED
    found = [(package, each) for package in packages for each in package.get("vulns", ())]
    known = len(packages) - len(unknown)
    print(f"audit: {known} of {len(packages)} packages, {len(found)} known vulnerabilities")
    for package, each in found:
        mended = ", ".join(each["fix_versions"]) or "no version"
        names = ", ".join([each["id"], *each["aliases"]])
        print(f"- {package['name']} {package['version']}: {names}; mended in {mended}")
    if unknown:
        print(f"- not assured, as their source does not know them: {', '.join(unknown)}")
    return VULNERABLE if found else CLEAN


if __name__ == "__main__":
    sys.exit(audit(*sys.argv[1:]))
