"""The ``.veil`` file: one zip with ``veil.json`` (the manifest) and the released arrays as Zarr v3.

Reading treats the file as hostile: it runs no code, writes nothing to disk, and checks every size against the file and
against a memory limit before memory is taken. Whatever is wrong with a file is a ``ReleaseFileError``.
"""

import os
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
    plan_layout,
    plan_widest_layout,
)
from veilcube.system import atomic_file, available_memory, format_bytes

FORMAT = "veilcube-release"
FORMAT_VERSION = 1
MANIFEST_NAME = "veil.json"

_OWN_KEYS = {"format", "format_version"}
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


def write_archive(
    path: Path,
    manifest: Mapping[str, object],
    arrays: Mapping[str, NDArray[np.integer]],
    *,
    dimensions: Mapping[str, Sequence[str]],
) -> None:
    """Save ``manifest`` and ``arrays`` as one file, whole or not at all.

    ``arrays`` maps names such as ``measurements/0/values`` to integer arrays of any shape and ``dimensions`` the same
    names to the names of their axes. ``manifest`` is anything that JSON can express, but its keys ``format`` and
    ``format_version`` belong to this module. Equal content gives equal bytes. Raises ``ReleaseFileError`` and leaves an
    older file at ``path`` as it was.
    """
    layouts = _plan_layouts(arrays, dimensions, plan_layout)
    documents = _encode_documents(manifest, layouts)
    with (
        atomic_file(path) as stream,
        ThreadPoolExecutor(_WORKERS) as pool,
        zipfile.ZipFile(stream, "w") as archive,
    ):
        for name, content in documents.items():
            add_entry(archive, name, content)
        for name, chunk in _map_in_order(pool, partial(_encode, arrays), _chunk_places(layouts)):
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
            manifest, version = _read_manifest(descriptor, entries)
            if version > FORMAT_VERSION:
                raise ReleaseFileError(
                    f"{path} has release format {version}, but this veilcube reads formats up to {FORMAT_VERSION}; "
                    "upgrade veilcube to open it"
                )
            shapes = None if expected is None else expected(manifest)
            layouts = _read_layouts(descriptor, entries)
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


def _encode_documents(manifest: Mapping[str, object], layouts: Mapping[str, ArrayLayout]) -> dict[str, bytes]:
    if manifest.keys() & _OWN_KEYS:
        raise ReleaseFileError("the manifest may not set 'format' or 'format_version'; leave them to write_archive")
    try:
        documents = {MANIFEST_NAME: dump_json({"format": FORMAT, "format_version": FORMAT_VERSION, **manifest})}
        documents |= {name: dump_json(document) for name, document in metadata_documents(layouts).items()}
    except ValueError as error:
        raise ReleaseFileError(f"the release cannot be described in its file because {error}; mend it first") from error
    if len(documents) + sum(layout.chunk_count for layout in layouts.values()) > MAX_ENTRIES:
        raise ReleaseFileError("the release has more parts than one file can hold; release fewer or smaller arrays")
    return documents


def _encode(arrays: Mapping[str, NDArray[np.integer]], place: _ChunkPlace) -> tuple[str, memoryview]:
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


def _read_manifest(descriptor: int, entries: Mapping[str, Entry]) -> tuple[dict[str, JsonValue], int]:
    """Read the caller's part of the manifest and the format version."""
    manifest = _read_document(descriptor, entries, MANIFEST_NAME)
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ValueError(f"its {MANIFEST_NAME} does not say that it is one")
    version = manifest.get("format_version")
    if type(version) is not int or version < 1:
        raise ValueError(f"its {MANIFEST_NAME} has no format version")
    return {key: value for key, value in manifest.items() if key not in _OWN_KEYS}, version


def _read_layouts(descriptor: int, entries: Mapping[str, Entry]) -> dict[str, ArrayLayout]:
    """Read the layout of each array, and check that the file has exactly the entries that they call for."""
    layouts: dict[str, ArrayLayout] = {}
    documents: dict[str, JsonValue] = {}
    for entry_name in entries:
        array_name, _, last = entry_name.rpartition("/")
        if last == DOCUMENT_NAME:
            document = _read_document(descriptor, entries, entry_name)
            documents[entry_name] = document
            if isinstance(document, dict) and document.get("node_type") == "array":
                layouts[array_name] = parse_array_document(document)
    if documents != metadata_documents(layouts):
        raise ValueError("its groups are not those of its arrays")
    # Counted before they are named: a shape may call for more chunks than there is memory for their names.
    if 1 + len(documents) + sum(layout.chunk_count for layout in layouts.values()) != len(entries):
        raise ValueError("it has more or fewer entries than its arrays need")
    if any(place.entry_name not in entries for place in _chunk_places(layouts)):
        raise ValueError("some of its chunks are missing")
    return layouts


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
