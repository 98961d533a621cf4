"""The ``.veil`` file: one zip with ``veil.json`` (the manifest) and the released arrays as Zarr v3.

Reading treats the file as hostile: it runs no code, writes nothing to disk, and checks every size against the file and
against a memory limit before memory is taken. Whatever is wrong with a file is a ``ReleaseFileError``.
"""

import os
import re
import stat
import zipfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from veilcube.errors import ReleaseFileError
from veilcube.record.sealed_zip import MAX_ENTRIES, Entry, add_entry, read_directory, read_entry
from veilcube.record.strict_json import MAX_JSON_BYTES, JsonValue, dump_json, parse_json
from veilcube.record.zarr_format import (
    DOCUMENT_NAME,
    ArrayLayout,
    Index,
    decode_chunk,
    encode_chunk,
    metadata_documents,
    parse_array_document,
    plan_estimates,
    plan_layout,
    plan_widest_layout,
)
from veilcube.system import Floats, atomic_file, available_memory, format_bytes

FORMAT = "veilcube-release"
# 2 has tables for other programs beside what was measured; 3 has known facts that its answers obey, which no program
# may leave out. A file is written as the first version that has what it holds.
FORMAT_VERSION = 3
MANIFEST_NAME = "veil.json"
KNOWN_FACTS = "known_facts"

_OWN_KEYS = {"format", "format_version", "tables"}
_ESTIMATES = "cells"
_TABLE_NAME = re.compile(r"tables/[A-Za-z0-9_~-]{1,100}\.csv")
_SHARE_OF_MEMORY = 0.8
_WORKERS = min(4, os.cpu_count() or 1)
_CHUNKS_AHEAD = 2 * _WORKERS  # bounds the memory in flight: each is at most a chunk and its compressed form

Shape: TypeAlias = tuple[int, ...]
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@dataclass(frozen=True, eq=False)
class Archive:
    """What a release file holds: the manifest as it was given, and the arrays by name with the names of their axes."""

    manifest: dict[str, JsonValue]
    arrays: dict[str, NDArray[np.int64]]
    dimensions: dict[str, tuple[str, ...]]


@dataclass(frozen=True, eq=False)
class OtherReadings:
    """What a file holds for other programs, worked out from what was measured; veilcube itself never reads it.

    ``estimates`` are arrays over the cells, by their short names, with the names of their axes and what stands beside
    them; ``tables`` are CSV texts by the names of their entries.
    """

    estimates: Mapping[str, Floats]
    axes: Sequence[str]
    beside: Mapping[str, JsonValue]
    tables: Mapping[str, bytes]

    @property
    def arrays(self) -> dict[str, Floats]:
        """The arrays by the names of their entries."""
        return {f"{_ESTIMATES}/{name}": values for name, values in self.estimates.items()}


def write_archive(
    path: Path,
    manifest: Mapping[str, object],
    arrays: Mapping[str, NDArray[np.integer]],
    *,
    dimensions: Mapping[str, Sequence[str]],
    readings: OtherReadings | None = None,
) -> None:
    """Save ``manifest`` and ``arrays`` as one file, whole or not at all.

    ``arrays`` maps names such as ``measurements/0/values`` to integer arrays of any shape and ``dimensions`` the same
    names to the names of their axes. ``manifest`` is anything that JSON can express, but its keys ``format`` and
    ``format_version`` belong to this module. Equal content gives equal bytes. Raises ``ReleaseFileError`` and leaves an
    older file at ``path`` as it was.
    """
    layouts = _plan_layouts(arrays, dimensions, plan_layout)
    every: dict[str, NDArray[np.integer] | Floats] = dict(arrays)
    if readings is not None:
        layouts |= {name: plan_estimates(values, readings.axes) for name, values in readings.arrays.items()}
        every |= readings.arrays
    documents = _encode_documents(manifest, layouts, readings)
    with (
        atomic_file(path) as stream,
        ThreadPoolExecutor(_WORKERS) as pool,
        zipfile.ZipFile(stream, "w") as archive,
    ):
        for name, content in documents.items():
            add_entry(archive, name, content)
        for name, chunk in _map_in_order(pool, partial(_encode, every), _chunk_places(layouts)):
            add_entry(archive, name, chunk)


def require_writable(
    manifest: Mapping[str, object], shapes: Mapping[str, Shape], *, dimensions: Mapping[str, Sequence[str]]
) -> None:
    """Raise the ``ReleaseFileError`` that ``write_archive`` would raise for this manifest and any such arrays."""
    _encode_documents(manifest, _plan_layouts(shapes, dimensions, plan_widest_layout))


