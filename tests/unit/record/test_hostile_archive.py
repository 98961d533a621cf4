"""A release file may come from anyone: whatever is wrong with it is one ReleaseFileError, before memory is taken."""

import os
import struct
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from support.children import message_without_privileges
from support.veil_files import CHUNK, NAME, edit_document, entries_of, refusal, write_entries, write_small
from veilcube.record.archive import read_archive


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_small(tmp_path / "small.veil")


# Not a release file at all


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    assert "there is no release file at" in refusal(tmp_path / "missing.veil")


def test_a_folder_is_reported(tmp_path: Path) -> None:
    assert "is a folder" in refusal(tmp_path)


def test_a_pipe_is_reported_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.veil")
    assert "a device" in refusal(tmp_path / "pipe.veil")


def test_a_name_that_no_file_can_have_is_reported(tmp_path: Path) -> None:
    assert "cannot be read" in refusal(tmp_path / "nul\0.veil")
    assert "cannot be read" in refusal(tmp_path / ("n" * 300))


def test_an_unreadable_file_is_reported(path: Path) -> None:
    path.chmod(0)
    assert "check its name and permissions" in message_without_privileges(lambda: read_archive(path))


@pytest.mark.parametrize(
    "content", [b"", b"x", b"hello, world\n" * 10, b"PK\x03\x04" + bytes(50), b"PK\x05\x06" + bytes(18)]
)
def test_a_file_of_another_kind_is_reported(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "other.veil").write_bytes(content)
    assert "cannot be opened as a release because it" in refusal(tmp_path / "other.veil")


def test_a_zip_file_of_something_else_is_reported(tmp_path: Path) -> None:
    write_entries(tmp_path / "other.veil", {"readme.txt": b"hello"})
    assert "it has no veil.json" in refusal(tmp_path / "other.veil")


# The manifest


@pytest.mark.parametrize("version", [4, 5, 10**9])
def test_a_newer_file_asks_for_an_upgrade_whatever_else_it_holds(path: Path, version: int) -> None:
    edit_document(path, "veil.json", lambda manifest: manifest.update(format_version=version))
    write_entries(path, entries_of(path) | {"new/kind/of/entry": b"\0"})
    assert f"has release format {version}" in refusal(path)
    assert "upgrade veilcube" in refusal(path)


@pytest.mark.parametrize("version", [0, -1, True, 1.0, "1", None, [1]])
def test_a_manifest_without_a_sound_version_is_refused(path: Path, version: object) -> None:
    edit_document(path, "veil.json", lambda manifest: manifest.update(format_version=version))
    assert "has no format version" in refusal(path)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"format": "something else", "format_version": 1}', "does not say that it is one"),
        ("[1]", "does not say that it is one"),
        ("{", "not sound"),
        ("\ufeff{}", "not sound"),
        ('{"x": NaN}', "not a number"),
        ('{"x": -Infinity}', "not a number"),
        ('{"x": 1e999}', "too large"),
        ('{"x": ' + "9" * 5000 + "}", "not sound"),
        ('{"x": 1, "x": 2}', "key twice"),
        ('{"x": "\\ud800"}', "not sound"),
        ('{"x": ' + "[" * 70 + "]" * 70 + "}", "nested"),
        ("[" * 1_000_000, "nested"),
        ('{"a":' * 1_000_000, "nested"),
        (" " * (16 * 2**20 + 1), "larger than"),
    ],
)
def test_a_manifest_that_is_not_strict_json_is_refused(path: Path, text: str, reason: str) -> None:
    write_entries(path, entries_of(path) | {"veil.json": text.encode()})
    assert reason in refusal(path)


def test_a_manifest_that_is_not_utf8_is_refused(path: Path) -> None:
    write_entries(path, entries_of(path) | {"veil.json": b'{"x": "\xff"}'})
    assert "not sound" in refusal(path)


# The container


@pytest.mark.parametrize("bomb", ["veil.json", "zarr.json", CHUNK])
def test_a_compressed_entry_is_refused_before_it_is_expanded(path: Path, bomb: str) -> None:
    entries = entries_of(path) | {bomb: b" " * 50_000_000}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content, zipfile.ZIP_DEFLATED if name == bomb else zipfile.ZIP_STORED)
    assert path.stat().st_size < 200_000
    tracemalloc.start()
    assert "compressed entry" in refusal(path)
    assert tracemalloc.get_traced_memory()[1] < 2_000_000
    tracemalloc.stop()


@pytest.mark.parametrize(
    "name",
    [
        "extra.txt",
        "../outside",
        "/etc/passwd",
        f"{NAME}/c/0/0/1",
        f"{NAME}/c/0/0/00",
        f"{NAME}/",
        "measurements/1/zarr.json",
        "measurements\\0",
        "veil.json/x",
    ],
)
def test_an_entry_that_the_arrays_do_not_need_is_refused(path: Path, name: str) -> None:
    write_entries(path, entries_of(path) | {name: b"{}"})
    assert "entries" in refusal(path) or "groups" in refusal(path)


@pytest.mark.parametrize("name", ["umläut", "new\nline", "\x1b[31mred"])
def test_an_entry_name_that_is_not_plain_text_is_refused(path: Path, name: str) -> None:
    write_entries(path, entries_of(path) | {name: b""})
    assert "\x1b" not in refusal(path)


