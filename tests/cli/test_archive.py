"""Reading an archive that may come from anybody: what is refused before any of it is unpacked."""

import os
import stat
import struct
import zipfile
from pathlib import Path

import pytest

from neuralrace.cli.archive import SMALL, opened
from neuralrace.errors import UserError

CELL = "results/paper/experiment/main"
SEALED = {f"{CELL}/metrics.nc": "numbers", f"{CELL}/metrics.nc.sha256": "a seal"}


def archive(path: Path, entries: dict[str, str] | list, **changes) -> Path:
    """An archive of texts by name, some attributes of its last entry changed."""
    pairs = list(entries.items() if isinstance(entries, dict) else entries)
    with zipfile.ZipFile(path, "w") as made:
        for number, (name, text) in enumerate(pairs, start=1):
            entry = zipfile.ZipInfo(name)
            for key, value in changes.items() if number == len(pairs) else ():
                setattr(entry, key, value)
            made.writestr(entry, text)
    return path


def test_a_sealed_file_is_unpacked_while_it_is_used(tmp_path):
    beside = {"results/README.md": "", "results/claims.json": "", "results/metrics.csv": ""}
    found = opened(archive(tmp_path / "a.zip", SEALED | beside))
    assert found.sizes == {"paper/experiment/main/metrics.nc": 7}
    with found.file("paper/experiment/main/metrics.nc") as path:
        assert path.read_text() == "numbers"
        assert path.with_name("metrics.nc.sha256").read_text() == "a seal"
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
    with pytest.raises(UserError, match="is no name of a result file or table; `neuralrace export"):
        opened(archive(tmp_path / "a.zip", {**SEALED, name: "hostile"}))


@pytest.mark.parametrize(
    ("last", "changes", "said"),
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
def test_links_and_what_may_grow_are_refused(tmp_path, last, changes, said):
    with pytest.raises(UserError, match=said):
        opened(archive(tmp_path / "a.zip", {**SEALED, last: "x" * 1000}, **changes))


def test_a_seal_is_small(tmp_path):
    seal = {"results/a/b/c/metrics.nc.sha256": "0" * (SMALL + 1)}
    with pytest.raises(UserError, match="is too large for a seal"):
        opened(archive(tmp_path / "a.zip", SEALED | seal, compress_type=zipfile.ZIP_DEFLATED))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_stands_there_once(tmp_path):
    with pytest.raises(UserError, match="stands in it twice"):
        opened(archive(tmp_path / "a.zip", [*SEALED.items(), *SEALED.items()]))


def test_an_archive_of_many_gigabytes_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 5)
    path = archive(tmp_path / "a.zip", SEALED)
    with zipfile.ZipFile(path) as made:
        assert all(entry.extra for entry in made.infolist())
    assert opened(path).sizes == {"paper/experiment/main/metrics.nc": 7}


def changed_directory(path: Path, offset: int, content: bytes) -> None:
    """Writes into what the directory says of the first file, which alone counts."""
    whole = bytearray(path.read_bytes())
    at = whole.index(b"PK\x01\x02") + offset
    whole[at : at + len(content)] = content
    path.write_bytes(whole)


def test_an_encrypted_file_is_refused(tmp_path):
    path = archive(tmp_path / "a.zip", SEALED)
    changed_directory(path, 8, b"\x01")
    with pytest.raises(UserError, match="is encrypted"):
        opened(path)


def test_sizes_that_cannot_be_are_refused(tmp_path):
    path = archive(tmp_path / "a.zip", SEALED)
    changed_directory(path, 20, (1 << 31).to_bytes(4, "little") * 2)
    with pytest.raises(UserError, match="more than the archive is large"):
        opened(path)


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ({"results/README.md": ""}, "'results': holds no results"),
        ({}, "'results': holds no results"),
        (dict(list(SEALED.items())[:1]), f"'{CELL}/metrics.nc': lacks its seal"),
        (dict(list(SEALED.items())[1:]), f"'{CELL}/metrics.nc': lacks its seal, or is lacking"),
    ],
)
def test_what_lacks_results_or_seals_is_refused(tmp_path, entries, said):
    with pytest.raises(UserError, match=said):
        opened(archive(tmp_path / "a.zip", entries))


def test_damage_is_told(tmp_path):
    path = archive(tmp_path / "a.zip", SEALED)
    whole = path.read_bytes()
    path.write_bytes(whole[:-30])
    with pytest.raises(UserError, match=r"a.zip: cannot be read .*; it is cut short or damaged"):
        opened(path)
    path.write_bytes(whole.replace(b"numbers", b"numbbrs"))
    found = opened(path)
    with (
        pytest.raises(
            UserError, match=f"Bad CRC-32 for file '{CELL}/metrics.nc'.; it is cut short"
        ),
        found.file("paper/experiment/main/metrics.nc"),
    ):
        pass


def test_no_room_to_unpack_is_no_damage(tmp_path, monkeypatch):
    found = opened(archive(tmp_path / "a.zip", SEALED))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    with (
        pytest.raises(UserError, match="TMPDIR says where they go"),
        found.file("paper/experiment/main/metrics.nc"),
    ):
        pass


def test_a_directory_that_says_it_is_larger_than_any_is_not_read(tmp_path):
    """Four GB of which none are on the disk."""
    path = tmp_path / "a.zip"
    with path.open("wb") as file:
        file.truncate(4 * 10**9)
        file.seek(0, 2)
        file.write(struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 1, 1, 4 * 10**9, 0, 0))
    with pytest.raises(UserError, match="its directory is too large"):
        opened(path)


@pytest.mark.parametrize("kind", ["pipe", "folder", "link to itself", "device"])
def test_what_is_no_file_is_not_waited_for(tmp_path, kind):
    path = tmp_path / "a.zip"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero" if kind == "device" else path)
    with pytest.raises(UserError, match=r"a\.zip: cannot be read"):
        opened(path)
