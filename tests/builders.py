"""What tests share: the paths of the repository, and builders of what they test with."""

from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
