"""What is made from result files: pictures, and tables of claims and metrics.

Each has a seal, which says what it was made from. It is outdated where that is another than today's
configuration and code ask for, where the result files have changed, or where it was changed itself.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from neuralrace.base import Strict
from neuralrace.errors import UserError
from neuralrace.provenance import Stage, code_sha256, refuse_edited
from neuralrace.seal import Seal, digests, key, key_of, read_seal, sha256, sound


class Product(Strict):
    """One of them, as it is planned."""

    seal: str
    """Path of its seal."""
    root: str
    """The results folder."""
    inputs: dict[str, str]
    """Key of each result file that it is made from, by its path in the results folder."""
    stage: Stage
    modules: tuple[str, ...] = ()
    """Modules that it is made by, beside those of its stage."""
    code: str
    """Digest of the code that it is made by."""
    said: tuple[str, ...] = ()
    """What else it depends on."""

    @property
    def key(self) -> str:
        """Stands for all that it is to be made from."""
        return key(self.code, *self.said, *self.inputs, *self.inputs.values())

    @property
    def current(self) -> bool:
        """Whether it is there, as it was made, and from what it would be made from now."""
        place = Path(self.seal)
        found = read_seal(place)
        return (
            found is not None
            and found.key == self.key
            and found.inputs == digests(Path(self.root), self.inputs)
            and sound(place)
        )

    @contextmanager
    def making(self, files: Sequence[str]) -> Iterator[None]:
        """Makes it inside, and seals it afterwards.

        Args:
            files: paths of the files that it consists of.

        Raises:
            UserError: code or result files are others than were planned, or have changed meanwhile.
        """
        if code_sha256(self.stage, self.modules) != self.code:
            raise UserError(
                "the library was edited after this run was planned; run the same command again"
            )
        with taking(Path(self.root), self.inputs) as taken:
            yield
        refuse_edited()
        place = Path(self.seal)
        names = {os.path.relpath(file, place.parent): sha256(Path(file)) for file in files}
        Seal(self.key, names, taken).write(place)


@contextmanager
def taking(root: Path, wanted: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Checksums of result files, for something to be made from these files inside.

    Args:
        root: the results folder.
        wanted: key that each file is to have, by its path in the folder.

    Raises:
        UserError: one of them was made from something else, or they were replaced meanwhile.
    """

    def found() -> dict[str, str]:
        for name, planned in wanted.items():
            if key_of(root / name) != planned:
                raise UserError(
                    f"{root / name}: was not made from the present configuration and code; run "
                    "the same command again"
                )
        return digests(root, wanted)

    taken = found()
    yield taken
    if found() != taken:
        raise UserError(f"{root}: files changed while they were read; run the same command again")
