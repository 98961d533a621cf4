"""Persistent Gibbs chains: many rows at once that follow a model while its log-weights change.

The chains are independent of each other, so the spread of any average over them tells its Monte Carlo error. Time and
memory depend on the tables and the number of chains, never on the number of cells of the universe.

A compiled sweep draws each attribute in turn given all others. For each attribute k and each table of log-weights that
holds it there is one entry: a copy of exp(table) with k as its last axis, so that the weights of all cells of k, given
the other attributes of a row, are one run of numbers. The probability of a cell of k is proportional to the product of
the runs of k's entries. ``sums`` collects these probabilities, so expectations are averages of them (Rao and Blackwell)
and have less noise than counts of the rows drawn.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from veilcube.system import THREADS, Floats, Integers, compiled_fast, share_out

Rows = NDArray[np.int32]
Reals = NDArray[Any]  # float32 where the weights allow it, else float64


@compiled_fast
def sweep_rows(
    rows: Rows,
    uniforms: Reals,
    start: int,
    stop: int,
    base: Reals,
    base_start: Integers,
    sizes: Integers,
    entry_first: Integers,
    entry_start: Integers,
    entry_axes: Integers,
    entry_strides: Integers,
    weights: Reals,
    sums: Reals,
    chances: Reals,
    collecting: bool,
) -> None:
    """Draw every attribute of the rows ``start`` to ``stop - 1`` once, in place.

    ``base`` holds each attribute's own weights. Entry e belongs to attribute k if entry_first[k] <= e <
    entry_first[k + 1]; its run for a row begins at entry_start[e] + Σ_j entry_strides[e, j] · row[entry_axes[e, j]].
    """
    found = np.zeros(entry_start.size, dtype=np.uint64)
    for row in range(start, stop):
        for axis in range(sizes.size):
            size, at_base = np.uint64(sizes[axis]), np.uint64(base_start[axis])
            for cell in range(size):
                chances[cell] = base[at_base + cell]
            for entry in range(entry_first[axis], entry_first[axis + 1]):
                place = entry_start[entry]
                for other in range(entry_axes.shape[1]):
                    place += entry_strides[entry, other] * rows[row, entry_axes[entry, other]]
                at = np.uint64(place)
                found[entry] = at
                for cell in range(size):
                    chances[cell] *= weights[at + cell]
            total = chances[0]
            for cell in range(np.uint64(1), size):
                total += chances[cell]
            threshold, running, last = uniforms[row - start, axis] * total, chances[0], sizes[axis] - 1
            drawn = 0
            while running < threshold and drawn < last:
                drawn += 1
                running += chances[drawn]
            rows[row, axis] = drawn
            if collecting:
                share = 1 / total
                for cell in range(size):
                    chances[cell] *= share
                for entry in range(entry_first[axis], entry_first[axis + 1]):
                    at = found[entry]
                    for cell in range(size):
                        sums[at + cell] += chances[cell]


Weights: TypeAlias = NDArray[np.float32] | NDArray[np.float64]

# Rows between two additions of single precision sums to double precision ones.
_ROWS_AT_ONCE = 1 << 14
# exp of more than this leaves single precision in a product, and of more than ten times that double precision.
_SINGLE_LIMIT = 60.0
_DOUBLE_LIMIT = 600.0


@dataclass(frozen=True, eq=False)
class TableLayout:
    """Where the runs of all tables lie in memory, once for each attribute of each table."""

    shape: tuple[int, ...]
    tables: tuple[tuple[int, ...], ...]

    @cached_property
    def entries(self) -> list[tuple[int, int]]:
        """The (attribute, table) of each entry, in the order of attributes."""
        return [
            (axis, table) for axis in range(len(self.shape)) for table, axes in enumerate(self.tables) if axis in axes
        ]

    @cached_property
    def first(self) -> Integers:
        """The first entry of each attribute, and the number of all."""
        return np.searchsorted([axis for axis, _ in self.entries], np.arange(len(self.shape) + 1)).astype(np.int64)

    @cached_property
    def start(self) -> Integers:
        """Where each entry begins, and where the last one ends."""
        sizes = [prod(self.shape[axis] for axis in self.tables[table]) for _, table in self.entries]
        return np.cumsum([0, *sizes]).astype(np.int64)

    @cached_property
    def steps(self) -> tuple[Integers, Integers]:
        """For each entry its other attributes and the distance of their cells; unused places have distance 0."""
        widest = max(0, *(len(axes) - 1 for axes in self.tables))
        axes = np.zeros((len(self.entries), widest), dtype=np.int64)
        strides = np.zeros_like(axes)
        for entry, (axis, table) in enumerate(self.entries):
            others, stride = [other for other in self.tables[table] if other != axis], self.shape[axis]
            for place, other in reversed(list(enumerate(others))):
                axes[entry, place], strides[entry, place] = other, stride
                stride *= self.shape[other]
        return axes, strides

    def pack(self, log_weights: Sequence[Floats]) -> Weights:
        """Return exp of the tables in the layout, each shifted so that its largest is 1; single precision if it can."""
        shifted = [table - table.max() for table in log_weights]
        reach = [0.0] * len(self.shape)
        for axis, table in self.entries:
            reach[axis] -= float(shifted[table].min())
        deepest = max(reach, default=0.0)
        packed = np.empty(int(self.start[-1]), dtype=np.float64)
        floor = -_DOUBLE_LIMIT / max(1, int(np.diff(self.first).max()))
        for entry, (axis, table) in enumerate(self.entries):
            turned = np.moveaxis(shifted[table], self.tables[table].index(axis), -1)
            kept = turned if deepest < _DOUBLE_LIMIT else np.maximum(turned, floor)
            packed[self.start[entry] : self.start[entry + 1]] = np.exp(kept).ravel()
        return packed.astype(np.float32) if deepest < _SINGLE_LIMIT else packed

    def unpack(self, sums: Floats) -> list[Floats]:
        """Return what was collected in the layout as one table for each set, adding up to 1."""
        found = [np.zeros(tuple(self.shape[axis] for axis in axes)) for axes in self.tables]
        for entry, (axis, table) in enumerate(self.entries):
            axes = self.tables[table]
            turned = [self.shape[other] for other in axes if other != axis] + [self.shape[axis]]
            part = sums[self.start[entry] : self.start[entry + 1]].reshape(turned)
            found[table] += np.moveaxis(part, -1, axes.index(axis))
        # Single precision leaves the sums a ten-thousandth off 1; a table over no attributes has no entry, and is 1.
        return [table / table.sum() if axes else np.ones(()) for axes, table in zip(self.tables, found, strict=True)]


class Chains:
    """Rows that are redrawn again and again: ``rows`` is (chains, attributes), in cell numbers.

    ``prior`` gives each attribute's own probabilities (p0). The chains change as they move; each thread has its own
    stream of random numbers, so the same seed gives the same rows on machines with equally many processors.
    """

    def __init__(self, layout: TableLayout, prior: Sequence[Floats], rows: Rows, seed: int) -> None:
        self.layout = layout
        self.rows = np.ascontiguousarray(rows, dtype=np.int32)
        self._base = np.concatenate([law / law.max() for law in prior])
        self._base_start = np.cumsum([0, *layout.shape]).astype(np.int64)
        self._streams = [np.random.default_rng([seed, part]) for part in range(THREADS)]

    @classmethod
    def drawn(cls, layout: TableLayout, prior: Sequence[Floats], chains: int, seed: int) -> "Chains":
        """Start chains at rows of independent attributes, drawn from the prior."""
        random = np.random.default_rng([seed, THREADS, chains])
        columns = [draw_cells(law, random.random(chains)) for law in prior]
        return cls(layout, prior, np.stack(columns, axis=1).astype(np.int32), seed)

    def sweep(self, packed: Weights, times: int = 1) -> None:
        """Redraw every attribute of every chain, ``times`` times."""
        for _ in range(times):
            self._move(packed, None)

    def collect(self, packed: Weights, times: int = 1) -> list[Floats]:
        """Sweep and return the average of the probabilities over chains and sweeps: p's marginal over each table."""
        sums = [np.zeros(int(self.layout.start[-1])) for _ in range(THREADS)]
        for _ in range(times):
            self._move(packed, sums)
        return self.layout.unpack(np.sum(sums, axis=0))

    def _move(self, packed: Weights, sums: list[Floats] | None) -> None:
        count, layout, kind = len(self.rows), self.layout, packed.dtype
        axes, strides = layout.steps
        sizes, base = np.array(layout.shape, dtype=np.int64), self._base.astype(kind)
        chunk = -(-count // THREADS)

        def work(first: int, end: int) -> None:
            for part in range(first, end):
                random, collected = self._streams[part], np.zeros(packed.size if sums is not None else 1, dtype=kind)
                chances = np.empty(int(sizes.max()), dtype=kind)
                for begin in range(part * chunk, min((part + 1) * chunk, count), _ROWS_AT_ONCE):
                    stop = min(begin + _ROWS_AT_ONCE, (part + 1) * chunk, count)
                    uniforms = random.random((stop - begin, sizes.size), dtype=kind)
                    sweep_rows(
                        self.rows, uniforms, begin, stop, base, self._base_start, sizes, layout.first, layout.start,
                        axes, strides, packed, collected, chances, sums is not None,
                    )  # fmt: skip
                    if sums is not None:
                        sums[part] += collected
                        collected[:] = 0

        share_out(work, THREADS, count * int(sizes.sum()) * len(layout.tables))


def draw_cells(chances: Floats, uniforms: Floats) -> Integers:
    """Return one cell for each uniform number, with these probabilities (they need not add up to 1)."""
    running = np.cumsum(chances)
    found = np.searchsorted(running, uniforms * running[-1], side="right")
    return np.asarray(np.minimum(found, chances.size - 1), dtype=np.int64)
