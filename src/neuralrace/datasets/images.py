"""Labelled images: the digits embedded in scikit-learn, and MNIST from its official files."""

import gzip
import hashlib
import zlib
from pathlib import Path
from typing import Annotated, Literal, cast

import numpy as np
from pydantic import Field

from neuralrace.base import generator
from neuralrace.datasets.base import Data, Dataset
from neuralrace.errors import UserError

# SHA-256 of the decompressed official files (LeCun, Cortes, Burges): a re-compressed copy is fine.
MNIST_SHA256 = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
IDX_MAGIC = {1: 0x00000801, 3: 0x00000803}


def _classification(images: np.ndarray, labels: np.ndarray) -> Data:
    """Centred pixels with unit overall variance, one-hot labels."""
    x = images.reshape(len(images), -1).astype(np.float64)
    x = (x - x.mean()) / x.std()
    return Data(x=x, y=np.eye(10)[labels], output_names=tuple("0123456789"))


class Digits(Dataset):
    """1797 handwritten digits of 8 x 8 pixels that ship with scikit-learn: no download."""

    name: Literal["digits"]
    samples: Annotated[int, Field(gt=0, le=1797)] = 1797
    """Images used, from the start of the set."""

    def load(self) -> Data:
        """Images as rows of 64 pixels, one-hot labels."""
        from sklearn.datasets import load_digits  # a second to import, and needed here alone

        images, labels = cast(tuple[np.ndarray, np.ndarray], load_digits(return_X_y=True))
        return _classification(images[: self.samples], labels[: self.samples])


class Mnist(Dataset):
    """60,000 handwritten digits of 28 x 28 pixels, read from the official IDX files."""

    name: Literal["mnist"]
    folder: Annotated[str, Field(min_length=1)] = "data/mnist"
    """Folder that holds the four IDX files, gzip-compressed or not."""
    samples: Annotated[int, Field(gt=0, le=60000)] = 60000
    """Images used, a seeded random subset of the training set."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the subset."""

    def load(self) -> Data:
        """Images as rows of 784 pixels, one-hot labels."""
        images = read_idx(Path(self.folder), "train-images-idx3-ubyte")
        labels = read_idx(Path(self.folder), "train-labels-idx1-ubyte")
        chosen = generator(self.seed, "mnist subset").permutation(len(images))[: self.samples]
        return _classification(images[chosen], labels[chosen])


def read_idx(folder: Path, stem: str) -> np.ndarray:
    """One official MNIST file, checked by checksum, magic number and size.

    Args:
        folder: where the file lies, as `stem` or `stem.gz`.
        stem: a key of `MNIST_SHA256`.

    Returns:
        Unsigned bytes, (images, rows, columns) or (labels,).

    Raises:
        UserError: the file is missing, truncated, no IDX file of bytes, or not the official one.
    """
    path = next((p for p in (folder / f"{stem}.gz", folder / stem) if p.is_file()), None)
    if path is None:
        raise UserError(
            f"{folder / stem}[.gz]: MNIST file not found. Put the four official IDX files into "
            f"{folder}/ or set `folder` of dataset mnist to where they lie."
        )
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (EOFError, OSError, zlib.error) as error:
        raise UserError(
            f"{path}: cannot be decompressed ({error}); the file is truncated or damaged. "
            "Fetch it again."
        ) from error
    array = parse_idx(content, path)
    digest = hashlib.sha256(content).hexdigest()
    if digest != MNIST_SHA256[stem]:
        raise UserError(
            f"{path}: checksum {digest[:12]}... is not that of the official {stem} "
            f"({MNIST_SHA256[stem][:12]}...). Fetch it again."
        )
    return array


def parse_idx(content: bytes, path: Path) -> np.ndarray:
    """The array in an IDX file of unsigned bytes.

    Raises:
        UserError: wrong magic number, or a size that does not fit the header.
    """
    magic = int.from_bytes(content[:4], "big")
    rank = next((rank for rank, known in IDX_MAGIC.items() if magic == known), None)
    if rank is None or len(content) < 4 + 4 * rank:
        raise UserError(
            f"{path}: magic number 0x{magic:08x} is not that of an IDX file of bytes "
            "(0x00000801 for labels, 0x00000803 for images). Fetch it again."
        )
    header = 4 + 4 * rank
    shape = tuple(int(n) for n in np.frombuffer(content, ">u4", count=rank, offset=4))
    if len(content) - header != int(np.prod(shape)):
        raise UserError(
            f"{path}: holds {len(content) - header} bytes of data where its header {shape} "
            f"announces {int(np.prod(shape))}; the file is truncated or damaged. Fetch it again."
        )
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape)
