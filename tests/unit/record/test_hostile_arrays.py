"""The arrays of a release file from anyone: their metadata and chunks are checked before memory is taken for them."""

import os
import struct
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from support.veil_files import (
    CHUNK,
    NAME,
    VALUES,
    edit_array_document,
    edit_document,
    entries_of,
    is_small,
    refusal,
    write_entries,
    write_small,
)
from veilcube.record import archive as archive_module
from veilcube.record.archive import read_archive, write_archive

ZSTD = pa.Codec("zstd", compression_level=1)
NOT_ONE_CHUNK = "damaged or expands to another size"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_small(tmp_path / "small.veil")


def set_chunk_shape(document: dict, shape: list[object]) -> None:  # type: ignore[type-arg]
    document["chunk_grid"]["configuration"]["chunk_shape"] = shape


@pytest.mark.parametrize(
    "edit",
    [
        lambda document: document.update(data_type="float64"),
        lambda document: document.update(data_type="object"),
        lambda document: document.update(data_type=["int8"]),
        lambda document: document.update(data_type="uint8"),
        lambda document: document.update(shape=[2, 3]),
        lambda document: document.update(shape=[2, 3, -4]),
        lambda document: document.update(shape=[2, 3, 0]),
        lambda document: document.update(shape=[2, 3, 4.0]),
        lambda document: document.update(shape=[2, 3, True]),
        lambda document: document.update(shape=[2, 3, 10**400]),
        lambda document: document.update(shape="234"),
        lambda document: set_chunk_shape(document, [2, 3, 0]),
        lambda document: set_chunk_shape(document, [2, 3, 5]),
        lambda document: set_chunk_shape(document, [2, 3, "4"]),
        lambda document: document.update(dimension_names=["a", "b"]),
        lambda document: document.update(dimension_names=["a", "b", None]),
        lambda document: document.update(fill_value=7),
        lambda document: document.update(zarr_format=2),
        lambda document: document.update(storage_transformers=[{"name": "run", "configuration": {}}]),
        lambda document: document.update(codecs=[]),
        lambda document: document["codecs"].append({"name": "pickle", "configuration": {}}),
        lambda document: document["codecs"][0].update(name="numcodecs.pickle"),
        lambda document: document["codecs"][1].update(name="blosc"),
        lambda document: document["codecs"][0]["configuration"].update(endian="big"),
        lambda document: document["chunk_grid"].update(name="rectilinear"),
        lambda document: document["chunk_key_encoding"]["configuration"].update(separator="."),
        lambda document: document.pop("attributes"),
    ],
)
def test_metadata_that_veilcube_does_not_write_is_refused(path: Path, edit: Callable[[dict], object]) -> None:  # type: ignore[type-arg]
    edit_array_document(path, edit)
    message = refusal(path)
    assert "one of its arrays" in message


def test_another_compression_level_is_read(path: Path) -> None:
    edit_array_document(path, lambda document: document["codecs"][1]["configuration"].update(level=19))
    assert is_small(read_archive(path))


def test_groups_that_contradict_the_arrays_are_refused(path: Path) -> None:
    edit_document(path, "zarr.json", lambda document: document["consolidated_metadata"]["metadata"].clear())
    assert "groups" in refusal(path)


def test_a_shape_that_claims_a_million_billion_cells_takes_no_memory_or_time(path: Path) -> None:
    def claim(document: dict) -> None:  # type: ignore[type-arg]
        document["shape"] = [10**5, 10**5, 10**5]
        set_chunk_shape(document, [1, 1, 10**5])

    edit_array_document(path, claim)
    started = time.perf_counter()
    tracemalloc.start()
    assert "entries" in refusal(path)
    assert tracemalloc.get_traced_memory()[1] < 2_000_000
    tracemalloc.stop()
    assert time.perf_counter() - started < 5


def test_a_chunk_shape_that_claims_everything_at_once_is_refused(path: Path) -> None:
    def claim(document: dict) -> None:  # type: ignore[type-arg]
        document["shape"] = [10**5, 10**5, 10**5]
        set_chunk_shape(document, [10**5, 10**5, 10**5])

    edit_array_document(path, claim)
    assert "chunks larger than" in refusal(path)


