"""Build hook: generates the schema of configurations, and puts the workflow into wheels."""

import os
import subprocess
import sys
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

WORKFLOW = ("Snakefile", "config", "profiles", "workflow")
"""What a clone has at its root and a wheel carries; see `neuralrace.config.bundled`."""
SCHEMA = "config/schema.json"


class Build(BuildHookInterface):
    """Runs before a wheel, or an editable installation, is built."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Writes the schema; an editable installation uses the clone's own workflow files."""
        command = [sys.executable, "-m", "neuralrace.config.manual", SCHEMA]
        environment = {**os.environ, "PYTHONPATH": os.path.join(self.root, "src")}
        subprocess.run(command, cwd=self.root, env=environment, check=True)  # noqa: S603
        if version == "standard":
            folder = "neuralrace/config/bundled"
            build_data["force_include"] |= {each: f"{folder}/{each}" for each in WORKFLOW}
