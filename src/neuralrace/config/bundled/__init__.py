"""Files of the workflow: rules, configuration of the papers, and profiles.

A clone has them at its root, and a wheel in this folder.
"""

from pathlib import Path

from neuralrace.errors import UserError

FOLDER = Path(__file__).parent
CLONE = FOLDER.parents[3]
FILES = ("Snakefile", "config", "profiles", "workflow")
"""All files and folders of the workflow; `hatch_build.py` puts them into the wheel."""


def root() -> Path:
    """The folder that holds `FILES`.

    Raises:
        UserError: the library was installed neither from a wheel nor from a clone.
    """
    # the wheel's folder comes first: the folders around it may have an unrelated Snakefile
    for folder in (FOLDER, CLONE):
        if folder.joinpath("Snakefile").is_file():
            return folder
    raise UserError(
        "the workflow is not there",
        file=FOLDER / "Snakefile",
        remedy="install neuralrace from its wheel or from a clone of its repository: "
        "pip install --editable FOLDER",
    )
