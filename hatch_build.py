"""What a wheel carries beside the library: the workflow, which a clone has at its root."""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

WORKFLOW = ("Snakefile", "config", "environment.yml", "profiles", "workflow")


class Bundle(BuildHookInterface):
    """Puts it where `neuralrace.config.bundled` finds it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """An editable installation uses the clone's own, and carries no copy."""
        if version == "standard":
            build_data["force_include"] |= {
                each: f"neuralrace/config/bundled/{each}" for each in WORKFLOW
            }
