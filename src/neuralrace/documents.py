"""Files that people write: YAML, read as data alone."""

from pathlib import Path
from typing import Any

import yaml

from neuralrace.errors import UserError

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""In C where there is one: every plan reads thousands of lines."""


def read_yaml(path: Path) -> Any:
    """What a YAML file holds.

    Raises:
        UserError: it cannot be read, or is no YAML.
    """
    try:
        return LOADER(path.read_text(encoding="utf-8")).get_single_data()
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UserError(f"{path}: cannot be read as YAML: {error}") from error
