"""Safe reading of archives: hostile and damaged ones are refused before they are unpacked."""

import os
import stat
import struct
import zipfile
from pathlib import Path

import pytest

from neuralrace.cli.archive import LARGEST_CHECKSUM, open_archive
from neuralrace.errors import UserError

CELL = "results/paper/experiment/main"
FILES = {f"{CELL}/metrics.nc": "numbers", f"{CELL}/metrics.nc.sha256": "a checksum"}


def archive(path: Path, entries: dict[str, str] | list, **changes) -> Path:
    """Writes an archive of texts by name; `changes` are attributes of its last entry."""
    pairs = list(entries.items() if isinstance(entries, dict) else entries)
    with zipfile.ZipFile(path, "w") as archive:
        for number, (name, text) in enumerate(pairs, start=1):
            entry = zipfile.ZipInfo(name)
            for key, value in changes.items() if number == len(pairs) else ():
                setattr(entry, key, value)
            archive.writestr(entry, text)
    return path


def test_file_is_unpacked_with_its_checksum_file_while_it_is_used(tmp_path):
    others = {"results/README.md": "", "results/claims.json": "", "results/metrics.csv": ""}
    sound = open_archive(archive(tmp_path / "a.zip", FILES | others))
    assert sound.sizes == {"paper/experiment/main/metrics.nc": 7}
    with sound.file("paper/experiment/main/metrics.nc") as path:
        assert path.read_text() == "numbers"
        assert path.with_name("metrics.nc.sha256").read_text() == "a checksum"
    assert not path.exists()


@pytest.mark.parametrize(
    "name",
    [
        "/etc/passwd",
        "../results/paper/experiment/main/metrics.nc",
        "results/../../paper/metrics.nc",
        "results/paper/../main/metrics.nc",
        "results/paper/experiment/../metrics.nc",
        "results/paper/experiment/./metrics.nc",
        "results//experiment/main/metrics.nc",
        "results\\paper\\experiment\\main\\metrics.nc",
        "C:/results/paper/experiment/main/metrics.nc",
        "results/paper/experiment/main/metrics.nc\n",
        "results/paper/experiment/größe/metrics.nc",
        "results/paper/experiment/main/",
        "results/paper/experiment/main/run.sh",
        "results/paper/experiment/main/weights.nc",
        "results/logs/a.log",
        "results/claims.accepted",
        "data/metrics.nc",
        "",
    ],
)
def test_other_names_are_refused(tmp_path, name):
    with pytest.raises(UserError, match="is no name of a result file or table; `neura") as error:
        open_archive(archive(tmp_path / "a.zip", {**FILES, name: "hostile"}))
    assert error.value.file == str(tmp_path / "a.zip")
    assert error.value.value == repr(name)


@pytest.mark.parametrize(
    ("last", "changes", "problem"),
    [
        ("results/README.md", {"external_attr": (stat.S_IFLNK | 0o777) << 16}, "but a link"),
        ("results/README.md", {"external_attr": (stat.S_IFDIR | 0o755) << 16}, "but a link"),
        ("results/README.md", {"external_attr": (stat.S_IFIFO | 0o644) << 16}, "but a link"),
        ("results/README.md", {"comment": b"a note"}, "has a note"),
        ("results/README.md", {"extra": b"\x50\x4b\x02\x00ab"}, "has a note"),
        ("results/README.md", {"extra": b"\x01\x00\x00\x00\x50\x4b\x00\x00"}, "has a note"),
        ("results/a/b/c/metrics.nc", {"compress_type": zipfile.ZIP_DEFLATED}, "is compressed"),
        ("results/a/b/c/metrics.nc", {"compress_type": zipfile.ZIP_LZMA}, "is compressed"),
        ("results/a/b/c/metrics.nc.sha256", {"compress_type": zipfile.ZIP_LZMA}, "by another"),
        ("results/a/b/c/metrics.nc.sha256", {"compress_type": zipfile.ZIP_BZIP2}, "by another"),
    ],
)
def test_links_notes_and_compression_are_refused(tmp_path, last, changes, problem):
    with pytest.raises(UserError, match=problem):
        open_archive(archive(tmp_path / "a.zip", {**FILES, last: "x" * 1000}, **changes))