@pytest.mark.parametrize("name", ["veil.json", "zarr.json", "measurements/zarr.json", f"{NAME}/zarr.json", CHUNK])
def test_a_missing_entry_is_reported(path: Path, name: str) -> None:
    entries = entries_of(path)
    del entries[name]
    write_entries(path, entries)
    assert "cannot be opened" in refusal(path)


def test_a_chunk_under_another_key_is_refused(path: Path) -> None:
    entries = entries_of(path)
    entries[f"{NAME}/c/1/0/0"] = entries.pop(CHUNK)
    write_entries(path, entries)
    assert "some of its chunks are missing" in refusal(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_entries_of_one_name_are_refused(path: Path) -> None:
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("veil.json", b"{}")
    assert "the same name" in refusal(path)


def test_bytes_before_after_or_in_a_comment_are_refused(path: Path) -> None:
    sound = path.read_bytes()
    path.write_bytes(b"#!/bin/sh\n" + sound)
    assert "end record" in refusal(path)
    path.write_bytes(sound + b"x")
    assert "end is missing" in refusal(path)
    path.write_bytes(sound[:-2] + struct.pack("<H", 5) + b"hello")
    assert "end is missing" in refusal(path)


def records(content: bytes) -> list[int]:
    """Where the records of the central directory begin."""
    start = struct.unpack("<L", content[-6:-2])[0]
    found = []
    while content[start : start + 4] == b"PK\x01\x02":
        found.append(start)
        start += 46 + sum(struct.unpack("<HHH", content[start + 28 : start + 34]))
    return found


def patched(content: bytes, position: int, layout: str, value: int) -> bytes:
    replacement = struct.pack(layout, value)
    return content[:position] + replacement + content[position + len(replacement) :]


def test_overlapping_entries_are_refused(path: Path) -> None:
    content = path.read_bytes()
    last = records(content)[-1]
    path.write_bytes(patched(content, last + 42, "<L", 0))
    assert "overlap" in refusal(path)
    grown = patched(patched(content, records(content)[0] + 20, "<L", 500), records(content)[0] + 24, "<L", 500)
    path.write_bytes(grown)
    assert "overlap" in refusal(path)


def test_a_directory_that_hides_an_entry_is_refused(path: Path) -> None:
    content = path.read_bytes()
    first, second = records(content)[:2]
    shorter = content[:first] + content[second:]
    count = len(records(content)) - 1
    shorter = patched(patched(shorter, len(shorter) - 14, "<H", count), len(shorter) - 12, "<H", count)
    size = struct.unpack("<L", content[-10:-6])[0] - (second - first)
    path.write_bytes(patched(shorter, len(shorter) - 10, "<L", size))
    assert "overlap or leave gaps" in refusal(path)


def test_bytes_between_the_entries_and_the_directory_are_refused(path: Path) -> None:
    content = path.read_bytes()
    start = records(content)[0]
    grown = content[:start] + b"hidden" + content[start:]
    path.write_bytes(patched(grown, len(grown) - 6, "<L", start + len(b"hidden")))
    assert "do not fill the file" in refusal(path)


def test_bytes_after_the_last_record_of_the_directory_are_refused(path: Path) -> None:
    content = path.read_bytes()
    grown = content[:-22] + b"hidden" + content[-22:]
    size = struct.unpack("<L", content[-10:-6])[0]
    path.write_bytes(patched(grown, len(grown) - 10, "<L", size + len(b"hidden")))
    assert "do not fill the file" in refusal(path)


def test_extra_fields_are_refused(path: Path) -> None:
    entries = entries_of(path)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in entries.items():
            info = zipfile.ZipInfo(name)
            info.extra = struct.pack("<HHL", 0x5455, 4, 0)
            archive.writestr(info, content)
    assert "extra fields" in refusal(path)


@pytest.mark.parametrize(
    ("offset", "layout", "value"),
    [(8, "<H", 1), (8, "<H", 8), (10, "<H", 99), (32, "<H", 4), (34, "<H", 1), (30, "<H", 9), (28, "<H", 60_000)],
    ids=["encrypted", "late sizes", "method", "comment", "disk", "extra", "name"],
)
def test_a_directory_record_of_another_kind_of_zip_is_refused(path: Path, offset: int, layout: str, value: int) -> None:
    content = path.read_bytes()
    for record in records(content):
        path.write_bytes(patched(content, record + offset, layout, value))
        assert "cannot be opened" in refusal(path)


def test_a_local_header_that_contradicts_the_directory_is_refused(path: Path) -> None:
    content = path.read_bytes()
    for record in records(content):
        (header,) = struct.unpack("<L", content[record + 42 : record + 46])
        for position in (0, 6, 8, 14, 18, 22, 26, 28, 30):
            path.write_bytes(patched(content, header + position, "<B", content[header + position] ^ 1))
            assert "cannot be opened" in refusal(path)


def test_a_directory_that_claims_too_much_is_refused(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(patched(patched(content, len(content) - 14, "<H", 0xFFFF), len(content) - 12, "<H", 0xFFFF))
    assert "cut short" in refusal(path)
    path.write_bytes(patched(content, len(content) - 10, "<L", 0xFFFF_FFFF))
    assert "end record is damaged" in refusal(path)
    end64 = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, 2**60, 2**60, len(content) - 22, 0)
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, len(content) - 22, 1)
    path.write_bytes(content[:-22] + end64 + locator + content[-22:])
    assert "more than 65,535 entries" in refusal(path)
