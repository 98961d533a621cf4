"""Which format to use inside a release file: size, time and memory of Zarr, Arrow IPC and Parquet on noisy cubes.

    python benchmarks/release_format.py                       # 4 million cells, seconds
    python benchmarks/release_format.py --cells 100000000     # the figures of docs/decisions/0003-release-file.md

The noise is drawn with numpy from a fixed seed: it only has to look like the noise of a release, and protects nobody.
"""

import argparse
import json
import math
import multiprocessing
import os
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TypeVar

import numpy as np
import pandas  # noqa: F401  # pyarrow imports it at its first conversion, which would then be timed
import pyarrow as pa
import pyarrow.parquet as pq
import zarr
import zarr.codecs
import zarr.storage
from numpy.typing import NDArray

from veilcube.record.archive import read_archive, write_archive
from veilcube.record.zarr_format import ArrayLayout, decode_chunk, encode_chunk, plan_layout

Cube = NDArray[np.int64]
NAME = "measurements/0/values"
BATCH_CELLS = 2**20
WORKERS = 2
FORK = multiprocessing.get_context("fork")
T = TypeVar("T")


@dataclass(frozen=True)
class Candidate:
    """A way to write a cube to a file and to read it back as int64."""

    title: str
    write: Callable[[Path, Cube], None]
    read: Callable[[Path], Cube]


def discrete_laplace(generator: np.random.Generator, scale: float, size: int) -> Cube:
    stop = -math.expm1(-1 / scale)
    return generator.geometric(stop, size) - generator.geometric(stop, size)


