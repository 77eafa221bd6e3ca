"""CIFAR-10, from small archives and image files of the same format."""

import hashlib
import io
import tarfile

import numpy as np
import pytest
from PIL import Image
from pydantic import ValidationError

from neuralrace.datasets import cifar10
from neuralrace.datasets.cifar10 import ADDRESS, ARCHIVE, Cifar10, Cifar10Files
from neuralrace.errors import UserError

pytestmark = pytest.mark.usefixtures("web")
RECORDS = 12
NAMES = [f"data_batch_{batch}.bin" for batch in range(1, 6)] + ["test_batch.bin"]


def contents(seed=0):
    """Files by name. A record is a label, then a red, a green and a blue plane, as published."""
    rng = np.random.default_rng(seed)
    files = {}
    for name in NAMES:
        labels, planes = rng.integers(0, 10, RECORDS), rng.integers(0, 256, (RECORDS, 3, 32, 32))
        files[name] = b"".join(
            bytes([label, *image.ravel()]) for label, image in zip(labels, planes, strict=True)
        )
    return files


def write(path, files, level=9):
    with tarfile.open(path, "w:gz", compresslevel=level) as archive:
        archive.addfile(tarfile.TarInfo("cifar-10-batches-bin/readme.html"))
        for name, content in files.items():
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write(tmp_path / ARCHIVE, contents())
    make_official(monkeypatch, tmp_path / ARCHIVE)
    return tmp_path


def make_official(monkeypatch, path):
    monkeypatch.setattr(cifar10, "SHA256", hashlib.sha256(path.read_bytes()).hexdigest())


def make(folder, **parameters):
    return Cifar10(name="cifar10", folder=str(folder), **parameters)


def test_images_are_those_of_the_archive(folder):
    images = make(folder).images()
    assert images.shape == (3, 32, 32)
    assert images.pixels.shape == (5 * RECORDS, 3072)
    files = contents()
    test = np.frombuffer(files["test_batch.bin"], np.uint8).reshape(RECORDS, 3073)
    np.testing.assert_array_equal(images.held_out_labels, test[:, 0])
    np.testing.assert_array_equal(images.held_out_pixels, test[:, 1:])
    training = b"".join(files[name] for name in NAMES[:5])
    records = {training[start : start + 3073] for start in range(0, len(training), 3073)}
    rows = np.column_stack([images.labels.astype(np.uint8), images.pixels])
    assert {row.tobytes() for row in rows} == records


def test_subset_has_class_names_and_the_whole_test_set(folder):
    task = make(folder, samples=9).load()
    assert task.x.shape == (9, 3072)
    assert (task.output_names[3], len(task.output_names)) == ("cat", 10)
    assert len(make(folder, samples=9).images().held_out_pixels) == RECORDS


def test_order_of_files_in_the_archive_does_not_matter(folder, monkeypatch):
    before = make(folder).images().pixels
    write(folder / ARCHIVE, dict(reversed(contents().items())))
    make_official(monkeypatch, folder / ARCHIVE)
    np.testing.assert_array_equal(make(folder).images().pixels, before)
    assert [path.name for path in folder.iterdir()] == [ARCHIVE]  # nothing is unpacked


