"""Small result files by hand, for tests of `results` and `cli`."""

import json
from typing import Any

from neuralrace.results.cells import IDENTIFIER
from neuralrace.results.checksums import fingerprint
from neuralrace.results.schema import SCHEMA_VERSION

DESCRIBED = {"long_name": "made up", "units": "1"}
"""Attributes of a variable."""


def file_attributes(cell: str, kind: str, spec: dict[str, Any], **more: str) -> dict[str, str]:
    """Attributes that the schema requires of a file.

    Args:
        cell: `paper/experiment/label`.
        kind: kind of file.
        spec: the specification.
        more: other attributes.
    """
    text = json.dumps(spec)
    return {
        **dict(zip(IDENTIFIER, cell.split("/"), strict=True)),
        "kind": kind,
        "schema": SCHEMA_VERSION,
        "spec": text,
        "spec_sha256": fingerprint(text),
        "code_sha256": "c" * 64,
        "versions": "python 3.11",
        **more,
    }


def file_fingerprint(attrs: dict[str, str]) -> str:
    """The fingerprint of a file with these attributes."""
    cell = "/".join(attrs[part] for part in IDENTIFIER)
    return fingerprint(cell, attrs["spec_sha256"], attrs["code_sha256"])