def read_archive(
    path: Path,
    *,
    memory_limit: int | None = None,
    expected: Callable[[dict[str, JsonValue]], Mapping[str, Shape]] | None = None,
) -> Archive:
    """Read a release file that may come from anyone, into int64 arrays.

    The arrays may take ``memory_limit`` bytes together; the default is most of the memory that is available.
    ``expected`` tells from the manifest which arrays of which shapes belong to it; a file with others is refused before
    any of them is decoded. Raises ``ReleaseFileError`` if the file is missing, damaged, too large, from a newer
    version, or not a release.
    """
    with _opened(path) as descriptor:
        try:
            entries = read_directory(descriptor)
            manifest, version, tables = _read_manifest(descriptor, entries)
            if version > FORMAT_VERSION:
                raise ReleaseFileError(
                    f"{path} has release format {version}, but this veilcube reads formats up to {FORMAT_VERSION}; "
                    "upgrade veilcube to open it"
                )
            shapes = None if expected is None else expected(manifest)
            layouts = _read_layouts(descriptor, entries, tables, has_estimates=version > 1)
            if shapes is not None and shapes != {name: layout.shape for name, layout in layouts.items()}:
                raise ValueError("its arrays are not those that its measurements call for")
            _check_memory(path, layouts, memory_limit)
            arrays = _read_arrays(descriptor, entries, layouts)
        except ValueError as error:
            raise ReleaseFileError(
                f"{path} cannot be opened as a release because {error}; ask for a new copy of the file"
            ) from error
        except MemoryError as error:
            raise ReleaseFileError(
                f"{path} needs more memory than there is; close other programs or open it on a larger machine"
            ) from error
    return Archive(manifest, arrays, {name: layout.dimensions for name, layout in layouts.items()})


@dataclass(frozen=True)
class _ChunkPlace:
    """Which entry of the file holds which part of which array."""

    entry_name: str
    array_name: str
    layout: ArrayLayout
    index: Index


def _chunk_places(layouts: Mapping[str, ArrayLayout]) -> Iterator[_ChunkPlace]:
    for name, layout in layouts.items():
        for key, index in layout.chunks():
            yield _ChunkPlace(f"{name}/{key}", name, layout, index)


def _plan_layouts(
    arrays: Mapping[str, _Item],
    dimensions: Mapping[str, Sequence[str]],
    plan: Callable[[_Item, Sequence[str]], ArrayLayout],
) -> dict[str, ArrayLayout]:
    if arrays.keys() != dimensions.keys():
        raise ReleaseFileError("the arrays and the names of their axes do not match; give both for each array")
    layouts = {}
    for name, values in arrays.items():
        try:
            layouts[name] = plan(values, dimensions[name])
        except ValueError as error:
            raise ReleaseFileError(f"the array {name!r} cannot be saved because {error}; mend it first") from error
    return layouts


def _encode_documents(
    manifest: Mapping[str, object], layouts: Mapping[str, ArrayLayout], readings: OtherReadings | None = None
) -> dict[str, bytes]:
    if manifest.keys() & _OWN_KEYS:
        raise ReleaseFileError(f"the manifest may not set {', '.join(sorted(_OWN_KEYS))}; leave them to write_archive")
    head: dict[str, object] = {"format": FORMAT, "format_version": 1}
    if readings is not None:
        head |= {"format_version": 2, "tables": list(readings.tables)}
    if KNOWN_FACTS in manifest:
        head["format_version"] = 3
    attributes: dict[str, JsonValue] = {} if readings is None else {_ESTIMATES: readings.beside}
    try:
        documents = {MANIFEST_NAME: dump_json({**head, **manifest})}
        documents |= {name: dump_json(part) for name, part in metadata_documents(layouts, attributes).items()}
        documents |= {} if readings is None else readings.tables
    except ValueError as error:
        raise ReleaseFileError(f"the release cannot be described in its file because {error}; mend it first") from error
    if len(documents) + sum(layout.chunk_count for layout in layouts.values()) > MAX_ENTRIES:
        raise ReleaseFileError("the release has more parts than one file can hold; release fewer or smaller arrays")
    return documents


def _encode(arrays: Mapping[str, NDArray[np.integer] | Floats], place: _ChunkPlace) -> tuple[str, memoryview]:
    return place.entry_name, encode_chunk(arrays[place.array_name], place.layout, place.index)


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    """Open a regular file for reading, or say why not."""
    try:
        # Non-blocking, because opening a named pipe would otherwise wait for ever for its other end.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise ReleaseFileError(f"there is no release file at {path}; check its name") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ReleaseFileError(f"{str(path)!r} cannot be read ({reason}); check its name and permissions") from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ReleaseFileError(f"{path} is a folder or a device and not a release file; name a .veil file")
        yield descriptor
    finally:
        os.close(descriptor)


