"""MNIST from its official IDX files."""

import gzip
import hashlib
import io
import zlib
from math import prod
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from neuralrace.datasets.content import content_of
from neuralrace.datasets.download import fetch
from neuralrace.datasets.images import ImageSet, Labelled
from neuralrace.datasets.random_streams import generator

ADDRESS = "https://storage.googleapis.com/cvdf-datasets/mnist/"
# SHA-256 of the decompressed official files (LeCun, Cortes, Burges): a re-compressed copy is fine.
SHA256 = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
# SHA-256 of the compressed files at the address above, for what is fetched.
COMPRESSED_SHA256 = {
    "train-images-idx3-ubyte": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "train-labels-idx1-ubyte": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "t10k-images-idx3-ubyte": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "t10k-labels-idx1-ubyte": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
}
LARGEST = 50_000_000
"""Bytes that are read of a file; the largest official one has 47 million."""
IDX_MAGIC = {1: 0x00000801, 3: 0x00000803}


class Mnist(ImageSet):
    """60,000 handwritten digits of 28 x 28 pixels, read from the official IDX files.

    The 10,000 images of the official test set are held out. Files that are missing or damaged are
    fetched.
    """

    shape: ClassVar = (1, 28, 28)

    reads_files: ClassVar[bool] = True
    name: Literal["mnist"]
    folder: Annotated[str, Field(min_length=1)] = "data/mnist"
    """Folder that holds the four IDX files, gzip-compressed or not; those that are missing or
    damaged are fetched."""
    samples: Annotated[int, Field(gt=0, le=60000)] = 60000
    """Images used, a seeded random subset of the training set."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the subset."""

    @property
    def tested(self) -> int:
        """The official test set."""
        return 10000

    def training(self) -> Labelled:
        """A random subset of the official training set."""
        pixels, labels = self._part("train")
        chosen = generator(self.seed, "mnist subset").permutation(len(pixels))[: self.samples]
        return pixels[chosen], labels[chosen]

    def held_out(self) -> Labelled:
        """The official test set."""
        return self._part("t10k")

    def _part(self, part: str) -> Labelled:
        pixels = read_idx(Path(self.folder), f"{part}-images-idx3-ubyte")
        labels = read_idx(Path(self.folder), f"{part}-labels-idx1-ubyte")
        return pixels.reshape(len(pixels), -1), labels.astype(np.int32)


def read_idx(folder: Path, stem: str) -> np.ndarray:
    """One official MNIST file, fetched where none is sound; see `parse_idx`.

    Args:
        folder: where the file lies, as `stem` or `stem.gz`.
        stem: a key of `SHA256`.

    Returns:
        Unsigned bytes, (images, rows, columns) or (labels,).

    Raises:
        UserError: it cannot be read; or it is missing or damaged, and cannot be fetched.
    """
    packed = folder / f"{stem}.gz"
    wrong: list[str] = []
    for path in (packed, folder / stem):
        if path.is_file():
            try:
                return _official(path, stem)
            except ValueError as error:
                wrong.append(f"damaged ({path.name}: {error})")
    found = ", ".join(wrong) or "not found"
    fetch(packed, f"{ADDRESS}{stem}.gz", COMPRESSED_SHA256[stem], "mnist", found)
    return _official(packed, stem)


def _official(path: Path, stem: str) -> np.ndarray:
    content = content_of(path, LARGEST, "take it away, and the official file is fetched")
    try:
        if path.suffix == ".gz":
            with gzip.open(io.BytesIO(content)) as packed:
                content = packed.read(LARGEST)  # another file may unpack to more than memory holds
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError(f"cannot be decompressed: {error}") from error
    array = parse_idx(content)
    digest = hashlib.sha256(content).hexdigest()
    if digest != SHA256[stem]:
        raise ValueError(
            f"checksum {digest[:12]}... is not that of the official file, {SHA256[stem][:12]}..."
        )
    return array


def parse_idx(content: bytes) -> np.ndarray:
    """The array in an IDX file of unsigned bytes.

    Raises:
        ValueError: wrong magic number, or a size that does not fit the header.
    """
    magic = int.from_bytes(content[:4], "big")
    rank = next((rank for rank, known in IDX_MAGIC.items() if magic == known), None)
    if rank is None or len(content) < 4 + 4 * rank:
        raise ValueError(
            f"magic number 0x{magic:08x} is not that of an IDX file of bytes "
            "(0x00000801 for labels, 0x00000803 for images)"
        )
    header = 4 + 4 * rank
    shape = tuple(int(n) for n in np.frombuffer(content, ">u4", count=rank, offset=4))
    if len(content) - header != prod(shape):
        raise ValueError(
            f"holds {len(content) - header} bytes of data where its header {shape} "
            f"announces {prod(shape)}"
        )
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape)
