"""MNIST: its installed subset, and small files of the same format with checksums to match."""

import gzip
import re

import numpy as np
import pytest
from idx_files import IMAGES, LABELS, TEST_IMAGES, TEST_LABELS, write_mnist
from refusals import check_refusal

from neuralrace.datasets import mnist
from neuralrace.datasets.mnist import Mnist
from neuralrace.errors import UserError

COUNT, HELD_OUT = 40, 15
pytestmark = pytest.mark.usefixtures("web")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write_mnist(tmp_path, monkeypatch, COUNT, HELD_OUT)
    return tmp_path


def make(folder, **parameters):
    return Mnist(name="mnist", folder=str(folder), **parameters)


def raw_images(folder, stem):
    """Pixels of a file (image, pixel)."""
    content = gzip.decompress((folder / f"{stem}.gz").read_bytes())
    return np.frombuffer(content[16:], np.uint8).reshape(-1, 784)


def test_images_and_labels_stay_together(folder):
    task = make(folder).load()
    assert task.x.shape == (COUNT, 784)
    np.testing.assert_allclose([task.x.mean(), task.x.std()], [0, 1], atol=1e-12)
    np.testing.assert_array_equal(task.y.sum(axis=1), 1)
    raw = raw_images(folder, IMAGES).astype(float)
    for row, label in zip(task.x, task.y.argmax(axis=1), strict=True):
        (index,) = np.flatnonzero([np.corrcoef(row, image)[0, 1] > 0.999 for image in raw])
        assert index % 10 == label


def test_subset_depends_on_its_seed(folder):
    first, again, other = (make(folder, samples=7, seed=seed).load().x for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert first.shape == other.shape == (7, 784)
    assert not np.array_equal(first, other)


def test_images_are_those_of_the_files(folder):
    images = make(folder, samples=12).images()
    assert images.shape == (1, 28, 28)
    assert images.pixels.shape == (12, 784)
    np.testing.assert_array_equal(images.held_out_labels, 9 - np.arange(HELD_OUT) % 10)
    np.testing.assert_array_equal(images.held_out_pixels, raw_images(folder, TEST_IMAGES))
    task = make(folder, samples=12).load()
    np.testing.assert_array_equal(task.y.argmax(axis=1), images.labels)
    pixels = images.pixels.astype(float)
    np.testing.assert_array_equal(task.x, (pixels - pixels.mean()) / pixels.std())


def test_training_reads_no_held_out_files(folder, web):
    for stem in (TEST_IMAGES, TEST_LABELS):
        (folder / f"{stem}.gz").unlink()
    make(folder).load()
    assert web.requests == []
    with pytest.raises(UserError, match=TEST_IMAGES):
        make(folder).images()


def test_plain_and_recompressed_files_give_the_same_data(folder):
    before = make(folder).load().x
    for stem in (IMAGES, LABELS):
        packed = folder / f"{stem}.gz"
        (folder / stem).write_bytes(gzip.decompress(packed.read_bytes()))
        packed.unlink()
    np.testing.assert_array_equal(make(folder).load().x, before)
    (folder / f"{IMAGES}.gz").write_bytes(gzip.compress((folder / IMAGES).read_bytes(), 1, mtime=7))
    np.testing.assert_array_equal(make(folder).load().x, before)


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
    "truncated data": (edited(lambda c: c[:-5]), "checksum"),
    "trailing data": (edited(lambda c: c + b"x"), "checksum"),
    "partial header": (edited(lambda c: c[:6]), "checksum"),
    "empty": (edited(lambda c: b""), "checksum"),
    "wrong magic number": (edited(lambda c: b"\x00\x00\x0d" + c[3:]), "checksum"),
    "one pixel changed": (edited(lambda c: c[:-1] + b"\x07"), "checksum"),
}


@pytest.mark.parametrize("stem", [IMAGES, LABELS])
@pytest.mark.parametrize("fault", FAULTS)
def test_faulty_file_is_named_with_a_remedy_and_kept(folder, stem, fault):
    break_it, problem = FAULTS[fault]
    break_it(folder / f"{stem}.gz")
    before = [path.read_bytes() for path in folder.iterdir()]
    with pytest.raises(UserError) as error:
        make(folder).load()
    assert error.value.file == str(folder / f"{stem}.gz")
    assert problem in error.value.problem
    assert "no route to host" in error.value.problem
    assert error.value.remedy.startswith("put the file into")
    assert [path.read_bytes() for path in folder.iterdir()] == before