def _read_manifest(descriptor: int, entries: Mapping[str, Entry]) -> tuple[dict[str, JsonValue], int, list[str]]:
    """Read the caller's part of the manifest, the format version, and the names of the tables for other programs."""
    manifest = _read_document(descriptor, entries, MANIFEST_NAME)
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ValueError(f"its {MANIFEST_NAME} does not say that it is one")
    version = manifest.get("format_version")
    if type(version) is not int or version < 1:
        raise ValueError(f"its {MANIFEST_NAME} has no format version")
    if (KNOWN_FACTS in manifest) != (version == 3) and version <= FORMAT_VERSION:
        raise ValueError(f"its {MANIFEST_NAME} has known facts in a format that has none, or none where they belong")
    tables = manifest.get("tables", []) if version > 1 else []
    if not isinstance(tables, list) or not all(
        isinstance(name, str) and _TABLE_NAME.fullmatch(name) for name in tables
    ):
        raise ValueError(f"its {MANIFEST_NAME} does not list its tables")
    return {key: value for key, value in manifest.items() if key not in _OWN_KEYS}, version, tables


def _read_layouts(
    descriptor: int, entries: Mapping[str, Entry], tables: Sequence[str], *, has_estimates: bool
) -> dict[str, ArrayLayout]:
    """Read the layout of each measured array, and check that the file has exactly the entries that its arrays call for.

    The arrays and tables for other programs must be there as they are announced; what they say is not looked at.
    """
    layouts: dict[str, ArrayLayout] = {}
    documents: dict[str, JsonValue] = {}
    attributes: dict[str, JsonValue] = {}
    for entry_name in entries:
        array_name, _, last = entry_name.rpartition("/")
        if last == DOCUMENT_NAME:
            document = _read_document(descriptor, entries, entry_name)
            documents[entry_name] = document
            if isinstance(document, dict) and document.get("node_type") == "array":
                layouts[array_name] = parse_array_document(document)
            elif isinstance(document, dict) and array_name == _ESTIMATES and has_estimates:
                attributes[_ESTIMATES] = document.get("attributes", {})
    if documents != metadata_documents(layouts, attributes):
        raise ValueError("its groups are not those of its arrays")
    # Counted before they are named: a shape may call for more chunks than there is memory for their names.
    many = sum(layout.chunk_count for layout in layouts.values())
    if 1 + len(documents) + len(set(tables)) + many != len(entries):
        raise ValueError("it has more or fewer entries than its arrays need")
    if any(place.entry_name not in entries for place in _chunk_places(layouts)):
        raise ValueError("some of its chunks are missing")
    if any(name not in entries for name in tables):
        raise ValueError("some of its tables are missing")
    measured = {name: layout for name, layout in layouts.items() if not name.startswith(f"{_ESTIMATES}/")}
    estimated = [layout for name, layout in layouts.items() if name not in measured]
    if (estimated and not has_estimates) or any(layout.is_estimate for layout in measured.values()):
        raise ValueError("one of its arrays has estimates where measurements belong")
    if not all(layout.is_estimate for layout in estimated):
        raise ValueError("one of its arrays has whole numbers where estimates belong")
    return measured


def _read_document(descriptor: int, entries: Mapping[str, Entry], name: str) -> JsonValue:
    if name not in entries:
        raise ValueError(f"it has no {name}")
    raw = read_entry(descriptor, entries[name], max_bytes=MAX_JSON_BYTES)
    try:
        return parse_json(raw)
    except ValueError as error:
        raise ValueError(f"its {name} is not sound ({error})") from error


def _check_memory(path: Path, layouts: Mapping[str, ArrayLayout], memory_limit: int | None) -> None:
    limit = int(_SHARE_OF_MEMORY * available_memory()) if memory_limit is None else memory_limit
    needed = sum(layout.cells for layout in layouts.values()) * np.dtype(np.int64).itemsize
    if needed > limit:
        raise ReleaseFileError(
            f"{path} needs {format_bytes(needed)} of memory, but {format_bytes(limit)} may be used; "
            "open it on a machine with more memory or raise memory_limit"
        )


def _read_arrays(
    descriptor: int, entries: Mapping[str, Entry], layouts: Mapping[str, ArrayLayout]
) -> dict[str, NDArray[np.int64]]:
    arrays = {name: np.empty(layout.shape, np.int64) for name, layout in layouts.items()}

    def decode(place: _ChunkPlace) -> None:
        entry = entries[place.entry_name]
        stored = read_entry(descriptor, entry, max_bytes=place.layout.max_stored_bytes)
        decode_chunk(stored, place.layout, place.index, arrays[place.array_name])

    with ThreadPoolExecutor(_WORKERS) as pool:
        for _ in _map_in_order(pool, decode, _chunk_places(layouts)):
            pass
    return arrays


def _map_in_order(
    pool: ThreadPoolExecutor, task: Callable[[_Item], _Result], items: Iterable[_Item]
) -> Iterator[_Result]:
    """Like ``pool.map``, but with only a few results waiting at any time, so that memory stays small."""
    waiting: deque[Future[_Result]] = deque()
    for item in items:
        waiting.append(pool.submit(task, item))
        if len(waiting) > _CHUNKS_AHEAD:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()