def damaged(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def missing(path):
    path.unlink()


FAULTS = {damaged: "its checksum is not that of the official file", missing: "not found"}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_missing_or_damaged_archive_is_downloaded(folder, web, fault):
    path = folder / ARCHIVE
    content = path.read_bytes()
    fault(path)
    with pytest.raises(UserError, match="no route to host") as error:
        make(folder).images()
    assert error.value.file == str(path)
    assert "dataset cifar10" in error.value.problem
    assert FAULTS[fault] in error.value.problem
    assert "by hand, or set `folder`" in error.value.remedy
    web.files[ADDRESS, f"sha256:{cifar10.SHA256}"] = content
    assert len(make(folder).images().pixels) == 5 * RECORDS


def test_official_sizes_are_read(tmp_path, monkeypatch):
    """The archive has the official layout: six files of 10,000 records, and a page."""
    rng = np.random.default_rng(1)
    files = {}
    for name in NAMES:
        records = np.zeros((10000, 3073), np.uint8)  # mostly zeros: fast to compress
        records[:, 0] = np.arange(10000) % 10
        records[:, 1::1024] = rng.integers(0, 256, (10000, 3), np.uint8)
        files[name] = records
    write(tmp_path / ARCHIVE, {name: file.tobytes() for name, file in files.items()}, level=1)
    make_official(monkeypatch, tmp_path / ARCHIVE)
    images = make(tmp_path, samples=50000).images()
    assert images.pixels.shape == (50000, 3072)
    assert images.held_out_pixels.shape == (10000, 3072)
    np.testing.assert_array_equal(np.bincount(images.labels), 5000)
    np.testing.assert_array_equal(images.held_out_pixels, files["test_batch.bin"][:, 1:])
    np.testing.assert_array_equal(images.held_out_labels, files["test_batch.bin"][:, 0])


# Image files -------------------------------------------------------------------------------------


@pytest.fixture
def planes(tmp_path):
    """Three training and two test images of each class, and their pixels by part and class."""
    rng = np.random.default_rng(2)
    images = {}
    for part, count in (("train", 3), ("test", 2)):
        for name in Cifar10.class_names:
            (tmp_path / part / name).mkdir(parents=True)
            images[part, name] = rng.integers(0, 256, (count, 3, 32, 32), np.uint8)
            for number, image in enumerate(images[part, name]):
                path = tmp_path / part / name / f"{number:04}.png"
                Image.fromarray(image.transpose(1, 2, 0)).save(path)
    return images


def of_files(folder, **parameters):
    return Cifar10Files(
        **{"name": "cifar10_files", "folder": str(folder), "samples": 20, "tests": 10} | parameters
    )


def test_first_files_of_each_class_are_the_images(tmp_path, planes):
    images = of_files(tmp_path).images()
    assert images.shape == (3, 32, 32)
    for part, count, pixels, labels in (
        ("train", 2, images.pixels, images.labels),
        ("test", 1, images.held_out_pixels, images.held_out_labels),
    ):
        np.testing.assert_array_equal(labels, np.repeat(np.arange(10), count))
        expected = [planes[part, name][:count].reshape(count, -1) for name in Cifar10.class_names]
        np.testing.assert_array_equal(pixels, np.concatenate(expected))


def test_images_with_another_checksum_are_refused(tmp_path, planes):
    images = of_files(tmp_path).images()
    parts = images.pixels, images.labels, images.held_out_pixels, images.held_out_labels
    checksum = hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()
    of_files(tmp_path, checksum=checksum).images()
    Image.new("RGB", (32, 32)).save(tmp_path / "test" / "frog" / "0000.png")
    with pytest.raises(UserError, match=rf"checksum \w+, not {checksum}") as error:
        of_files(tmp_path, checksum=checksum).images()
    assert "change or remove `checksum`" in error.value.remedy


def lost(folder):
    (folder / "0001.png").unlink()
    (folder / "0002.png").unlink()


def no_image(folder):
    (folder / "0001.png").write_bytes(b"something else")


def too_large(folder):
    Image.new("RGB", (40, 30)).save(folder / "0001.png")


@pytest.mark.parametrize(
    ("fault", "file", "problem", "remedy"),
    [
        (lost, "cat", "1 images, and 2 of each class", "lower `samples`"),
        (no_image, "cat/0001.png", "cannot be read as an image", "replace"),
        (too_large, "cat/0001.png", "30 x 40 pixels", "remove"),
    ],
)
def test_faulty_image_file_is_named_with_a_remedy(tmp_path, planes, fault, file, problem, remedy):
    fault(tmp_path / "train" / "cat")
    with pytest.raises(UserError, match=problem) as error:
        of_files(tmp_path).images()
    assert error.value.file.endswith(file)
    assert remedy in error.value.remedy


def test_number_of_images_is_divisible_by_the_classes(tmp_path):
    with pytest.raises(ValidationError, match="multiple of 10"):
        of_files(tmp_path, samples=25)
