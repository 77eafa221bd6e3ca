"""CIFAR-10 from the official archive of its binary version."""

import tarfile
import zlib
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from neuralrace.base import generator
from neuralrace.datasets.download import fetch
from neuralrace.datasets.images import CLASSES, ImageSet, Labelled
from neuralrace.errors import UserError

ARCHIVE = "cifar-10-binary.tar.gz"
ADDRESS = f"https://www.cs.toronto.edu/~kriz/{ARCHIVE}"
SHA256 = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"
TRAINING = tuple(f"cifar-10-batches-bin/data_batch_{batch}.bin" for batch in range(1, 6))
TEST = ("cifar-10-batches-bin/test_batch.bin",)
RECORDS = 10000
"""Images of each file in the archive."""


class Cifar10(ImageSet):
    """50,000 colour photographs of 32 x 32 pixels, read from the official binary archive.

    The 10,000 images of the official test set are held out (Krizhevsky 2009, "Learning Multiple
    Layers of Features from Tiny Images"). An archive that is missing is fetched and checked by its
    checksum; one that lies there is checked by the sizes of its files and the range of its labels,
    and is never unpacked to disk.
    """

    shape: ClassVar = (3, 32, 32)
    class_names: ClassVar = (
        "airplane",
        "automobile",
        "bird",
        "cat",
        "deer",
        "dog",
        "frog",
        "horse",
        "ship",
        "truck",
    )

    reads_files: ClassVar[bool] = True
    name: Literal["cifar10"]
    folder: Annotated[str, Field(min_length=1)] = "data/cifar10"
    """Folder that holds cifar-10-binary.tar.gz; a missing archive is fetched."""
    samples: Annotated[int, Field(gt=0, le=50000)] = 50000
    """Images used, a seeded random subset of the training set."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the subset."""

    def training(self) -> Labelled:
        """A random subset of the official training set."""
        pixels, labels = self._part(TRAINING)
        chosen = generator(self.seed, "cifar10 subset").permutation(len(pixels))[: self.samples]
        return pixels[chosen], labels[chosen]

    def held_out(self) -> Labelled:
        """The official test set."""
        return self._part(TEST)

    def _part(self, names: tuple[str, ...]) -> Labelled:
        path = Path(self.folder) / ARCHIVE
        if not path.is_file():
            fetch(path, ADDRESS, SHA256, "cifar10")
        return read_records(path, names)


def read_records(path: Path, names: tuple[str, ...]) -> Labelled:
    """Images of some files in the archive, read in memory.

    Args:
        path: the archive.
        names: files in the archive, in the order in which their images are wanted.

    Returns:
        Pixels (image, pixel), unsigned bytes, and labels (image,).

    Raises:
        UserError: the archive is truncated or damaged, or lacks files of the right size and with
            labels of ten classes.
    """
    size = 1 + int(np.prod(Cifar10.shape))  # a byte of label, then the pixels
    contents: dict[str, bytes] = {}
    try:
        with tarfile.open(path, "r:gz") as archive:
            for member in archive:  # in its order: going back would decompress it once more
                if member.name in names and member.isreg() and member.size == RECORDS * size:
                    file = archive.extractfile(member)
                    contents[member.name] = b"" if file is None else file.read()
    except (EOFError, OSError, tarfile.TarError, zlib.error) as error:
        raise UserError(
            f"{path}: cannot be read ({error}); the archive is truncated or damaged. "
            "Fetch it again."
        ) from error
    for name in names:
        if len(contents.get(name, b"")) != RECORDS * size:
            raise UserError(
                f"{path}: holds no file {name} of {RECORDS * size} bytes; it is not the official "
                "archive of the binary version. Fetch it again."
            )
    records = np.frombuffer(b"".join(contents[name] for name in names), np.uint8).reshape(-1, size)
    if records[:, 0].max() >= CLASSES:
        raise UserError(
            f"{path}: label {records[:, 0].max()} is none of 0 to {CLASSES - 1}; the archive is "
            "damaged, or of another dataset. Fetch it again."
        )
    return records[:, 1:].copy(), records[:, 0].astype(np.int32)
