"""Integer arrays as Zarr v3: metadata documents, a grid of chunks, and zstd frames through pyarrow.

Only the regular grid, the default chunk keys and the codecs ``bytes`` and ``zstd`` are used, which Zarr libraries of
every language know. Why Zarr, and why these parameters: docs/decisions/0003-release-file.md.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from veilcube.record.strict_json import JsonValue
from veilcube.system import Floats

DOCUMENT_NAME = "zarr.json"
CHUNK_BYTES = 4 * 2**20
ZSTD_LEVEL = 1

_INTEGER_TYPES = ("int8", "int16", "int32", "int64")
# Estimates for other programs; nothing that was measured.
_ESTIMATE_TYPE = "float64"
_DATA_TYPES: Mapping[str, np.dtype[np.generic]] = {
    name: np.dtype(name).newbyteorder("<") for name in (*_INTEGER_TYPES, _ESTIMATE_TYPE)
}
_MAX_CHUNK_BYTES = 64 * 2**20
_MAX_AXES = 32
_MAX_SIDE = 2**63 - 1
_ARRAY_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}(/[a-z0-9][a-z0-9_-]{0,63}){0,7}")

Index = tuple[slice, ...]


@dataclass(frozen=True)
class ArrayLayout:
    """How one array is stored: its shape, the shape of its chunks, the stored data type, and the axis names."""

    shape: tuple[int, ...]
    chunk_shape: tuple[int, ...]
    data_type: str
    dimensions: tuple[str, ...]
    zstd_level: int = ZSTD_LEVEL

    @property
    def cells(self) -> int:
        """How many numbers the array has."""
        return math.prod(self.shape)

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """The stored, little-endian data type."""
        return _DATA_TYPES[self.data_type]

    @property
    def is_estimate(self) -> bool:
        """Whether it holds estimates and no whole numbers."""
        return self.data_type == _ESTIMATE_TYPE

    @cached_property
    def grid(self) -> tuple[int, ...]:
        """How many chunks there are along each axis."""
        return tuple(-(-size // chunk) for size, chunk in zip(self.shape, self.chunk_shape, strict=True))

    @property
    def chunk_count(self) -> int:
        """How many chunks there are, each an entry of the file."""
        return math.prod(self.grid)

    @property
    def chunk_bytes(self) -> int:
        """The size of every chunk before compression; chunks at the edge are padded to it."""
        return math.prod(self.chunk_shape) * self.dtype.itemsize

    @property
    def max_stored_bytes(self) -> int:
        """More than a zstd frame of one chunk can take: the incompressible case grows by less than 1/128 + 1 KiB."""
        return self.chunk_bytes + self.chunk_bytes // 128 + 1024

    def chunks(self) -> Iterator[tuple[str, Index]]:
        """The key of each chunk relative to the array, and the part of the array that it holds, in row-major order."""
        for coordinates in product(*map(range, self.grid)):
            index = tuple(
                slice(i * chunk, min((i + 1) * chunk, size))
                for i, chunk, size in zip(coordinates, self.chunk_shape, self.shape, strict=True)
            )
            yield "/".join(["c", *map(str, coordinates)]), index


def plan_layout(
    values: NDArray[np.integer],
    dimensions: Sequence[str],
    *,
    chunk_bytes: int = CHUNK_BYTES,
    zstd_level: int = ZSTD_LEVEL,
) -> ArrayLayout:
    """Choose the narrowest data type that holds ``values`` and chunks of about ``chunk_bytes``.

    Raises ``ValueError`` with the reason if the array cannot be stored.
    """
    if not np.issubdtype(values.dtype, np.integer):
        raise ValueError(f"it holds {values.dtype} numbers where only integers are allowed")
    _check_axes(values.shape, dimensions)
    data_type = _narrowest_type(int(values.min()), int(values.max()))
    return _layout(values.shape, data_type, dimensions, chunk_bytes, zstd_level)


def plan_estimates(values: Floats, dimensions: Sequence[str]) -> ArrayLayout:
    """Choose the layout of an array of estimates."""
    _check_axes(values.shape, dimensions)
    return _layout(values.shape, _ESTIMATE_TYPE, dimensions, CHUNK_BYTES, ZSTD_LEVEL)


def _layout(
    shape: tuple[int, ...], data_type: str, dimensions: Sequence[str], chunk_bytes: int, zstd_level: int
) -> ArrayLayout:
    chunk_shape = _choose_chunk_shape(shape, chunk_bytes // _DATA_TYPES[data_type].itemsize)
    return ArrayLayout(shape, chunk_shape, data_type, tuple(dimensions), zstd_level)


def plan_widest_layout(shape: tuple[int, ...], dimensions: Sequence[str]) -> ArrayLayout:
    """The layout of an array whose values are not known yet: the one that takes the most chunks.

    Raises ``ValueError`` with the reason if no array of this shape can be stored.
    """
    _check_axes(shape, dimensions)
    return _layout(shape, "int64", dimensions, CHUNK_BYTES, ZSTD_LEVEL)


def encode_chunk(values: NDArray[np.integer] | Floats, layout: ArrayLayout, index: Index) -> memoryview:
    """Compress the part ``index`` of ``values``, whose numbers must fit the stored data type."""
    part = values[index]
    if part.shape != layout.chunk_shape:
        padded = np.zeros(layout.chunk_shape, layout.dtype)
        padded[tuple(map(slice, part.shape))] = part
        part = padded
    codec = pa.Codec("zstd", compression_level=layout.zstd_level)
    return memoryview(codec.compress(np.ascontiguousarray(part, dtype=layout.dtype)))


def decode_chunk(stored: bytes, layout: ArrayLayout, index: Index, into: NDArray[np.int64]) -> None:
    """Decompress a chunk into the part ``index`` of ``into``; raises ``ValueError`` if it is not exactly one chunk.

    The memory taken is the size that the layout implies, whatever the frame claims: zstd decodes straight into it, and
    a frame that would give more or less is an error.
    """
    try:
        content = pa.decompress(stored, decompressed_size=layout.chunk_bytes, codec="zstd")
    except (OSError, pa.ArrowException) as error:
        raise ValueError("one of its chunks is damaged or expands to another size than its metadata says") from error
    block = np.frombuffer(content, layout.dtype).reshape(layout.chunk_shape)
    into[index] = block[tuple(slice(part.stop - part.start) for part in index)]


def metadata_documents(
    layouts: Mapping[str, ArrayLayout], attributes: Mapping[str, JsonValue] | None = None
) -> dict[str, JsonValue]:
    """Every metadata document of the arrays and of the groups that hold them, by entry name.

    ``attributes`` are those of groups that have any.

    Raises ``ValueError`` if a name is not allowed or if one array would lie inside another.
    """
    for name in layouts:
        if not _ARRAY_NAME.fullmatch(name):
            raise ValueError(f"the array name {name!r} is not made of lower-case words separated by '/'")
    groups = sorted({"", *(group for name in layouts for group in _groups_around(name))})
    if not layouts.keys().isdisjoint(groups):
        raise ValueError("one of its arrays lies inside another")
    said = attributes or {}
    nodes: dict[str, JsonValue] = {group: _group_document(said.get(group, {})) for group in groups}
    nodes |= {name: array_document(layout) for name, layout in layouts.items()}
    members: dict[str, dict[str, JsonValue]] = {group: {} for group in groups}
    for path, document in nodes.items():
        for group in _groups_around(path):
            members[group][path.removeprefix(f"{group}/")] = document
    nodes |= {group: _group_document(said.get(group, {}), members[group]) for group in groups}
    return {f"{path}/{DOCUMENT_NAME}".removeprefix("/"): document for path, document in nodes.items()}


def _groups_around(path: str) -> list[str]:
    """The groups that hold ``path``, from the root (the empty path, which nothing holds) inwards."""
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(len(parts))] if path else []


def _group_document(attributes: JsonValue, members: Mapping[str, JsonValue] | None = None) -> dict[str, JsonValue]:
    """The metadata of a group; with ``members``, also theirs, which spares other programs from listing the zip file."""
    document: dict[str, JsonValue] = {"zarr_format": 3, "node_type": "group", "attributes": attributes}
    if members is not None:
        document["consolidated_metadata"] = {"kind": "inline", "must_understand": False, "metadata": members}
    return document


def array_document(layout: ArrayLayout) -> dict[str, JsonValue]:
    """The Zarr v3 metadata of one array."""
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(layout.shape),
        "data_type": layout.data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(layout.chunk_shape)}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0,
        "codecs": [
            {"name": "bytes", "configuration": {"endian": "little"}},
            {"name": "zstd", "configuration": {"level": layout.zstd_level, "checksum": False}},
        ],
        "attributes": {},
        "dimension_names": list(layout.dimensions),
    }


def parse_array_document(document: JsonValue) -> ArrayLayout:
    """Read the layout from Zarr metadata; raises ``ValueError`` if it is not what ``array_document`` writes.

    The few free facts are checked one by one; the document rebuilt from them must then equal the one given, so nothing
    else (another codec, filter, order or extension) can be in it.
    """
    match document:
        case {
            "shape": list(shape),
            "data_type": str(data_type),
            "chunk_grid": {"configuration": {"chunk_shape": list(chunk_shape)}},
            "codecs": [_, {"configuration": {"level": int(level)}}],
            "dimension_names": list(names),
        }:
            pass
        case _:
            raise ValueError("the metadata of one of its arrays lacks what veilcube writes")
    if data_type not in _DATA_TYPES:
        raise ValueError(f"one of its arrays has a data type other than {', '.join(_DATA_TYPES)}")
    if not len(shape) == len(chunk_shape) == len(names) <= _MAX_AXES or not all(isinstance(n, str) for n in names):
        raise ValueError("the axes of one of its arrays do not fit together")
    if not all(
        type(size) is int and type(chunk) is int and 1 <= chunk <= size <= _MAX_SIDE
        for size, chunk in zip(shape, chunk_shape, strict=True)
    ):
        raise ValueError("the shape of one of its arrays is not possible")
    layout = ArrayLayout(tuple(shape), tuple(chunk_shape), data_type, tuple(names), level)
    if layout.chunk_bytes > _MAX_CHUNK_BYTES:
        raise ValueError(f"one of its arrays has chunks larger than {_MAX_CHUNK_BYTES:,} bytes")
    if array_document(layout) != document:
        raise ValueError("the metadata of one of its arrays says more than veilcube writes")
    return layout


def _check_axes(shape: tuple[int, ...], dimensions: Sequence[str]) -> None:
    if not math.prod(shape):
        raise ValueError("it has no cells")
    if len(shape) > _MAX_AXES:
        raise ValueError(f"it has more than {_MAX_AXES} axes")
    if len(dimensions) != len(shape) or len(set(dimensions)) != len(dimensions):
        raise ValueError(f"its {len(shape)} axes need as many different names")


def _narrowest_type(lowest: int, highest: int) -> str:
    for name in _INTEGER_TYPES:
        limits = np.iinfo(name)
        if limits.min <= lowest and highest <= limits.max:
            return name
    raise ValueError("it holds a number beyond the range of int64")


def _choose_chunk_shape(shape: tuple[int, ...], target_cells: int) -> tuple[int, ...]:
    """Split along one axis only, with the axes after it whole: each chunk is one run of memory, so copies are fast.

    The parts of the split axis are as equal as can be, which keeps the padding of the last one small.
    """
    run = 1
    for axis in reversed(range(len(shape))):
        if run * shape[axis] > target_cells:
            parts = -(-shape[axis] // max(1, target_cells // run))
            return (1,) * axis + (-(-shape[axis] // parts),) + shape[axis + 1 :]
        run *= shape[axis]
    return shape
