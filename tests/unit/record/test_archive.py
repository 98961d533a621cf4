"""What is written to a release file is what is read from it, by veilcube and by other programs."""

import json
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import xarray as xr
import zarr
from numpy.typing import NDArray

from support.veil_files import DIMENSIONS, MANIFEST, NAME, VALUES, entries_of, is_small, write_small
from veilcube.errors import ReleaseFileError
from veilcube.record import archive as archive_module
from veilcube.record.archive import read_archive, write_archive
from veilcube.record.strict_json import MAX_JSON_BYTES, MAX_JSON_DEPTH

LIMITS = np.iinfo(np.int64)


def round_trip(path: Path, values: NDArray[np.integer]) -> NDArray[np.int64]:
    write_archive(path, {}, {NAME: values}, dimensions={NAME: [f"axis {i}" for i in range(values.ndim)]})
    return read_archive(path).arrays[NAME]


def stored_type(path: Path) -> str:
    return str(json.loads(entries_of(path)[f"{NAME}/zarr.json"])["data_type"])


def test_a_file_reads_back_as_it_was_written(tmp_path: Path) -> None:
    assert is_small(read_archive(write_small(tmp_path / "small.veil")))


@pytest.mark.parametrize("shape", [(), (1,), (24,), (1, 24, 1), (2, 1, 12), (2, 3, 4), (1,) * 32])
def test_arrays_of_any_shape_read_back_as_row_major_int64(tmp_path: Path, shape: tuple[int, ...]) -> None:
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape) - 11
    found = round_trip(tmp_path / "shape.veil", values)
    assert found.dtype == np.int64
    assert found.flags.c_contiguous
    assert found.shape == shape
    np.testing.assert_array_equal(found, values)


@pytest.mark.parametrize(
    ("lowest", "highest", "expected"),
    [
        (0, 0, "int8"),
        (-128, 127, "int8"),
        (-128, 128, "int16"),
        (-129, 0, "int16"),
        (-(2**15), 2**15 - 1, "int16"),
        (0, 2**15, "int32"),
        (-(2**31), 2**31 - 1, "int32"),
        (-(2**31) - 1, 0, "int64"),
        (LIMITS.min, LIMITS.max, "int64"),
    ],
)
def test_numbers_are_stored_in_the_narrowest_type_that_holds_them(
    tmp_path: Path, lowest: int, highest: int, expected: str
) -> None:
    values = np.array([lowest, 0, highest])
    np.testing.assert_array_equal(round_trip(tmp_path / "narrow.veil", values), values)
    assert stored_type(tmp_path / "narrow.veil") == expected


@pytest.mark.parametrize("shape", [(7, 150_001), (3, 5, 80_021), (1_050_001,), (2, 1_050_001), (1_050_001, 1, 2)])
def test_arrays_of_many_chunks_read_back_exactly(tmp_path: Path, shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(3).integers(LIMITS.min, LIMITS.max, size=shape, endpoint=True)
    np.testing.assert_array_equal(round_trip(tmp_path / "many.veil", values), values)
    assert sum(name.startswith(f"{NAME}/c/") for name in entries_of(tmp_path / "many.veil")) > 1


@pytest.mark.parametrize(
    "values",
    [
        np.arange(60).reshape(3, 4, 5).transpose(2, 0, 1)[::-1, :, ::2],
        np.arange(10, dtype=">i4"),
        np.arange(10, dtype=np.uint64),
        np.broadcast_to(np.int16(-300), (4, 5)),
        np.asfortranarray(np.arange(12).reshape(3, 4)),
    ],
    ids=["strided", "big-endian", "unsigned", "broadcast", "column-major"],
)
def test_integer_arrays_in_any_memory_order_are_taken(tmp_path: Path, values: NDArray[np.integer]) -> None:
    np.testing.assert_array_equal(round_trip(tmp_path / "order.veil", values), values)


def test_several_arrays_keep_their_names_and_axes(tmp_path: Path) -> None:
    arrays = {f"measurements/{i}/values": np.full((i + 1,), i) for i in range(12)}
    write_archive(tmp_path / "several.veil", {}, arrays, dimensions={name: [f"d{name}"] for name in arrays})
    found = read_archive(tmp_path / "several.veil")
    assert found.dimensions == {name: (f"d{name}",) for name in arrays}
    for name, values in arrays.items():
        np.testing.assert_array_equal(found.arrays[name], values)


def test_equal_content_gives_equal_bytes(tmp_path: Path) -> None:
    first, second = write_small(tmp_path / "first.veil"), write_small(tmp_path / "second.veil")
    assert first.read_bytes() == second.read_bytes()


def test_a_file_beyond_the_32_bit_limits_of_zip_reads_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 2500)  # as if 2 GiB had been passed after 2,500 bytes
    path = write_small(tmp_path / "large.veil")
    assert b"PK\x06\x06" in path.read_bytes(), "the file should have 64-bit records"
    monkeypatch.undo()
    assert is_small(read_archive(path))


# Reading without veilcube


def test_zarr_reads_the_array_and_its_axes_without_a_warning(tmp_path: Path) -> None:
    path = write_small(tmp_path / "small.veil")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with zarr.storage.ZipStore(path, mode="r") as store:
            array = zarr.open_group(store, mode="r")[NAME]
            assert isinstance(array, zarr.Array)
            np.testing.assert_array_equal(np.asarray(array[...]), VALUES)
            assert array.metadata.dimension_names == tuple(DIMENSIONS)  # type: ignore[union-attr]


