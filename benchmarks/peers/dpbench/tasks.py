"""What is measured: the arrays of one shape, and the questions that are asked of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import veilcube as vc
from benchmarks.peers.dpbench import adult
from benchmarks.peers.dpbench.arrays import CountArray, InputError, load_arrays, read_counts, sum_blocks

TASKS = ("1d", "64", "256", "4d")
QUERIES = 2000
LINE = (4096,)
SQUARE = (256, 256)
BLOCK_SIDE = 4
# The planner plans for random ranges of seed 0 when it is told no questions: asking those would flatter it.
QUERY_SEED = 1
# The strategy that is matched to random ranges is matched to others than those that are asked.
MATCHED_SEED = 2
MATCHED_QUERIES = 20_000


@dataclass(frozen=True)
class Questions:
    """A workload to answer, and the one that a strategy matched to such questions is made for."""

    asked: vc.Workload
    matched_to: vc.Workload


@dataclass(frozen=True)
class Task:
    """Arrays of one schema, and the questions asked of each, by name."""

    name: str
    title: str
    schema: vc.Schema
    arrays: tuple[CountArray, ...] = field(repr=False)
    questions: Mapping[str, Questions] = field(repr=False)


def build_tasks(data: Path | None, adult_file: Path | None, only: Sequence[str]) -> list[Task]:
    """Read what the chosen tasks need; refuse before any work is done if something is missing."""
    chosen = [name for name in TASKS if not only or name in only]
    if data is None and chosen != ["4d"]:
        raise InputError("the arrays are not part of this repository; name their folder by --data, or use --only 4d")
    tasks = []
    for name in chosen:
        if name == "4d":
            tasks.append(_adult_cube(adult_file))
        elif data is not None:
            tasks.append(_line(data) if name == "1d" else _square(data, int(name)))
    return tasks


def _line(data: Path) -> Task:
    schema = vc.Schema([vc.Ordinal("x", 0, LINE[0] - 1)])
    prefixes = vc.Workload.prefixes(schema)
    questions = {"prefixes": Questions(prefixes, prefixes), "ranges": _random_ranges(schema)}
    return Task("1d", "4096 cells", schema, load_arrays(data / "1D", LINE), questions)


def _square(data: Path, side: int) -> Task:
    arrays = load_arrays(data / "2D", SQUARE)
    if side != SQUARE[0]:
        arrays = tuple(CountArray(array.name, sum_blocks(array.counts, BLOCK_SIDE)) for array in arrays)
    schema = vc.Schema([vc.Ordinal("x", 0, side - 1), vc.Ordinal("y", 0, side - 1)])
    return Task(str(side), f"{side} x {side}", schema, arrays, {"ranges": _random_ranges(schema)})


def _adult_cube(file: Path | None) -> Task:
    # All ordered: ranges over the codes are asked, and nothing is told that would help a strategy guess what is alike.
    schema = vc.Schema([vc.Ordinal(name, 0, size - 1) for name, size in zip(adult.NAMES, adult.SHAPE, strict=True)])
    if file is None:
        array = CountArray("synthetic", adult.adult_like_counts())
    else:
        array = CountArray(file.stem, read_counts(file, adult.SHAPE))
    title = " x ".join(map(str, adult.SHAPE))
    return Task("4d", title, schema, (array,), {"ranges": _random_ranges(schema)})


def _random_ranges(schema: vc.Schema) -> Questions:
    return Questions(
        vc.Workload.random_ranges(schema, QUERIES, seed=QUERY_SEED),
        vc.Workload.random_ranges(schema, MATCHED_QUERIES, seed=MATCHED_SEED),
    )
