"""CIFAR-10 from the official archive of its binary version, or from image files."""

import hashlib
import io
import tarfile
import warnings
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from neuralrace.datasets.content import content_of
from neuralrace.datasets.download import fetch
from neuralrace.datasets.images import CLASSES, Images, ImageSet, Labelled
from neuralrace.datasets.random_streams import generator
from neuralrace.errors import UserError

ARCHIVE = "cifar-10-binary.tar.gz"
ADDRESS = f"https://www.cs.toronto.edu/~kriz/{ARCHIVE}"
SHA256 = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"
TRAINING = tuple(f"cifar-10-batches-bin/data_batch_{batch}.bin" for batch in range(1, 6))
TEST = ("cifar-10-batches-bin/test_batch.bin",)
LARGEST = 200_000_000
"""Bytes that are read of the archive; the official one has 170 million."""
LARGEST_IMAGE = 1_000_000
"""Bytes that are read of an image file, of some thousand."""
AWAY = "take it away, and the official file is fetched"
TESTED = 10000
"""Images of the test file."""


class Cifar10(ImageSet):
    """50,000 colour photographs of 32 x 32 pixels, read from the official binary archive.

    The 10,000 images of the official test set are held out (Krizhevsky 2009, "Learning Multiple
    Layers of Features from Tiny Images"). The archive is held to its checksum, whoever put it
    there; one that is missing or damaged is fetched. It is never unpacked to disk.
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
    """Folder that holds cifar-10-binary.tar.gz; a missing or damaged archive is fetched."""
    samples: Annotated[int, Field(gt=0, le=50000)] = 50000
    """Images used, a seeded random subset of the training set."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the subset."""

    @property
    def tested(self) -> int:
        """The official test set."""
        return TESTED

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
        content = content_of(path, LARGEST, AWAY) if path.is_file() else b""
        if hashlib.sha256(content).hexdigest() != SHA256:
            found = "damaged (its checksum is not that of the official archive)"
            fetch(path, ADDRESS, SHA256, "cifar10", found if path.is_file() else "not found")
            content = content_of(path, LARGEST, AWAY)
        return read_records(content, names)


class Cifar10Files(ImageSet):
    """CIFAR-10 as image files by class, `train/<class>/` and `test/<class>/`, as copies hold it.

    Such files are re-encoded: what they show is not the official pixels to a bit, as JPEG loses
    some. Of each class the first files by name are taken, as many of each.
    """

    shape: ClassVar = Cifar10.shape
    class_names: ClassVar = Cifar10.class_names

    reads_files: ClassVar[bool] = True
    name: Literal["cifar10_files"]
    folder: Annotated[str, Field(min_length=1)] = "data/cifar10-files"
    """Folder that holds `train` and `test`."""
    samples: Annotated[int, Field(gt=0, le=50000, multiple_of=CLASSES)] = 50000
    """Images used, of all classes together."""
    tests: Annotated[int, Field(gt=0, le=10000, multiple_of=CLASSES)] = 10000
    """Images of `test` that are held out, of all classes together."""
    checksum: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    """SHA-256 of pixels and labels, those held out last; anything passes when absent."""

    @property
    def tested(self) -> int:
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
            UserError: files are missing, no images of this size, or have another checksum.
        """
        images = super().images()
        digest = hashlib.sha256()
        for part in (images.pixels, images.labels, images.held_out_pixels, images.held_out_labels):
            digest.update(part.tobytes())
        if self.checksum not in (None, digest.hexdigest()):
            raise UserError(
                f"{self.folder}: images have the checksum {digest.hexdigest()}, not "
                f"{self.checksum}; put the former files back, or give the new one as `checksum` of "
                "dataset cifar10_files, or leave that out"
            )
        return images

    def _part(self, part: str, images: int) -> Labelled:
        each = images // CLASSES
        pixels = [
            _pixels(path)
            for name in self.class_names
            for path in _first(Path(self.folder) / part / name, each)
        ]
        return np.stack(pixels), np.repeat(np.arange(CLASSES, dtype=np.int32), each)


def _first(folder: Path, count: int) -> list[Path]:
    """The first files of a folder by name."""
    found = sorted(folder.glob("*"))[:count]
    if len(found) < count:
        raise UserError(
            f"{folder}: holds {len(found)} images, and {count} of each class are wanted; put more "
            "there, lower `samples` or `tests` of dataset cifar10_files, or set its `folder`"
        )
    return found


def _pixels(path: Path) -> np.ndarray:
    """Unsigned bytes of an image file, channel by channel."""
    from PIL import Image  # only such files need it

    content = content_of(path, LARGEST_IMAGE, "put it there again")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # no pixel is read yet
            image = Image.open(io.BytesIO(content))
        if (image.height, image.width) == Cifar10.shape[1:]:
            return np.asarray(image.convert("RGB")).transpose(2, 0, 1).reshape(-1)
    except Exception as error:  # its readers raise whatever a damaged file leads them to
        raise UserError(
            f"{path}: cannot be read as an image ({error}); put it there again"
        ) from error
    raise UserError(
        f"{path}: has {image.height} x {image.width} pixels, and images of CIFAR-10 have 32 x 32; "
        "take the file away"
    )


def read_records(content: bytes, names: tuple[str, ...]) -> Labelled:
    """Images of some files in the archive, read in memory.

    Args:
        content: of the official archive.
        names: files in the archive, in the order in which their images are wanted.

    Returns:
        Pixels (image, pixel), unsigned bytes, and labels (image,).
    """
    size = 1 + int(np.prod(Cifar10.shape))  # a byte of label, then the pixels
    contents: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
        for member in archive:  # in its order: going back would decompress it once more
            file = archive.extractfile(member) if member.name in names else None
            if file is not None:
                contents[member.name] = file.read()
    records = np.frombuffer(b"".join(contents[name] for name in names), np.uint8).reshape(-1, size)
    return records[:, 1:].copy(), records[:, 0].astype(np.int32)
