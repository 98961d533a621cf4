"""Past answers and long attributes: what models and questions cost where cells are too many to be written out.

Each figure is taken in a process of its own, so that its peak of memory is its own; what is compared runs in turn. The
bars are ratios, and 2 GB. ``--ranges 1000`` is quicker than the 5,000 ranges that the bars are about.
Run: python -m benchmarks.scale.history [--ranges 5000]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

import veilcube as vc

MOST_TIMES, MOST_GB = 1.3, 2.0
MOST_TIMES_A_QUESTION = 3.0
ROUNDS = 3
FEW, MANY = 10**4, 10**12


class Figure(NamedTuple):
    """Seconds of processor time, and the peak of memory of the process in GB."""

    seconds: float
    gigabytes: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranges", type=int, default=5000)
    parser.add_argument("--one", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(_PARTS[arguments.one[0]](*arguments.one[1:])))
        return
    _models(arguments.ranges)
    _questions()


def _models(ranges: int) -> None:
    print(f"{ranges:,} ranges: fit and 200 answers, processor time; the same number of attributes on both sides")
    for name, attributes in (("kernel-pca", 2), ("kernel-pca", 1), ("max-entropy", 1)):
        shapes = [round(cells ** (1 / attributes)) for cells in (FEW, MANY)]
        rounds = 1 if ranges > 2000 else ROUNDS  # long runs vary less
        few, many = (_least("model", name, str(attributes), str(size), str(ranges), rounds=rounds) for size in shapes)
        _print(f"{name}, {attributes} attribute{'s' * (attributes > 1)}", few, many, MOST_TIMES)


def _questions() -> None:
    print("releases of 2^24 cells: the second question, and all that was read and made for it")
    with tempfile.TemporaryDirectory() as folder:
        for strategy in ("wavelet", "tree"):
            figures = []
            for shape in ("4096x4096", "16777216"):
                path = str(Path(folder) / f"{strategy}-{shape}.veil")
                _run("release", strategy, shape, path)
                figures.append(_least("question", path))
            two, one = figures
            _print(f"{strategy}, one attribute to two", two, one, MOST_TIMES_A_QUESTION)
            print(f"{'':<28}{one.gigabytes / two.gigabytes:>10.2f} times the memory of two attributes")


def _print(what: str, few: Figure, many: Figure, bar: float) -> None:
    times = many.seconds / few.seconds
    in_time = "reached" if times <= bar else "MISSED"
    in_memory = "reached" if many.gigabytes <= MOST_GB else "MISSED"
    print(
        f"{what:<28}{_seconds(few.seconds):>12}{_seconds(many.seconds):>12}{times:>7.2f} times  bar {bar} {in_time}"
        f"{many.gigabytes:>8.2f} GB  bar {MOST_GB:.0f} {in_memory}"
    )


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 0.1 else f"{1e3 * seconds:.2f} ms"


def _least(*words: str, rounds: int = ROUNDS) -> Figure:
    """Return the best of several runs, and the largest memory."""
    found = [_run(*words) for _ in range(rounds)]
    return Figure(min(seconds for seconds, _ in found), max(gigabytes for _, gigabytes in found))


def _run(*words: str) -> Figure:
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "benchmarks.scale.history", "--one", *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=environment, text=True)
    return Figure(*json.loads(done.stdout.splitlines()[-1]))


def model(name: str, attributes: str, size: str, ranges: str) -> Figure:
    """Learn from random ranges and answer others; the values follow a smooth table with noise."""
    warnings.simplefilter("ignore")
    schema = vc.Schema([vc.Ordinal(f"a{axis}", 0, int(size) - 1) for axis in range(int(attributes))])
    past, asked = vc.Workload.random_ranges(schema, int(ranges), 1), vc.Workload.random_ranges(schema, 200, 2)
    ends = [(past.low / int(size)) ** 2, ((past.high + 1) / int(size)) ** 2]
    values = 10_000 * np.prod(ends[1] - ends[0], axis=1) + np.random.default_rng(3).normal(0, 100, int(ranges))
    history = vc.History(schema, past, values, 10_000.0)
    settings = vc.KernelPCA() if name == "kernel-pca" else vc.MaxEntropy()
    settings.fit(history[:20], total=10_000).answer(asked)  # loads and compiles what there is
    start = time.process_time()
    settings.fit(history, total=10_000).answer(asked)
    return Figure(time.process_time() - start, _peak())


def release(strategy: str, shape: str, path: str) -> Figure:
    """Make a release of mostly empty cells."""
    warnings.simplefilter("ignore")
    sizes = [int(size) for size in shape.split("x")]
    schema = vc.Schema([vc.Ordinal(f"a{axis}", 0, size - 1) for axis, size in enumerate(sizes)])
    counts = np.zeros(sizes, dtype=np.int64)
    counts.reshape(-1)[:: 1 << 14] = 100
    chosen = vc.Wavelet() if strategy == "wavelet" else vc.Tree(refine=False)
    start = time.process_time()
    vc.release(vc.Cube(schema, counts), epsilon=1, strategy=chosen).save(path)
    return Figure(time.process_time() - start, _peak())


def question(path: str) -> Figure:
    """Ask the second question of a release: the median of a few that come next, of ranges on the first attribute."""
    opened = vc.open(path)
    size = opened.schema.shape[0]
    opened.count(a0=(size // 7, size // 2))
    times = []
    for number in range(1, 8):
        start = time.perf_counter()
        opened.count(a0=(size // 7 + number, size // 2 + 3 * number))
        times.append(time.perf_counter() - start)
    return Figure(float(np.median(times)), _peak())


def _peak() -> float:
    """Return the most memory that this process ever had: what its parent had before it does not count."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024 / 1e9


_PARTS: dict[str, Callable[..., Figure]] = {"model": model, "release": release, "question": question}

if __name__ == "__main__":
    main()
