"""Sound and unsound release files for the tests of the reader."""

import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from veilcube.errors import ReleaseFileError
from veilcube.record.archive import Archive, read_archive, write_archive
from veilcube.record.sealed_zip import add_entry

NAME = "measurements/0/values"
CHUNK = f"{NAME}/c/0/0/0"  # the only chunk of the small file
DIMENSIONS = ["age", "sex", "region"]
VALUES: NDArray[np.int64] = (np.arange(2 * 3 * 4).reshape(2, 3, 4) * 37) % 101 - 50
MANIFEST = {"schema": {"attribute": [{"name": "age"}]}, "privacy": {"epsilon": "1/2"}, "text": "Größe ∞"}


def write_small(path: Path) -> Path:
    """Save a small sound file."""
    write_archive(path, MANIFEST, {NAME: VALUES}, dimensions={NAME: DIMENSIONS})
    return path


def is_small(archive: Archive) -> bool:
    """Whether what was read is exactly what ``write_small`` saved."""
    values = archive.arrays.get(NAME)
    return (
        archive.manifest == MANIFEST
        and archive.arrays.keys() == {NAME}
        and archive.dimensions == {NAME: tuple(DIMENSIONS)}
        and values is not None
        and values.dtype == np.int64
        and np.array_equal(values, VALUES)
    )


def refusal(path: Path, *, memory_limit: int | None = None) -> str:
    """The one sentence with which the file is refused; fails if it is not."""
    with pytest.raises(ReleaseFileError) as caught:
        read_archive(path, memory_limit=memory_limit)
    message = str(caught.value)
    assert "\n" not in message
    return message


def entries_of(path: Path) -> dict[str, bytes]:
    """The content of every entry, in the order of the file."""
    with zipfile.ZipFile(path) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def write_entries(path: Path, entries: Mapping[str, bytes]) -> None:
    """Write a file that is a sound container, whatever its entries hold."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in entries.items():
            add_entry(archive, name, content)


def edit_document(path: Path, name: str, edit: Callable[[dict], object]) -> None:  # type: ignore[type-arg]
    """Change one JSON entry of a file, and leave everything else as it was."""
    entries = entries_of(path)
    document = json.loads(entries[name])
    edit(document)
    write_entries(path, entries | {name: json.dumps(document).encode()})


def edit_array_document(path: Path, edit: Callable[[dict], object]) -> None:  # type: ignore[type-arg]
    """Change the metadata of the array wherever a file repeats it: only its meaning can then be at fault."""
    entries = entries_of(path)
    for name, content in entries.items():
        document = json.loads(content) if name.endswith("zarr.json") else {}
        if document.get("node_type") == "array":
            edit(document)
        for node in document.get("consolidated_metadata", {}).get("metadata", {}).values():
            if node["node_type"] == "array":
                edit(node)
        if document:
            entries[name] = json.dumps(document).encode()
    write_entries(path, entries)


def save_for_ever(path: Path) -> None:
    """Save ever new releases over one another, each shifted by its number; for a process that will be killed."""
    for number in range(10**9):
        write_archive(path, {"number": number}, {NAME: _incompressible() + number}, dimensions={NAME: ["a", "b"]})


def whole_save(path: Path) -> int:
    """The number that ``save_for_ever`` saved last; fails if the file is not one whole save."""
    archive = read_archive(path)
    number = archive.manifest["number"]
    assert isinstance(number, int)
    np.testing.assert_array_equal(archive.arrays[NAME] - number, _incompressible())
    return number


def _incompressible() -> NDArray[np.int64]:
    return np.random.default_rng(7).integers(-(2**60), 2**60, size=(800, 1000))
