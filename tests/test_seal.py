"""Seals: what they say, and whether what they say still holds."""

import os
import shutil
import threading
import time

import pytest

from neuralrace import seal as seals
from neuralrace.errors import UserError
from neuralrace.seal import (
    Seal,
    digest_of,
    digests,
    key,
    read_seal,
    refuse_unsound,
    seal,
    seal_file,
    sha256,
    sound,
)


@pytest.fixture
def sealed(tmp_path):
    path = tmp_path / "paper/metrics.nc"
    path.parent.mkdir()
    path.write_bytes(b"content")
    seal(path, sha256(path), "its key", {"paper/trajectory.nc": "a" * 64})
    return path


def test_a_seal_says_what_was_written(sealed):
    found = read_seal(seal_file(sealed))
    assert found == Seal(
        "its key", {"metrics.nc": sha256(sealed)}, {"paper/trajectory.nc": "a" * 64}
    )
    assert digests(sealed.parents[1], ["paper/metrics.nc", "paper/none.nc"]) == {
        "paper/metrics.nc": sha256(sealed)
    }


@pytest.mark.parametrize(
    "text", ["", "\n", "no seal\n", "# made from x\n", "# made from x\nabc  file\n", "\0"]
)
def test_what_is_no_seal_says_nothing(sealed, text):
    seal_file(sealed).write_text(text)
    assert read_seal(seal_file(sealed)) is None
    assert digest_of(sealed) is None
    assert not sound(seal_file(sealed))


def test_a_key_stands_for_all_and_for_their_order():
    assert len({key("a", "b"), key("b", "a"), key("a"), key()}) == 4


def touched(path):
    """A moment after which the file system tells a change from what was before."""
    time.sleep(0.02)
    return path


def test_content_that_was_not_touched_is_not_read(sealed, monkeypatch):
    read = []
    monkeypatch.setattr(seals, "sha256", lambda path: read.append(path) or sha256(path))
    assert sound(seal_file(sealed))
    assert read == []
    os.utime(touched(sealed))
    assert sound(seal_file(sealed))
    assert read == [sealed]
    assert sound(seal_file(sealed)), "who was found sound is not read again"
    assert read == [sealed]


@pytest.mark.parametrize("change", ["edited", "moved here", "deleted", "a folder"])
def test_what_was_changed_is_not_sound(sealed, change):
    times = sealed.stat().st_atime_ns, sealed.stat().st_mtime_ns
    touched(sealed)
    if change == "edited":
        sealed.write_bytes(b"kontent")
        os.utime(sealed, ns=times)  # as if nothing had happened
    elif change == "moved here":
        other = sealed.with_name("other")
        other.write_bytes(b"kontent")
        os.utime(other, ns=times)
        other.replace(sealed)
    else:
        sealed.unlink()
        if change == "a folder":
            sealed.mkdir()
    assert not sound(seal_file(sealed))


def test_a_copied_folder_is_sound(sealed, tmp_path):
    shutil.copytree(sealed.parent, tmp_path / "copy")
    assert sound(seal_file(tmp_path / "copy/metrics.nc"))


def test_who_reads_between_a_file_and_its_seal_waits_for_it(sealed):
    sealed.write_bytes(b"another")
    writer = threading.Timer(0.1, seal, (sealed, sha256(sealed), "another key"))
    writer.start()
    refuse_unsound(sealed)
    writer.join()
    sealed.write_bytes(b"damaged")
    with pytest.raises(UserError, match="does not have the checksum it was written with"):
        refuse_unsound(sealed)