def test_large_checksum_file_is_refused(tmp_path):
    large = {"results/a/b/c/metrics.nc.sha256": "0" * (LARGEST_CHECKSUM + 1)}
    with pytest.raises(UserError, match="is too large for a checksum file"):
        open_archive(archive(tmp_path / "a.zip", FILES | large, compress_type=zipfile.ZIP_DEFLATED))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_duplicate_names_are_refused(tmp_path):
    with pytest.raises(UserError, match="is listed twice"):
        open_archive(archive(tmp_path / "a.zip", [*FILES.items(), *FILES.items()]))


def test_archive_with_64_bit_sizes_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 5)
    path = archive(tmp_path / "a.zip", FILES)
    with zipfile.ZipFile(path) as large:
        assert all(entry.extra for entry in large.infolist())
    assert open_archive(path).sizes == {"paper/experiment/main/metrics.nc": 7}


def changed_directory(path: Path, offset: int, content: bytes) -> None:
    """Overwrites bytes of the first entry of the directory."""
    whole = bytearray(path.read_bytes())
    start = whole.index(b"PK\x01\x02") + offset
    whole[start : start + len(content)] = content
    path.write_bytes(whole)


def test_encrypted_file_is_refused(tmp_path):
    path = archive(tmp_path / "a.zip", FILES)
    changed_directory(path, 8, b"\x01")
    encrypted = open_archive(path)
    with (
        pytest.raises(UserError, match="is encrypted"),
        encrypted.file("paper/experiment/main/metrics.nc"),
    ):
        pass


def test_impossible_sizes_are_refused(tmp_path):
    path = archive(tmp_path / "a.zip", FILES)
    changed_directory(path, 20, (1 << 31).to_bytes(4, "little") * 2)
    with pytest.raises(UserError, match="says that they are larger than itself"):
        open_archive(path)


@pytest.mark.parametrize(
    ("entries", "problem"),
    [
        ({"results/README.md": ""}, "'results': has no result files"),
        ({}, "'results': has no result files"),
        (dict(list(FILES.items())[:1]), f"'{CELL}/metrics.nc': the file or its checksum file is"),
        (dict(list(FILES.items())[1:]), f"'{CELL}/metrics.nc': the file or its checksum file is"),
    ],
)
def test_archive_without_results_or_checksum_files_is_refused(tmp_path, entries, problem):
    with pytest.raises(UserError, match=problem):
        open_archive(archive(tmp_path / "a.zip", entries))


def test_damaged_archive_is_refused(tmp_path):
    path = archive(tmp_path / "a.zip", FILES)
    whole = path.read_bytes()
    path.write_bytes(whole[:-30])
    with pytest.raises(UserError, match=r"a.zip: cannot be read .*; it is cut short or damaged"):
        open_archive(path)
    path.write_bytes(whole.replace(b"numbers", b"numbbrs"))
    sound = open_archive(path)
    with (
        pytest.raises(
            UserError, match=f"Bad CRC-32 for file '{CELL}/metrics.nc'.; it is cut short"
        ),
        sound.file("paper/experiment/main/metrics.nc"),
    ):
        pass


def test_full_disk_is_not_reported_as_damage(tmp_path, monkeypatch):
    sound = open_archive(archive(tmp_path / "a.zip", FILES))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    with (
        pytest.raises(UserError, match="TMPDIR says where they go"),
        sound.file("paper/experiment/main/metrics.nc"),
    ):
        pass


def test_huge_directory_is_not_read(tmp_path):
    """Its four GB are a hole in a sparse file."""
    path = tmp_path / "a.zip"
    with path.open("wb") as file:
        file.truncate(4 * 10**9)
        file.seek(0, 2)
        file.write(struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 1, 1, 4 * 10**9, 0, 0))
    with pytest.raises(UserError, match="its directory is too large"):
        open_archive(path)


@pytest.mark.parametrize("kind", ["pipe", "folder", "link to itself", "device"])
def test_pipes_folders_and_devices_are_refused_without_waiting(tmp_path, kind):
    path = tmp_path / "a.zip"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero" if kind == "device" else path)
    with pytest.raises(UserError, match=r"a\.zip: cannot be read"):
        open_archive(path)
