"""MNIST handwritten digits, from the official IDX files or the subset that is installed."""

import gzip
import io
import os
import zlib
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NoReturn

import numpy as np
from pydantic import Field, model_validator

from neuralrace.datasets.content import content_of
from neuralrace.datasets.download import fetch, official_content
from neuralrace.datasets.images import Labelled, OfficialImageSet
from neuralrace.errors import UserError

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
SUBSET = Path(__file__).with_name("mnist_subset")
"""Folder of the installed subset; its README.md says how the images were drawn."""
SUBSET_SHA256 = {
    "train-images-idx3-ubyte": "b67e3f6d7ba4879a1d37a47bf3eb9e348a8aae95883dd702961064f8e0ef6008",
    "train-labels-idx1-ubyte": "e972d5b66d9a771897e001395480cb912c0856f5b379a48dba2a4613545c31db",
    "t10k-images-idx3-ubyte": "c5f4710743f77869628c5b869f9ae736c57d1e78dabf45adeb03cb1c5cfab4dc",
    "t10k-labels-idx1-ubyte": "d7b5006a3acfea114f344590960714dc3ef22aed09448ad68472303e62ea03bd",
}
SUBSET_SAMPLES, SUBSET_HELD_OUT = 6000, 1000
LARGEST = 50_000_000
"""Largest file that is read, in bytes; the largest official one has 47 million."""


class Mnist(OfficialImageSet):
    """Handwritten digits of 28 x 28 pixels (LeCun, Bottou, Bengio and Haffner 1998).

    By default, 6,000 images of the official training set, and 1,000 of the official test set that
    are held out. They were drawn at random and are installed with the package: no download. With
    `folder`, up to 60,000 images and the whole test set are read from the official IDX files.
    """

    reads_files: ClassVar[bool] = False
    shape: ClassVar = (1, 28, 28)

    example: ClassVar[Mapping[str, Any]] = {"samples": 20}
    name: Literal["mnist"]
    folder: Annotated[str, Field(min_length=1)] | None = None
    """Folder of the four official IDX files, gzip-compressed or not, such as data/mnist; missing or
    damaged files are downloaded. When absent, images are those of the installed subset."""
    samples: Annotated[int, Field(gt=0, le=60000)] = SUBSET_SAMPLES
    """Number of training images: a random subset of the training set. The installed subset has
    6,000."""

    @model_validator(mode="after")
    def _installed(self) -> "Mnist":
        if self.folder is None and self.samples > SUBSET_SAMPLES:
            raise UserError(
                f"{SUBSET_SAMPLES} images of MNIST are installed",
                key="samples",
                value=self.samples,
                remedy=f"use at most {SUBSET_SAMPLES}, or add `folder: data/mnist`, into which the "
                "official files are downloaded",
            )
        return self

    @property
    def held_out_count(self) -> int:
        """Size of the official test set, or of its part in the installed subset."""
        return super().held_out_count if self.folder else SUBSET_HELD_OUT

    def part(self, part: Literal["train", "test"]) -> Labelled:
        """See `OfficialImageSet.part`; without `folder`, all images of the installed subset."""
        prefix = {"train": "train", "test": "t10k"}[part]
        folder = Path(os.path.expanduser(self.folder)) if self.folder else None
        # the header of an IDX file has 4 bytes, and 4 more for each dimension
        pixels = np.frombuffer(read_idx(folder, f"{prefix}-images-idx3-ubyte"), np.uint8, offset=16)
        labels = np.frombuffer(read_idx(folder, f"{prefix}-labels-idx1-ubyte"), np.uint8, offset=8)
        return pixels.reshape(len(labels), -1), labels.astype(np.int32)


def read_idx(folder: Path | None, stem: str) -> bytes:
    """The decompressed content of an official file, or of the same file in the installed subset.

    Official files are downloaded if they are missing or damaged.

    Args:
        folder: folder that holds the official file, as `stem.gz` or `stem`; None for the subset.
        stem: a key of `SHA256`.

    Raises:
        UserError: the file is missing or damaged, and cannot be downloaded.
    """
    if folder is None:
        installed = SUBSET / f"{stem}.gz"
        replace = partial(_refuse_installed, installed)
        return official_content((installed,), _decompressed, SUBSET_SHA256[stem], replace)
    packed = folder / f"{stem}.gz"
    download = partial(fetch, packed, f"{ADDRESS}{stem}.gz", COMPRESSED_SHA256[stem], "mnist")
    return official_content((packed, folder / stem), _decompressed, SHA256[stem], download)


def _refuse_installed(path: Path, fault: str) -> NoReturn:
    problem = f"installed file of dataset mnist {fault}"
    raise UserError(problem, file=path, remedy="install neuralrace again")


def _decompressed(path: Path) -> bytes:
    content = content_of(path, LARGEST)
    if path.suffix != ".gz":
        return content
    try:
        with gzip.open(io.BytesIO(content)) as packed:
            return packed.read(LARGEST)  # bounded: a small file can unpack to more than memory
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError(f"cannot be decompressed: {error}") from error
