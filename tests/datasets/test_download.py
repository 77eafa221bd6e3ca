"""Missing files are fetched complete, or told about in one message; nothing here uses a network."""

import hashlib
import logging
from pathlib import Path

import pooch
import pytest
import requests

from neuralrace.datasets.download import fetch
from neuralrace.errors import UserError

URL = "https://example.org/official.bin"
CONTENT = b"official content"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def served(monkeypatch):
    """The only step of pooch that needs a network gives this content instead."""
    content = bytearray(CONTENT)

    def give(self, url, output_file, pooch, check_only=False):
        assert url == URL
        Path(output_file).write_bytes(content)

    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", give)
    return content


def test_file_is_fetched_into_a_new_folder(tmp_path, served, caplog, monkeypatch):
    logger = pooch.get_logger()  # stands outside the tree of loggers
    monkeypatch.setattr(logger, "level", logging.NOTSET)
    monkeypatch.setattr(logger, "handlers", [caplog.handler])
    path = tmp_path / "data" / "set" / "file.bin"
    fetch(path, URL, SHA256, "mnist")
    assert path.read_bytes() == CONTENT
    assert [p.name for p in path.parent.iterdir()] == ["file.bin"]
    assert caplog.records == []


def refused(path, *named):
    with pytest.raises(UserError) as caught:
        fetch(path, URL, SHA256, "cifar10")
    message = str(caught.value)
    for part in (str(path), URL, "set `folder` of dataset cifar10", "by hand", *named):
        assert part in message


def test_other_content_is_refused_and_not_kept(tmp_path, served):
    served[0] ^= 1
    refused(tmp_path / "file.bin", SHA256)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [requests.ConnectionError, requests.HTTPError, TimeoutError])
def test_address_out_of_reach(tmp_path, monkeypatch, error):
    def fail(*_, **__):
        raise error("name or service not known")

    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", fail)
    refused(tmp_path / "file.bin", "name or service not known")
    assert list(tmp_path.iterdir()) == []


def test_folder_that_cannot_be_written(tmp_path, served):
    (tmp_path / "data").write_text("a file, and no folder")
    refused(tmp_path / "data" / "file.bin")
