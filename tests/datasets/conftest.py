"""A stand-in for downloads: tests of datasets never use a network."""

from types import SimpleNamespace

import pooch
import pytest


@pytest.fixture
def web(monkeypatch):
    """What can be downloaded: `files` by (address, hash), empty at first; requests are recorded."""
    web = SimpleNamespace(files={}, requests=[])

    def retrieve(url, known_hash, fname, path):
        web.requests.append(url)
        if (url, known_hash) not in web.files:
            raise ConnectionError("no route to host")
        (path / fname).write_bytes(web.files[url, known_hash])

    monkeypatch.setattr(pooch, "retrieve", retrieve)
    return web
