"""The workflow as files: rules, configuration of the papers, and profiles.

In a clone they stand at its root. A wheel has no root, and carries them in this folder.
"""

from pathlib import Path

from neuralrace.errors import UserError

FOLDER = Path(__file__).parent
CLONE = FOLDER.parents[3]
FILES = ("Snakefile", "config", "environment.yml", "profiles", "workflow")
"""What the workflow consists of; a wheel carries the same (`hatch_build.py`)."""


def root() -> Path:
    """The folder that holds `FILES`.

    Raises:
        UserError: neither the wheel nor a clone that this library is installed from holds them.
    """
    # what was installed with the library comes first: around it may stand a Snakefile of others
    for folder in (FOLDER, CLONE):
        if folder.joinpath("Snakefile").is_file():
            return folder
    raise UserError(
        f"{FOLDER / 'Snakefile'}: the workflow is not there; install neuralrace from its wheel or "
        "from a clone of its repository: pip install --editable FOLDER"
    )
