"""MNIST handwritten digits, from the official IDX files."""

import gzip
import io
import os
import zlib
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from neuralrace.datasets.content import content_of
from neuralrace.datasets.download import fetch, official_content
from neuralrace.datasets.images import Labelled, OfficialImageSet

ADDRESS = "https://storage.googleapis.com/cvdf-datasets/mnist/"
# SHA-256 of the decompressed official files (LeCun, Cortes, Burges): the compression may differ.
SHA256 = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
# SHA-256 of the compressed files at ADDRESS, for downloads.
COMPRESSED_SHA256 = {
    "train-images-idx3-ubyte": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "train-labels-idx1-ubyte": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "t10k-images-idx3-ubyte": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "t10k-labels-idx1-ubyte": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
}
LARGEST = 50_000_000
"""Largest file that is read, in bytes; the largest official one has 47 million."""


class Mnist(OfficialImageSet):
    """60,000 handwritten digits of 28 x 28 pixels, from the official IDX files.

    The 10,000 images of the official test set are held out. Missing or damaged files are
    downloaded.
    """

    shape: ClassVar = (1, 28, 28)

    name: Literal["mnist"]
    folder: Annotated[str, Field(min_length=1)] = "data/mnist"
    """Folder of the four IDX files, gzip-compressed or not; missing or damaged files are
    downloaded."""
    samples: Annotated[int, Field(gt=0, le=60000)] = 60000
    """Number of training images: a random subset of the training set."""

    def part(self, part: Literal["train", "test"]) -> Labelled:
        """See `OfficialImageSet.part`."""
        prefix = {"train": "train", "test": "t10k"}[part]
        folder = Path(os.path.expanduser(self.folder))
        # the header of an IDX file has 4 bytes, and 4 more for each dimension
        pixels = np.frombuffer(read_idx(folder, f"{prefix}-images-idx3-ubyte"), np.uint8, offset=16)
        labels = np.frombuffer(read_idx(folder, f"{prefix}-labels-idx1-ubyte"), np.uint8, offset=8)
        return pixels.reshape(len(labels), -1), labels.astype(np.int32)


def read_idx(folder: Path, stem: str) -> bytes:
    """The decompressed content of an official file, downloaded if it is missing or damaged.

    Args:
        folder: folder that holds the file, as `stem.gz` or `stem`.
        stem: a key of `SHA256`.

    Raises:
        UserError: the file is missing or damaged, and cannot be downloaded.
    """
    packed = folder / f"{stem}.gz"
    download = partial(fetch, packed, f"{ADDRESS}{stem}.gz", COMPRESSED_SHA256[stem], "mnist")
    return official_content((packed, folder / stem), _decompressed, SHA256[stem], download)


def _decompressed(path: Path) -> bytes:
    content = content_of(path, LARGEST)
    if path.suffix != ".gz":
        return content
    try:
        with gzip.open(io.BytesIO(content)) as packed:
            return packed.read(LARGEST)  # bounded: a small file can unpack to more than memory
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError(f"cannot be decompressed: {error}") from error