def test_missing_folder_is_named(tmp_path, web):
    with pytest.raises(UserError, match=r"nowhere.*not found.*no route to host.*by hand"):
        make(tmp_path / "nowhere").load()
    assert web.requests == [f"https://storage.googleapis.com/cvdf-datasets/mnist/{IMAGES}.gz"]


def test_intact_file_is_read_where_another_is_damaged(folder):
    before = make(folder).load().x
    packed = folder / f"{IMAGES}.gz"
    (folder / IMAGES).write_bytes(gzip.decompress(packed.read_bytes()))
    damaged_gzip(packed)
    np.testing.assert_array_equal(make(folder).load().x, before)


@pytest.mark.parametrize("fault", [missing, truncated_gzip])
@pytest.mark.parametrize("stem", [IMAGES, TEST_LABELS])
def test_missing_or_damaged_file_is_downloaded_and_kept(folder, web, stem, fault):
    packed = folder / f"{stem}.gz"
    content = packed.read_bytes()
    web.files[mnist.ADDRESS + packed.name, f"sha256:{mnist.COMPRESSED_SHA256[stem]}"] = content
    before = make(folder).images()
    fault(packed)
    after = make(folder).images()
    np.testing.assert_array_equal(after.pixels, before.pixels)
    np.testing.assert_array_equal(after.held_out_labels, before.held_out_labels)
    assert packed.read_bytes() == content


# The installed subset ----------------------------------------------------------------------------


def test_installed_subset_is_mnist(web):
    images = Mnist(name="mnist").images()
    assert images.pixels.shape == (6000, 784)
    assert images.held_out_pixels.shape == (1000, 784)
    assert Mnist(name="mnist").held_out_count == 1000
    assert web.requests == []
    for pixels, labels in (
        (images.pixels, images.labels),
        (images.held_out_pixels, images.held_out_labels),
    ):
        # of all 60,000 images, as everyone who standardises them knows
        np.testing.assert_allclose(pixels.mean() / 255, 0.1307, atol=0.004)
        np.testing.assert_allclose(pixels.std() / 255, 0.3081, atol=0.004)
        shares = np.bincount(labels) / len(labels)
        np.testing.assert_allclose(shares, 0.1, atol=0.03)
    # the nearest mean of a class classifies 82% of the official test set
    means = np.stack([images.pixels[images.labels == label].mean(axis=0) for label in range(10)])
    distances = np.sum(means**2, axis=1) - 2 * (images.held_out_pixels @ means.T)
    accuracy = np.mean(distances.argmin(axis=1) == images.held_out_labels)
    np.testing.assert_allclose(accuracy, 0.82, atol=0.03)


def test_part_of_the_installed_subset_depends_on_its_seed():
    first, again, other = (
        Mnist(name="mnist", samples=7, seed=seed).training()[0] for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_subset_is_drawn_as_its_readme_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data/mnist").mkdir(parents=True)
    arrays = write_mnist(tmp_path / "data/mnist", monkeypatch, COUNT, HELD_OUT)
    readme = (mnist.SUBSET / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    exec(code, {})
    for pixels, labels in ((IMAGES, LABELS), (TEST_IMAGES, TEST_LABELS)):
        official = dict(
            zip(map(bytes, arrays[pixels].astype(np.uint8)), arrays[labels], strict=True)
        )
        drawn = gzip.decompress((tmp_path / f"{pixels}.gz").read_bytes())
        header = bytes([0, 0, 8, 3, *np.array(arrays[pixels].shape, ">u4").tobytes()])
        assert drawn[:16] == header
        images = [drawn[at : at + 784] for at in range(16, len(drawn), 784)]
        drawn_labels = gzip.decompress((tmp_path / f"{labels}.gz").read_bytes())[8:]
        assert dict(zip(images, drawn_labels, strict=True)) == official
        assert list(official) != images  # in random order


def test_damaged_installed_file_is_named_with_a_remedy(tmp_path, monkeypatch, web):
    packed = tmp_path / f"{IMAGES}.gz"
    packed.write_bytes((mnist.SUBSET / packed.name).read_bytes()[:-20])
    monkeypatch.setattr(mnist, "SUBSET", tmp_path)
    with pytest.raises(UserError, match=r"installed file .* damaged .*; install neuralrace again"):
        Mnist(name="mnist").training()
    assert web.requests == []


def test_more_images_than_are_installed_need_the_official_files(folder):
    words = "6000 images of MNIST are installed ... use at most 6000, or add `folder: data/mnist`"
    check_refusal(Mnist, {"name": "mnist", "samples": 6001}, "samples", words)
    assert make(folder, samples=6001).held_out_count == 10000