def make_cubes(cells: int) -> Iterator[tuple[str, Cube]]:
    generator = np.random.default_rng(20)
    rows = max(1, cells // 1000)
    yield "noise of scale 1", discrete_laplace(generator, 1, rows * 1000).reshape(rows, 1000)
    yield "noise of scale 100", discrete_laplace(generator, 100, rows * 1000).reshape(rows, 1000)
    shape = (max(1, round(cells / (2 * 512 * 1001))), 2, 512, 1001)
    size = math.prod(shape)
    places = [np.minimum(generator.exponential(n / 6, size // 10).astype(np.int64), n - 1) for n in shape]
    counts = np.bincount(np.ravel_multi_index(places, shape), minlength=size)
    yield "skewed counts + scale 1", (counts + discrete_laplace(generator, 1, size)).reshape(shape)


def narrow(cube: Cube) -> NDArray[np.signedinteger]:
    return cube.astype(plan_layout(cube, axis_names(cube)).dtype)


def axis_names(cube: Cube) -> list[str]:
    return [f"axis{i}" for i in range(cube.ndim)]


def write_veilcube(path: Path, cube: Cube) -> None:
    write_archive(path, {}, {NAME: cube}, dimensions={NAME: axis_names(cube)})


def read_veilcube(path: Path) -> Cube:
    return read_archive(path).arrays[NAME]


def write_zarr_python(path: Path, cube: Cube) -> None:
    layout = plan_layout(cube, axis_names(cube))
    store = zarr.storage.ZipStore(path, mode="w")
    array = zarr.create_array(
        store,
        name=NAME,
        shape=cube.shape,
        chunks=layout.chunk_shape,
        dtype=layout.data_type,
        compressors=zarr.codecs.ZstdCodec(level=1),
        dimension_names=axis_names(cube),
    )
    array[...] = cube.astype(layout.dtype)
    store.close()


def write_zarr_defaults(path: Path, cube: Cube) -> None:
    store = zarr.storage.ZipStore(path, mode="w")
    zarr.create_array(store, name=NAME, data=cube)
    store.close()


def read_zarr_python(path: Path) -> Cube:
    with zarr.storage.ZipStore(path, mode="r") as store:
        return np.asarray(zarr.open_array(store, path=NAME, mode="r")[...]).astype(np.int64)


def arrow_ipc(title: str, convert: Callable[[Cube], NDArray[np.signedinteger]]) -> Candidate:
    def write(path: Path, cube: Cube) -> None:
        values = convert(cube).reshape(-1)
        options = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", compression_level=1), use_threads=True)
        schema = pa.schema([("values", pa.from_numpy_dtype(values.dtype))])
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("shape.json", json.dumps(cube.shape))
            with (
                archive.open("values.arrow", "w", force_zip64=True) as sink,
                pa.ipc.new_file(sink, schema, options=options) as writer,
            ):
                for start in range(0, values.size, BATCH_CELLS):
                    writer.write(pa.record_batch([pa.array(values[start : start + BATCH_CELLS])], schema=schema))

    def read(path: Path) -> Cube:
        with zipfile.ZipFile(path) as archive, archive.open("values.arrow") as source:
            cube = np.empty(json.loads(archive.read("shape.json")), np.int64)
            reader = pa.ipc.open_file(source)
            start = 0
            for i in range(reader.num_record_batches):
                values = reader.get_batch(i).column(0).to_numpy()
                cube.reshape(-1)[start : start + values.size] = values
                start += values.size
        return cube

    return Candidate(title, write, read)


def parquet(title: str, convert: Callable[[Cube], NDArray[np.signedinteger]], **options: object) -> Candidate:
    def write(path: Path, cube: Cube) -> None:
        table = pa.table({"values": convert(cube).reshape(-1)})
        settings = {"compression": "zstd", "compression_level": 1, "write_statistics": False, **options}
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("shape.json", json.dumps(cube.shape))
            with archive.open("values.parquet", "w", force_zip64=True) as sink:
                pq.write_table(table, sink, row_group_size=BATCH_CELLS, **settings)

    def read(path: Path) -> Cube:
        with zipfile.ZipFile(path) as archive, archive.open("values.parquet") as source:
            cube = np.empty(json.loads(archive.read("shape.json")), np.int64)
            start = 0
            for batch in pq.ParquetFile(source).iter_batches(batch_size=BATCH_CELLS):
                values = batch.column(0).to_numpy()
                cube.reshape(-1)[start : start + values.size] = values
                start += values.size
        return cube

    return Candidate(title, write, read)


CANDIDATES = [
    Candidate("Zarr v3 by hand (veilcube)", write_veilcube, read_veilcube),
    Candidate("zarr-python, same parameters", write_zarr_python, read_zarr_python),
    Candidate("zarr-python, its defaults", write_zarr_defaults, read_zarr_python),
    arrow_ipc("Arrow IPC, int64", lambda cube: cube),
    arrow_ipc("Arrow IPC, narrowest type", narrow),
    parquet("Parquet, its defaults", lambda cube: cube),
    parquet("Parquet, byte stream split", narrow, use_dictionary=False, use_byte_stream_split=True),
    parquet("Parquet, delta packed", narrow, use_dictionary=False, column_encoding={"values": "DELTA_BINARY_PACKED"}),
]


def memory(field: str) -> int:
    """Read VmRSS (memory now) or VmHWM (its highest) of this process, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) * 1024


@dataclass(frozen=True)
class Cost:
    """The best times of several runs, and the most memory beyond what there was at the start."""

    seconds: float
    cpu_seconds: float
    extra_megabytes: float


def measure(action: Callable[[], T], repeat: int, check: Callable[[T], bool] = lambda result: True) -> Cost:
    """Run in fresh child processes: forked, so that they have the cube and no memory kept for reuse by earlier runs."""
    costs = []
    for _ in range(repeat):
        receiver, sender = FORK.Pipe(duplex=False)
        child = FORK.Process(target=measure_once, args=(action, check, sender))
        child.start()
        sender.close()
        costs.append(receiver.recv())
        child.join()
    return Cost(
        min(cost.seconds for cost in costs),
        min(cost.cpu_seconds for cost in costs),
        max(cost.extra_megabytes for cost in costs),
    )


def measure_once(action: Callable[[], T], check: Callable[[T], bool], sender: Connection) -> None:
    before, start, cpu_start = memory("VmRSS"), time.perf_counter(), time.process_time()
    result = action()
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
    extra_megabytes = (memory("VmHWM") - before) / 1e6
    if not check(result):
        raise SystemExit("what was read is not what was written")
    sender.send(Cost(seconds, cpu_seconds, extra_megabytes))


def compare_formats(title: str, cube: Cube, folder: Path, repeat: int) -> None:
    print(f"\n{title}, {cube.size:,} cells, {cube.nbytes / 1e6:,.0f} MB as int64 (memory to read includes these)")
    print("| format | size MB | write s | CPU s | extra MB | read s | CPU s | extra MB |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for candidate in CANDIDATES:
        path = folder / "candidate.zip"
        write = measure(partial(candidate.write, path, cube), repeat)
        read = measure(partial(candidate.read, path), repeat, partial(np.array_equal, cube))
        size = path.stat().st_size / 1e6
        path.unlink()
        cells = [f"{cost.seconds:.2f} | {cost.cpu_seconds:.2f} | {cost.extra_megabytes:.0f}" for cost in (write, read)]
        print(f"| {candidate.title} | {size:.1f} | {' | '.join(cells)} |", flush=True)


def compare_parameters(title: str, cube: Cube, repeat: int) -> None:
    """Zarr chunks in memory only: what the zstd level and the size of a chunk change."""
    print(f"\n{title}: chunks by hand, {WORKERS} threads, without the file")
    print("| chunk MiB | zstd level | size MB | compress s | CPU s | decompress s | CPU s |")
    print("|---:|---:|---:|---:|---:|---:|---:|")
    for mebibytes, level in [(4, -5), (4, 1), (4, 3), (4, 6), (4, 9), (1, 1), (2, 1), (8, 1)]:
        layout = plan_layout(cube, axis_names(cube), chunk_bytes=mebibytes * 2**20, zstd_level=level)
        stored = compress_all(cube, layout)
        compress = measure(partial(compress_all, cube, layout), repeat)
        decompress = measure(partial(decompress_all, stored, layout), repeat, partial(np.array_equal, cube))
        cells = [f"{cost.seconds:.2f} | {cost.cpu_seconds:.2f}" for cost in (compress, decompress)]
        print(f"| {mebibytes} | {level} | {sum(map(len, stored)) / 1e6:.1f} | {' | '.join(cells)} |", flush=True)
    print(f"With the bytes of each number shuffled (4 MiB, level 1): {shuffled_size(cube) / 1e6:.1f} MB", flush=True)


def shuffled_size(cube: Cube) -> int:
    """The size if the lowest bytes of all numbers of a chunk came first, then the next ones, and so on."""
    layout = plan_layout(cube, axis_names(cube))
    total = 0
    for _, index in layout.chunks():
        octets = np.ascontiguousarray(cube[index], layout.dtype).view(np.uint8).reshape(-1, layout.dtype.itemsize)
        total += len(pa.Codec("zstd", compression_level=1).compress(np.ascontiguousarray(octets.T)))
    return total


def compress_all(cube: Cube, layout: ArrayLayout) -> list[bytes]:
    with ThreadPoolExecutor(WORKERS) as pool:
        return list(pool.map(lambda chunk: bytes(encode_chunk(cube, layout, chunk[1])), layout.chunks()))


def decompress_all(stored: list[bytes], layout: ArrayLayout) -> Cube:
    into = np.empty(layout.shape, np.int64)
    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(lambda data, chunk: decode_chunk(data, layout, chunk[1], into), stored, layout.chunks()))
    return into


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare formats for the inside of a release file.")
    parser.add_argument("--cells", type=int, default=4_000_000, help="cells of each cube (default: %(default)s)")
    parser.add_argument("--repeat", type=int, default=2, help="runs, of which the best counts (default: %(default)s)")
    options = parser.parse_args()
    print(f"pyarrow {pa.__version__}, numpy {np.__version__}, zarr {zarr.__version__}, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder:
        for title, cube in make_cubes(options.cells):
            compare_formats(title, cube, Path(folder), options.repeat)
            compare_parameters(title, cube, options.repeat)


if __name__ == "__main__":
    main()