def test_zarr_reads_an_array_of_many_chunks(tmp_path: Path) -> None:
    values = np.random.default_rng(4).integers(LIMITS.min, LIMITS.max, size=(7, 150_001), endpoint=True)
    write_archive(tmp_path / "many.veil", {}, {NAME: values}, dimensions={NAME: ["a", "b"]})
    with zarr.storage.ZipStore(tmp_path / "many.veil", mode="r") as store:
        np.testing.assert_array_equal(np.asarray(zarr.open_array(store, path=NAME, mode="r")[...]), values)


def test_xarray_opens_the_file_without_a_warning(tmp_path: Path) -> None:
    path = write_small(tmp_path / "small.veil")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with zarr.storage.ZipStore(path, mode="r") as store:
            dataset = xr.open_zarr(store, group="measurements/0", chunks=None)
            assert dataset["values"].dims == tuple(DIMENSIONS)
            np.testing.assert_array_equal(dataset["values"].to_numpy(), VALUES)
            tree = xr.open_datatree(store, engine="zarr", chunks=None)
            np.testing.assert_array_equal(tree[NAME].to_numpy(), VALUES)
            assert xr.open_zarr(store, chunks=None).sizes == {}


def test_zip_and_zstd_alone_are_enough_to_read_a_file(tmp_path: Path) -> None:
    entries = entries_of(write_small(tmp_path / "small.veil"))
    raw = pa.decompress(entries[f"{NAME}/c/0/0/0"], decompressed_size=VALUES.size, codec="zstd", asbytes=True)
    np.testing.assert_array_equal(np.frombuffer(raw, "i1").reshape(VALUES.shape), VALUES)
    assert json.loads(entries["veil.json"]) == {"format": "veilcube-release", "format_version": 1, **MANIFEST}


def test_the_metadata_repeats_in_each_group_what_it_holds(tmp_path: Path) -> None:
    entries = entries_of(write_small(tmp_path / "small.veil"))
    array = json.loads(entries[f"{NAME}/zarr.json"])
    for group, inside in (("", NAME), ("measurements/", "0/values"), ("measurements/0/", "values")):
        document = json.loads(entries[f"{group}zarr.json"])
        assert document["consolidated_metadata"]["metadata"][inside] == array


# What cannot be saved is refused before anything is written


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (np.zeros(3), "only integers"),
        (np.zeros(3, bool), "only integers"),
        (np.array(["a"]), "only integers"),
        (np.array([1, None]), "only integers"),
        (np.zeros((3, 0), int), "no cells"),
        (np.array([2**63], np.uint64), "beyond the range of int64"),
        (np.zeros((1,) * 33, int), "more than 32 axes"),
    ],
)
def test_an_array_that_has_no_place_in_a_file_is_refused(tmp_path: Path, values: NDArray, reason: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(ReleaseFileError, match=reason):
        round_trip(tmp_path / "bad.veil", values)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("names", [[], ["a"], ["a", "a"], ["a", "b", "c"]])
def test_axis_names_that_do_not_fit_are_refused(tmp_path: Path, names: list[str]) -> None:
    with pytest.raises(ReleaseFileError, match="as many different names"):
        write_archive(tmp_path / "bad.veil", {}, {"x": np.zeros((2, 2), int)}, dimensions={"x": names})


def test_an_array_without_axis_names_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReleaseFileError, match="give both for each array"):
        write_archive(tmp_path / "bad.veil", {}, {"x": np.zeros(2, int)}, dimensions={})


@pytest.mark.parametrize("name", ["", "/x", "x/", "a//b", "..", "../x", "a/../b", "X", "a b", "__x", "x\n", "a" * 65])
def test_an_array_name_that_could_mislead_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ReleaseFileError, match="lower-case words"):
        write_archive(tmp_path / "bad.veil", {}, {name: np.zeros(2, int)}, dimensions={name: ["a"]})


def test_an_array_inside_another_is_refused(tmp_path: Path) -> None:
    arrays = {"x": np.zeros(2, int), "x/y": np.zeros(2, int)}
    with pytest.raises(ReleaseFileError, match="inside another"):
        write_archive(tmp_path / "bad.veil", {}, arrays, dimensions={"x": ["a"], "x/y": ["a"]})


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("manifest", "reason"),
    [
        ({"format": "mine"}, "leave them to write_archive"),
        ({"format_version": 1}, "leave them to write_archive"),
        ({"x": float("nan")}, "JSON"),
        ({"x": object()}, "JSON cannot express"),
        ({"x": "\ud800"}, "cannot be described"),
        ({"x": nested(MAX_JSON_DEPTH)}, "nested more than"),
        ({"x": nested(100_000)}, "JSON cannot express"),
        ({"x": "y" * MAX_JSON_BYTES}, "longer than"),
        ({1: "a", "1": "b"}, "key twice"),
    ],
)
def test_a_manifest_that_could_not_be_read_back_is_refused(tmp_path: Path, manifest: dict, reason: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(ReleaseFileError, match=reason):
        write_archive(tmp_path / "bad.veil", manifest, {}, dimensions={})
    assert list(tmp_path.iterdir()) == []


def test_the_deepest_allowed_manifest_reads_back(tmp_path: Path) -> None:
    manifest = {"x": nested(MAX_JSON_DEPTH - 1)}
    write_archive(tmp_path / "deep.veil", manifest, {}, dimensions={})
    assert read_archive(tmp_path / "deep.veil").manifest == manifest


def test_a_release_of_more_chunks_than_a_file_may_have_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive_module, "MAX_ENTRIES", 5)
    with pytest.raises(ReleaseFileError, match="more parts than one file"):
        write_small(tmp_path / "bad.veil")
    assert list(tmp_path.iterdir()) == []
