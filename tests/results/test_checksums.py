"""Checksum files: writing, reading, comparing, and damage."""

import os
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuralrace.errors import UserError
from neuralrace.results import atomic
from neuralrace.results.atomic import write_text
from neuralrace.results.checksums import (
    Checksums,
    check_file,
    checksum_path,
    file_sha256,
    fingerprint,
    is_as_recorded,
    is_intact,
    read_checksums,
    recorded_checksum,
    recorded_checksums,
    recorded_fingerprint,
    unchanged_inputs,
    writing_checksums,
)

NAME = "paper/metrics.nc"


def write(path, content, fingerprint="a fingerprint"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    inputs = {"paper/trajectory.nc": "a" * 64}
    Checksums(fingerprint, {path.name: file_sha256(path)}, inputs).write(checksum_path(path))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / NAME
    write(path, b"content")
    return path


def test_checksum_file_is_read_as_written(file):
    checksums = read_checksums(checksum_path(file))
    assert checksums == Checksums(
        "a fingerprint", {"metrics.nc": file_sha256(file)}, {"paper/trajectory.nc": "a" * 64}
    )
    assert recorded_checksums(file.parents[1], [NAME, "paper/none.nc"]) == {NAME: file_sha256(file)}


@given(fingerprint=st.from_regex(r"[0-9a-f]{64}", fullmatch=True), content=st.binary())
def test_fingerprint_and_checksum_are_recorded(tmp_path_factory, fingerprint, content):
    path = tmp_path_factory.mktemp("written") / "file.nc"
    write(path, content, fingerprint)
    assert recorded_fingerprint(path) == fingerprint
    assert checksum_path(path).read_text().splitlines()[-1] == f"{file_sha256(path)}  file.nc"


@pytest.mark.parametrize(
    "text", ["", "\n", "no checksum\n", "# made from x\n", "# made from x\nabc  file\n", "\0"]
)
def test_unreadable_checksum_file_is_ignored(file, text):
    checksum_path(file).write_text(text)
    assert read_checksums(checksum_path(file)) is None
    assert recorded_checksum(file) is None
    assert not is_intact(checksum_path(file))


def test_fingerprint_depends_on_every_part_and_their_order():
    assert len({fingerprint("a", "b"), fingerprint("b", "a"), fingerprint("a"), fingerprint()}) == 4


def test_huge_files_and_pipes_are_not_read_as_checksum_files(file):
    place = checksum_path(file)
    text = place.read_text()
    with place.open("a") as handle:
        handle.truncate(40 * 10**9)  # a sparse file, which takes no space on the disk
    assert read_checksums(place) is None
    place.unlink()
    os.mkfifo(place)
    assert read_checksums(place) is None
    place.unlink()
    place.write_text(text)
    assert read_checksums(place) is not None


@pytest.mark.parametrize("name", ["/dev/zero", "pipe", "..", "a\0b", "a" * 300])
def test_endless_files_and_impossible_names_are_not_intact(file, name):
    os.mkfifo(file.with_name("pipe"))
    place = file.with_name("forged.sha256")
    Checksums("", {name: "a" * 64}).write(place)
    assert not is_intact(place)


@pytest.mark.parametrize("damage", ["", "no checksum", "# made from x\n", None])
def test_file_with_a_damaged_checksum_file_is_refused(file, tmp_path, damage):
    place = checksum_path(file)
    place.unlink()
    if damage is None:
        check_file(file)  # may be read without a checksum file
    else:
        place.write_text(damage)
        with pytest.raises(UserError, match=r"checksum metrics.nc.sha256 is missing or") as error:
            check_file(file)
        assert error.value.file == str(file)
        assert f"--forcerun {file} " in error.value.remedy
    with (
        pytest.raises(UserError, match=r"its checksum metrics.nc.sha256 is missing or damaged"),
        unchanged_inputs(tmp_path, [file]),
    ):
        pass  # but nothing may be computed from it


@pytest.mark.parametrize("change", ["edited", "moved here", "deleted", "a folder"])
def test_changed_file_is_not_intact(file, change):
    times = file.stat().st_atime_ns, file.stat().st_mtime_ns
    if change == "edited":
        file.write_bytes(b"kontent")
        os.utime(file, ns=times)  # the date does not show it
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


def test_copied_folder_is_intact(file, tmp_path):
    shutil.copytree(file.parent, tmp_path / "copy")
    assert is_intact(checksum_path(tmp_path / "copy/metrics.nc"))


# Figures and tables -----------------------------------------------------------------------------


def draw(tmp_path, content=b"dots", meanwhile=lambda: None, guard=lambda: None):
    """Writes a picture of a result file, and returns the path of its checksum file."""
    picture = tmp_path / "figures/paper/one.png"
    picture.parent.mkdir(parents=True, exist_ok=True)
    place, inputs = picture.with_suffix(".sha256"), [str(tmp_path / NAME)]
    with writing_checksums(place, tmp_path, inputs, [str(picture)], "code", "caption", guard=guard):
        picture.write_bytes(content)
        meanwhile()
    return place


def test_checksum_file_of_a_figure_has_its_inputs_and_fingerprint(file, tmp_path):
    place = draw(tmp_path)
    checksums = read_checksums(place)
    assert checksums is not None
    assert checksums.inputs == {NAME: file_sha256(file)}
    assert checksums.fingerprint == fingerprint("code", "caption")
    assert is_intact(place)
    place.with_suffix(".png").write_bytes(b"other dots")
    assert not is_intact(place)


def test_figure_is_not_recorded_if_its_inputs_change_meanwhile(file, tmp_path):
    with pytest.raises(UserError, match="files changed while they were read"):
        draw(tmp_path, meanwhile=lambda: write(file, b"others"))
    assert not (tmp_path / "figures/paper/one.sha256").exists()


@pytest.mark.usefixtures("file")
def test_figure_is_not_recorded_if_the_guard_refuses(tmp_path):
    def refuse():
        raise UserError("was edited")

    with pytest.raises(UserError, match="was edited"):
        draw(tmp_path, guard=refuse)
    assert not (tmp_path / "figures/paper/one.sha256").exists()


def test_files_of_a_table_are_replaced_together(file, tmp_path, monkeypatch):
    """Each is as recorded before and after each rename; a failure replaces none."""
    table = tmp_path / "claims.sha256"
    names = [tmp_path / name for name in ("claims.md", "claims.json", "claims/paper.md")]
    rename, looked = os.replace, 0

    def write_all(text, fails=False):
        inputs = [str(file)]
        with writing_checksums(table, tmp_path, inputs, list(map(str, names)), guard=lambda: None):
            for path in names:
                write_text(f"{text} {path.name}", path)
            if fails:
                raise UserError("fails")

    def look(*arguments):
        nonlocal looked
        rename(*arguments)
        looked += all(is_as_recorded(path, table) for path in names)

    write_all("first")
    before = [path.read_text() for path in (*names, table)]
    with pytest.raises(UserError, match="fails"):
        write_all("second", fails=True)
    assert [path.read_text() for path in (*names, table)] == before
    assert not list(tmp_path.rglob("*.tmp"))
    monkeypatch.setattr(atomic.os, "replace", look)
    write_all("third")
    assert looked == len(names) + 1
    assert names[0].read_text() == "third claims.md"


def test_checksum_file_that_cannot_be_read_is_not_called_damaged(file, monkeypatch):
    place, original = checksum_path(file), type(file).open

    def refuse(path, *arguments, **options):
        if path == place:
            raise PermissionError(13, "Permission denied")
        return original(path, *arguments, **options)

    monkeypatch.setattr(type(file), "open", refuse)
    with pytest.raises(UserError, match=r"sha256: cannot be read \(Permission denied\)") as told:
        check_file(file)
    assert "--forcerun" not in str(told.value)
