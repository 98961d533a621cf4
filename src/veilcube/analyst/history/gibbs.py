"""Persistent Gibbs chains: many rows at once that follow a model while its log-weights change.

The chains are independent of each other, so the spread of any average over them tells its Monte Carlo error. Time and
memory depend on the tables and the number of chains, never on the number of cells of the universe.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from veilcube.analyst.history.gibbs_kernels import sweep_rows
from veilcube.operators.parallel import THREADS, share_out

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Rows = NDArray[np.int32]
Weights: TypeAlias = NDArray[np.float32] | NDArray[np.float64]

# Rows between two additions of single precision sums to double precision ones.
_ROWS_AT_ONCE = 1 << 14
# exp of more than this leaves single precision in a product, and of more than ten times that double precision.
_SINGLE_LIMIT = 60.0
_DOUBLE_LIMIT = 600.0


@dataclass(frozen=True, eq=False)
class TableLayout:
    """Where the runs of all tables lie in memory, once for each attribute of each table (see ``gibbs_kernels``)."""

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

    ``prior`` gives each attribute's own chances (p0). The chains change as they move; each thread has its own stream of
    random numbers, so the same seed gives the same rows on machines with equally many processors.
    """

    def __init__(self, layout: TableLayout, prior: Sequence[Floats], rows: Rows, seed: int) -> None:
        self.layout = layout
        self.rows = np.ascontiguousarray(rows, dtype=np.int32)
        self._base = np.concatenate([law / law.max() for law in prior])
        self._base_start = np.cumsum([0, *layout.shape]).astype(np.int64)
        self._streams = [np.random.default_rng([seed, part]) for part in range(THREADS)]

    @classmethod
    def drawn(cls, layout: TableLayout, prior: Sequence[Floats], chains: int, seed: int) -> "Chains":
        """Start chains at rows of independent attributes with the prior's chances."""
        random = np.random.default_rng([seed, THREADS, chains])
        columns = [draw_cells(law, random.random(chains)) for law in prior]
        return cls(layout, prior, np.stack(columns, axis=1).astype(np.int32), seed)

    def sweep(self, packed: Weights, times: int = 1) -> None:
        """Redraw every attribute of every chain, so many times."""
        for _ in range(times):
            self._move(packed, None)

    def collect(self, packed: Weights, times: int = 1) -> list[Floats]:
        """Sweep and return the average of the chances over chains and sweeps: p's marginal over each table."""
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
    """Return one cell for each uniform number, with these chances (they need not add up to 1)."""
    running = np.cumsum(chances)
    found = np.searchsorted(running, uniforms * running[-1], side="right")
    return np.asarray(np.minimum(found, chances.size - 1), dtype=np.int64)
