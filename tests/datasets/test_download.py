"""Downloads of missing files, without a network: either complete, or refused in one message."""

import hashlib
import logging
from pathlib import Path

import pooch
import pytest
import requests

from neuralrace.datasets.download import fetch, official_content
from neuralrace.errors import UserError

URL = "https://example.org/official.bin"
CONTENT = b"official content"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def served(monkeypatch):
    """Content that the only step of pooch that needs a network returns instead."""
    content = bytearray(CONTENT)

    def download(self, url, output_file, pooch, check_only=False):
        assert url == URL
        Path(output_file).write_bytes(content)

    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", download)
    return content


def test_file_is_saved_into_a_new_folder_without_log_lines(tmp_path, served, caplog, monkeypatch):
    logger = pooch.get_logger()  # it does not propagate to the root logger
    monkeypatch.setattr(logger, "level", logging.NOTSET)
    monkeypatch.setattr(logger, "handlers", [caplog.handler])
    path = tmp_path / "data" / "set" / "file.bin"
    fetch(path, URL, SHA256, "mnist")
    assert path.read_bytes() == CONTENT
    assert [p.name for p in path.parent.iterdir()] == ["file.bin"]
    assert caplog.records == []


def check_refused(path, reason=""):
    with pytest.raises(UserError) as error:
        fetch(path, URL, SHA256, "cifar10")
    assert error.value.file == str(path)
    assert URL in error.value.problem
    assert reason in error.value.problem
    assert "by hand, or set `folder` of dataset cifar10" in error.value.remedy


def test_other_content_is_refused_and_not_kept(tmp_path, served):
    served[0] ^= 1
    check_refused(tmp_path / "file.bin", SHA256)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [requests.ConnectionError, requests.HTTPError, TimeoutError])
def test_unreachable_address_is_refused(tmp_path, monkeypatch, error):
    def fail(*_, **__):
        raise error("name or service not known")

    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", fail)
    check_refused(tmp_path / "file.bin", "name or service not known")
    assert list(tmp_path.iterdir()) == []


def test_file_in_place_of_the_folder_is_refused(tmp_path, served):
    (tmp_path / "data").write_text("a file, not a folder")
    check_refused(tmp_path / "data" / "file.bin")


def test_folder_in_place_of_the_file_is_refused(tmp_path):
    with pytest.raises(UserError, match="is no regular file") as error:
        fetch(tmp_path, URL, SHA256, "mnist")
    assert "remove it, or set `folder`" in error.value.remedy


def test_file_that_cannot_be_read_is_not_called_damaged(tmp_path):
    def refused(path):
        raise UserError("cannot be read (Permission denied)", file=path)

    def download(fault):
        raise UserError(fault)

    path = tmp_path / "official.bin"
    path.write_bytes(CONTENT)
    with pytest.raises(UserError, match=r"^unreadable \(official.bin: cannot be read \(Perm"):
        official_content([path], refused, SHA256, download)
