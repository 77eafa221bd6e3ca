"""MNIST from its IDX files: small files of the same format, with checksums to match."""

import gzip
import hashlib
import struct

import numpy as np
import pooch
import pytest

from neuralrace.datasets import mnist
from neuralrace.datasets.mnist import Mnist
from neuralrace.errors import UserError

IMAGES, LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"
TEST_IMAGES, TEST_LABELS = "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"
COUNT, HELD_OUT = 40, 15


def idx(array):
    """An IDX file of unsigned bytes, built from the format's definition."""
    header = struct.pack(f">HBB{array.ndim}I", 0, 0x08, array.ndim, *array.shape)
    return header + array.astype(np.uint8).tobytes()


@pytest.fixture(autouse=True)
def fetched(monkeypatch):
    """What is fetched, as no test does: addresses that were tried."""
    tried = []

    def refuse(url, **_):
        tried.append(url)
        raise ConnectionError("no route to host")

    monkeypatch.setattr(pooch, "retrieve", refuse)
    return tried


@pytest.fixture
def folder(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    contents = {
        IMAGES: idx(rng.integers(0, 256, (COUNT, 28, 28))),
        LABELS: idx(np.arange(COUNT) % 10),
        TEST_IMAGES: idx(rng.integers(0, 256, (HELD_OUT, 28, 28))),
        TEST_LABELS: idx(9 - np.arange(HELD_OUT) % 10),
    }
    for stem, content in contents.items():
        (tmp_path / f"{stem}.gz").write_bytes(gzip.compress(content))
        monkeypatch.setitem(mnist.SHA256, stem, hashlib.sha256(content).hexdigest())
    return tmp_path


def load(folder, samples=COUNT, seed=0):
    return Mnist(name="mnist", folder=str(folder), samples=samples, seed=seed).load()


def test_images_and_labels_stay_together(folder):
    task = load(folder)
    assert task.x.shape == (COUNT, 784)
    np.testing.assert_allclose([task.x.mean(), task.x.std()], [0, 1], atol=1e-12)
    np.testing.assert_array_equal(task.y.sum(axis=1), 1)
    raw = np.frombuffer(gzip.decompress((folder / f"{IMAGES}.gz").read_bytes())[16:], np.uint8)
    raw = raw.reshape(COUNT, 784).astype(float)
    for row, label in zip(task.x, task.y.argmax(axis=1), strict=True):
        (index,) = np.flatnonzero([np.corrcoef(row, image)[0, 1] > 0.999 for image in raw])
        assert index % 10 == label


def test_subset_follows_its_seed(folder):
    first, again, other = (load(folder, samples=7, seed=seed).x for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert first.shape == other.shape == (7, 784)
    assert not np.array_equal(first, other)


def test_images_are_those_of_the_files(folder):
    images = Mnist(name="mnist", folder=str(folder), samples=12).images()
    assert images.shape == (1, 28, 28)
    assert images.pixels.shape == (12, 784)
    np.testing.assert_array_equal(images.held_out_labels, 9 - np.arange(HELD_OUT) % 10)
    raw = gzip.decompress((folder / f"{TEST_IMAGES}.gz").read_bytes())[16:]
    assert images.held_out_pixels.tobytes() == raw  # channel by channel, row by row
    task = load(folder, samples=12)
    np.testing.assert_array_equal(task.y.argmax(axis=1), images.labels)
    pixels = images.pixels.astype(float)
    np.testing.assert_array_equal(task.x, (pixels - pixels.mean()) / pixels.std())


def test_training_alone_needs_no_held_out_files(folder, fetched):
    for stem in (TEST_IMAGES, TEST_LABELS):
        (folder / f"{stem}.gz").unlink()
    load(folder)
    assert fetched == []
    with pytest.raises(UserError, match=TEST_IMAGES):
        Mnist(name="mnist", folder=str(folder)).images()


def test_plain_and_recompressed_files_are_the_same_data(folder):
    before = load(folder).x
    for stem in (IMAGES, LABELS):
        packed = folder / f"{stem}.gz"
        (folder / stem).write_bytes(gzip.decompress(packed.read_bytes()))
        packed.unlink()
    np.testing.assert_array_equal(load(folder).x, before)
    (folder / f"{IMAGES}.gz").write_bytes(gzip.compress((folder / IMAGES).read_bytes(), 1, mtime=7))
    np.testing.assert_array_equal(load(folder).x, before)


def missing(path):
    path.unlink()


def truncated_gzip(path):
    path.write_bytes(path.read_bytes()[:-20])


def damaged_gzip(path):
    content = bytearray(path.read_bytes())
    content[-6] ^= 1  # in the checksum that gzip keeps
    path.write_bytes(content)


def edited(change):
    def edit(path):
        path.write_bytes(gzip.compress(change(gzip.decompress(path.read_bytes()))))

    return edit


FAULTS = {
    "missing": (missing, "not found"),
    "truncated gzip": (truncated_gzip, "cannot be decompressed"),
    "damaged gzip": (damaged_gzip, "cannot be decompressed"),
    "truncated data": (edited(lambda c: c[:-5]), "announces"),
    "trailing data": (edited(lambda c: c + b"x"), "announces"),
    "header only in part": (edited(lambda c: c[:6]), "magic number"),
    "empty": (edited(lambda c: b""), "magic number 0x00000000"),
    "wrong magic": (edited(lambda c: b"\x00\x00\x0d" + c[3:]), "magic number"),
    "one pixel off": (edited(lambda c: c[:-1] + b"\x07"), "checksum"),
}


@pytest.mark.parametrize("stem", [IMAGES, LABELS])
@pytest.mark.parametrize("fault", FAULTS)
def test_faulty_file_is_named_with_a_remedy(folder, stem, fault):
    break_it, symptom = FAULTS[fault]
    break_it(folder / f"{stem}.gz")
    left = [path.read_bytes() for path in folder.iterdir()]
    with pytest.raises(UserError) as caught:
        load(folder)
    message = str(caught.value)
    assert str(folder / stem) in message
    assert symptom in message
    assert "no route to host). Put the file into" in message
    assert [path.read_bytes() for path in folder.iterdir()] == left


def test_missing_folder_is_named(tmp_path, fetched):
    with pytest.raises(UserError, match=r"nowhere.*not found.*no route to host.*by hand"):
        load(tmp_path / "nowhere")
    assert fetched == [f"https://storage.googleapis.com/cvdf-datasets/mnist/{IMAGES}.gz"]


def test_a_damaged_file_does_not_hide_a_whole_one(folder):
    before = load(folder).x
    packed = folder / f"{IMAGES}.gz"
    (folder / IMAGES).write_bytes(gzip.decompress(packed.read_bytes()))
    damaged_gzip(packed)
    np.testing.assert_array_equal(load(folder).x, before)


@pytest.mark.parametrize("fault", [missing, truncated_gzip])
@pytest.mark.parametrize("stem", [IMAGES, TEST_LABELS])
def test_missing_or_damaged_file_is_fetched_and_kept(folder, monkeypatch, stem, fault):
    packed = folder / f"{stem}.gz"
    content, published = packed.read_bytes(), mnist.COMPRESSED_SHA256[stem]
    before = Mnist(name="mnist", folder=str(folder)).images()
    fault(packed)

    def give(url, known_hash, fname, path):
        assert (url, known_hash) == (mnist.ADDRESS + packed.name, f"sha256:{published}")
        (path / fname).write_bytes(content)

    monkeypatch.setattr(pooch, "retrieve", give)
    after = Mnist(name="mnist", folder=str(folder)).images()
    np.testing.assert_array_equal(after.pixels, before.pixels)
    np.testing.assert_array_equal(after.held_out_labels, before.held_out_labels)
    assert packed.read_bytes() == content
