"""Checksum files: what they say, and whether it still holds."""

import os
import shutil
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuralrace.errors import UserError
from neuralrace.results.checksums import (
    Checksums,
    recorded_checksum,
    recorded_checksums,
    fingerprint,
    recorded_fingerprint,
    is_intact,
    read_checksums,
    checksums_of_outputs,
    check_file,
    checksum_path,
    file_sha256,
    unchanged_inputs,
)

NAME = "paper/metrics.nc"


def write(path, content, computed_from="a fingerprint"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    inputs = {"paper/trajectory.nc": "a" * 64}
    Checksums(computed_from, {path.name: file_sha256(path)}, inputs).write(checksum_path(path))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / NAME
    write(path, b"content")
    return path


def test_it_says_what_was_written(file):
    found = read_checksums(checksum_path(file))
    assert found == Checksums(
        "a fingerprint", {"metrics.nc": file_sha256(file)}, {"paper/trajectory.nc": "a" * 64}
    )
    assert recorded_checksums(file.parents[1], [NAME, "paper/none.nc"]) == {NAME: file_sha256(file)}


@given(planned=st.from_regex(r"[0-9a-f]{64}", fullmatch=True), content=st.binary())
def test_it_tells_fingerprint_and_checksum(tmp_path_factory, planned, content):
    path = tmp_path_factory.mktemp("written") / "file.nc"
    write(path, content, planned)
    assert recorded_fingerprint(path) == planned
    assert checksum_path(path).read_text().splitlines()[-1] == f"{file_sha256(path)}  file.nc"


@pytest.mark.parametrize(
    "text", ["", "\n", "no checksum\n", "# made from x\n", "# made from x\nabc  file\n", "\0"]
)
def test_what_is_none_says_nothing(file, text):
    checksum_path(file).write_text(text)
    assert read_checksums(checksum_path(file)) is None
    assert recorded_checksum(file) is None
    assert not is_intact(checksum_path(file))


def test_a_fingerprint_stands_for_all_and_for_their_order():
    assert len({fingerprint("a", "b"), fingerprint("b", "a"), fingerprint("a"), fingerprint()}) == 4


def test_a_checksum_file_is_read_only_where_it_can_be_one(file):
    """Not a disk full of zeros, nor a pipe that nobody writes to."""
    place = checksum_path(file)
    text = place.read_text()
    with place.open("a") as handle:
        handle.truncate(40 * 10**9)  # takes no room on the disk
    assert read_checksums(place) is None
    place.unlink()
    os.mkfifo(place)
    assert read_checksums(place) is None
    place.unlink()
    place.write_text(text)
    assert read_checksums(place) is not None


@pytest.mark.parametrize("name", ["/dev/zero", "pipe", "..", "a\0b", "a" * 300])
def test_a_forged_name_in_a_checksum_file_is_not_followed(file, name):
    """What has no end is not read, and what can be no name is none."""
    os.mkfifo(file.with_name("pipe"))
    place = file.with_name("forged.sha256")
    Checksums("", {name: "a" * 64}).write(place)
    assert not is_intact(place)


@pytest.mark.parametrize("damage", ["", "no checksum", "# made from x\n", None])
def test_a_damaged_checksum_file_vouches_for_nothing(file, tmp_path, damage):
    place = checksum_path(file)
    place.unlink()
    if damage is None:
        check_file(file)  # a file that came alone
    else:
        place.write_text(damage)
        with pytest.raises(UserError, match=r"checksum metrics.nc.sha256 is .*--forcerun .*nc to"):
            check_file(file)
    with (
        pytest.raises(UserError, match=r"its checksum metrics.nc.sha256 is missing or damaged"),
        unchanged_inputs(tmp_path, [file]),
    ):
        pass  # but nothing is computed from it


@pytest.mark.parametrize("change", ["edited", "moved here", "deleted", "a folder"])
def test_what_was_changed_is_not_intact(file, change):
    times = file.stat().st_atime_ns, file.stat().st_mtime_ns
    if change == "edited":
        file.write_bytes(b"kontent")
        os.utime(file, ns=times)  # as if nothing had happened
    elif change == "moved here":
        other = file.with_name("other")
        other.write_bytes(b"kontent")
        os.utime(other, ns=times)
        other.replace(file)
    else:
        file.unlink()
        if change == "a folder":
            file.mkdir()
    assert not is_intact(checksum_path(file))


def test_a_copied_folder_is_intact(file, tmp_path):
    shutil.copytree(file.parent, tmp_path / "copy")
    assert is_intact(checksum_path(tmp_path / "copy/metrics.nc"))


def test_who_reads_between_a_file_and_its_checksum_waits_for_it(file):
    file.write_bytes(b"another")
    checksum = Checksums("another fingerprint", {file.name: file_sha256(file)})
    writer = threading.Timer(0.1, checksum.write, [checksum_path(file)])
    writer.start()
    check_file(file)
    writer.join()
    file.write_bytes(b"damaged")
    with pytest.raises(UserError, match="does not have the checksum it was written with"):
        check_file(file)


# What is drawn or judged from result files -------------------------------------------------------


def draw(tmp_path, content=b"dots", meanwhile=lambda: None, guard=lambda: None):
    """Writes a picture of a result file, and returns the path of its checksum."""
    picture = tmp_path / "figures/paper/one.png"
    picture.parent.mkdir(parents=True, exist_ok=True)
    place, inputs = picture.with_suffix(".sha256"), [str(tmp_path / NAME)]
    with checksums_of_outputs(place, tmp_path, inputs, [str(picture)], "code", "caption", guard=guard):
        picture.write_bytes(content)
        meanwhile()
    return place


def test_a_picture_says_what_it_was_drawn_from(file, tmp_path):
    place = draw(tmp_path)
    found = read_checksums(place)
    assert found is not None
    assert found.inputs == {NAME: file_sha256(file)}
    assert found.fingerprint == fingerprint("code", "caption")
    assert is_intact(place)
    place.with_suffix(".png").write_bytes(b"other dots")
    assert not is_intact(place)


def test_what_changes_meanwhile_is_not_recorded(file, tmp_path):
    with pytest.raises(UserError, match="files changed while they were read"):
        draw(tmp_path, meanwhile=lambda: write(file, b"others"))
    assert not (tmp_path / "figures/paper/one.sha256").exists()


@pytest.mark.usefixtures("file")
def test_what_the_guard_refuses_is_not_recorded(tmp_path):
    def refuse():
        raise UserError("was edited")

    with pytest.raises(UserError, match="was edited"):
        draw(tmp_path, guard=refuse)
    assert not (tmp_path / "figures/paper/one.sha256").exists()