def test_a_file_that_needs_more_than_the_memory_limit_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_small(read_archive(path, memory_limit=VALUES.size * 8))
    assert "needs 192 bytes of memory, but 191 bytes may be used" in refusal(path, memory_limit=191)
    monkeypatch.setattr(archive_module, "available_memory", lambda: 100)
    assert "but 80 bytes may be used" in refusal(path)


def test_a_zstd_bomb_within_its_metadata_stays_within_the_memory_limit(path: Path) -> None:
    chunk_cells, chunks = 60_000_000, 50

    def claim(document: dict) -> None:  # type: ignore[type-arg]
        document["shape"] = [1, 1, chunk_cells * chunks]
        set_chunk_shape(document, [1, 1, chunk_cells])

    edit_array_document(path, claim)
    frame = bytes(ZSTD.compress(bytes(chunk_cells)))
    write_entries(path, entries_of(path) | {f"{NAME}/c/0/0/{i}": frame for i in range(chunks)})
    assert path.stat().st_size < 2_000_000
    assert "needs 24 GB of memory, but 1 GB may be used" in refusal(path, memory_limit=10**9)


# The chunks


def zstd(content: bytes) -> bytes:
    return bytes(ZSTD.compress(content))


@pytest.mark.parametrize(
    ("chunk", "reason"),
    [
        (b"", NOT_ONE_CHUNK),
        (b"not a zstd frame at all", NOT_ONE_CHUNK),
        (zstd(bytes(VALUES.size - 1)), NOT_ONE_CHUNK),
        (zstd(bytes(VALUES.size + 1)), NOT_ONE_CHUNK),
        (zstd(bytes(5_000_000)), NOT_ONE_CHUNK),
        (zstd(bytes(VALUES.size)) + zstd(b"more"), NOT_ONE_CHUNK),
        (zstd(bytes(VALUES.size)) + b"garbage", NOT_ONE_CHUNK),
        (zstd(VALUES.astype("i1").tobytes())[:-1], NOT_ONE_CHUNK),
        (os.urandom(5000), "larger than"),
    ],
    ids=["empty", "garbage", "short", "long", "bomb", "two frames", "garbage after", "truncated", "too many bytes"],
)
def test_a_chunk_that_is_not_exactly_one_chunk_is_refused(path: Path, chunk: bytes, reason: str) -> None:
    write_entries(path, entries_of(path) | {CHUNK: chunk})
    assert reason in refusal(path)


@pytest.mark.parametrize("claimed", [0, 1, VALUES.size - 1, VALUES.size + 1, 255])
def test_a_frame_that_lies_about_its_size_is_refused(path: Path, claimed: int) -> None:
    frame = bytearray(entries_of(path)[CHUNK])
    assert frame[4] >> 5 == 1, "a frame with its content size in one byte"
    assert frame[5] == VALUES.size
    frame[5] = claimed
    write_entries(path, entries_of(path) | {CHUNK: bytes(frame)})
    assert "chunk" in refusal(path)


def test_a_frame_that_claims_an_immense_size_or_window_is_refused(path: Path) -> None:
    end_of_frame = entries_of(path)[CHUNK][6:]
    for header in (b"\xe0" + struct.pack("<Q", 2**62), b"\x00\xff", b"\xc0\xff" + struct.pack("<Q", 2**62)):
        write_entries(path, entries_of(path) | {CHUNK: b"\x28\xb5\x2f\xfd" + header + end_of_frame})
        assert "chunk" in refusal(path)


def test_a_damaged_chunk_among_many_is_found(tmp_path: Path) -> None:
    path = tmp_path / "many.veil"
    values = np.random.default_rng(1).integers(-(2**60), 2**60, size=(4, 600_000))
    write_archive(path, {}, {NAME: values}, dimensions={NAME: ["a", "b"]})
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x10
    path.write_bytes(content)
    assert "is damaged" in refusal(path)
