"""CIFAR-10 photographs, from the official binary archive or from image files."""

import hashlib
import io
import os
import tarfile
import warnings
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from neuralrace.datasets.content import content_of
from neuralrace.datasets.download import fetch, official_content
from neuralrace.datasets.images import CLASSES, Images, ImageSet, Labelled, OfficialImageSet
from neuralrace.errors import UserError

ARCHIVE = "cifar-10-binary.tar.gz"
ADDRESS = f"https://www.cs.toronto.edu/~kriz/{ARCHIVE}"
SHA256 = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"
FILES = {
    "train": tuple(f"cifar-10-batches-bin/data_batch_{batch}.bin" for batch in range(1, 6)),
    "test": ("cifar-10-batches-bin/test_batch.bin",),
}
LARGEST = 200_000_000
"""Largest archive that is read, in bytes; the official one has 170 million."""
LARGEST_IMAGE = 1_000_000
"""Largest image file that is read, in bytes; usual ones have some thousand."""


class Cifar10(OfficialImageSet):
    """50,000 colour photographs of 32 x 32 pixels, from the official binary archive.

    The 10,000 images of the official test set are held out (Krizhevsky 2009, "Learning Multiple
    Layers of Features from Tiny Images"). The archive is verified by its checksum, and downloaded
    if it is missing or damaged. It is never unpacked to disk.
    """

    shape: ClassVar = (3, 32, 32)
    class_names: ClassVar = ("airplane", "automobile", "bird", "cat", "deer",
                             "dog", "frog", "horse", "ship", "truck")  # fmt: skip

    name: Literal["cifar10"]
    folder: Annotated[str, Field(min_length=1)] = "data/cifar10"
    """Folder of cifar-10-binary.tar.gz; a missing or damaged archive is downloaded."""
    samples: Annotated[int, Field(gt=0, le=50000)] = 50000
    """Number of training images: a random subset of the training set."""

    def part(self, part: Literal["train", "test"]) -> Labelled:
        """See `OfficialImageSet.part`."""
        path = Path(os.path.expanduser(self.folder)) / ARCHIVE
        read, download = partial(content_of, limit=LARGEST), partial(fetch, path, ADDRESS, SHA256)
        content = official_content((path,), read, SHA256, partial(download, "cifar10"))
        return _records(content, FILES[part])


class Cifar10Files(ImageSet):
    """CIFAR-10 as image files in folders by class, `train/<class>/` and `test/<class>/`.

    Copies on the web often have this form. JPEG compression is lossy, so their pixels may differ
    slightly from the official ones. The first files by name of each class are used.
    """

    shape: ClassVar = Cifar10.shape
    class_names: ClassVar = Cifar10.class_names

    reads_files: ClassVar[bool] = True
    name: Literal["cifar10_files"]
    folder: Annotated[str, Field(min_length=1)] = "data/cifar10-files"
    """Folder that contains `train` and `test`."""
    samples: Annotated[int, Field(gt=0, le=50000, multiple_of=CLASSES)] = 50000
    """Number of training images, of all classes together."""
    tests: Annotated[int, Field(gt=0, le=10000, multiple_of=CLASSES)] = 10000
    """Number of held-out images from `test`, of all classes together."""
    checksum: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    """SHA-256 of pixels and labels, first of training, then of held-out images; not checked when
    absent."""

    @property
    def held_out_count(self) -> int:
        """See `tests`."""
        return self.tests

    def training(self) -> Labelled:
        """The first images of each class in `train`."""
        return self._part("train", self.samples)

    def held_out(self) -> Labelled:
        """The first images of each class in `test`."""
        return self._part("test", self.tests)

    def images(self) -> Images:
        """See `ImageSet.images`.

        Raises:
            UserError: files are missing or damaged, or the images have another size or checksum.
        """
        images = super().images()
        digest = hashlib.sha256()
        for part in (images.pixels, images.labels, images.held_out_pixels, images.held_out_labels):
            digest.update(part.tobytes())
        if self.checksum not in (None, digest.hexdigest()):
            raise UserError(
                f"images have the checksum {digest.hexdigest()}, not {self.checksum}",
                file=self.folder,
                remedy="restore the former files, or change or remove `checksum` of dataset "
                "cifar10_files",
            )
        return images

    def _part(self, part: str, images: int) -> Labelled:
        class_images, folder = images // CLASSES, Path(os.path.expanduser(self.folder))
        pixels = [
            _pixels(path)
            for name in self.class_names
            for path in _first(folder / part / name, class_images)
        ]
        return np.stack(pixels), np.repeat(np.arange(CLASSES, dtype=np.int32), class_images)


def _first(folder: Path, count: int) -> list[Path]:
    """The first files of a folder by name."""
    files = sorted(folder.glob("*"))[:count]
    if len(files) < count:
        raise UserError(
            f"contains {len(files)} images, and {count} of each class are required",
            file=folder,
            remedy="add images, lower `samples` or `tests` of dataset cifar10_files, or set its "
            "`folder`",
        )
    return files


def _pixels(path: Path) -> np.ndarray:
    """Unsigned bytes of an image file, channel by channel."""
    from PIL import Image  # imported here because only image files need it

    content = content_of(path, LARGEST_IMAGE, "replace the file")
    try:
        with warnings.catch_warnings():
            # opening reads no pixels, and images of another size are refused below
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            image = Image.open(io.BytesIO(content))
        if (image.height, image.width) == Cifar10.shape[1:]:
            return np.asarray(image.convert("RGB")).transpose(2, 0, 1).reshape(-1)
    except Exception as error:  # damaged files make Pillow raise exceptions of many types
        problem = f"cannot be read as an image ({error})"
        raise UserError(problem, file=path, remedy="replace the file") from error
    raise UserError(
        f"has {image.height} x {image.width} pixels, and images of CIFAR-10 have 32 x 32",
        file=path,
        remedy="remove the file",
    )


def _records(content: bytes, names: tuple[str, ...]) -> Labelled:
    """Images of some files in the official archive, in the order of `names`."""
    size = 1 + int(np.prod(Cifar10.shape))  # one byte of label, then the pixels
    contents: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
        for member in archive:  # in archive order: going back would decompress it again
            file = archive.extractfile(member) if member.name in names else None
            if file is not None:
                contents[member.name] = file.read()
    records = np.frombuffer(b"".join(contents[name] for name in names), np.uint8).reshape(-1, size)
    return records[:, 1:].copy(), records[:, 0].astype(np.int32)
