"""Small files in the format of MNIST."""

import gzip
import hashlib
import struct

import numpy as np

from neuralrace.datasets import mnist

IMAGES, LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"
TEST_IMAGES, TEST_LABELS = "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"


def idx(array):
    """An IDX file of unsigned bytes, built from the definition of the format."""
    header = struct.pack(f">HBB{array.ndim}I", 0, 0x08, array.ndim, *array.shape)
    return header + array.astype(np.uint8).tobytes()


def write_mnist(folder, monkeypatch, images, held_out):
    """Writes random images with labels 0 to 9 in turn, and makes their checksums the official ones.

    Returns:
        The arrays by name of their file.
    """
    rng = np.random.default_rng(0)
    arrays = {
        IMAGES: rng.integers(0, 256, (images, 28, 28)),
        LABELS: np.arange(images) % 10,
        TEST_IMAGES: rng.integers(0, 256, (held_out, 28, 28)),
        TEST_LABELS: 9 - np.arange(held_out) % 10,
    }
    for stem, array in arrays.items():
        content = idx(array)
        (folder / f"{stem}.gz").write_bytes(gzip.compress(content))
        monkeypatch.setitem(mnist.SHA256, stem, hashlib.sha256(content).hexdigest())
    return arrays
