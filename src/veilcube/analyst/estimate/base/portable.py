"""What an estimate hands to a program that is to give its answers elsewhere: on a page in a browser.

A page asks about runs of cells that each attribute is cut into, never about less than a run. An estimate that can be
computed from few numbers says here which ones: ``values`` tell how to find the value of any product of sets of runs,
``intervals`` how far its interval reaches. ``analyst/publish/assets/answers.js`` computes both. An estimate that cannot
say it all so is asked in advance instead.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from veilcube.system import Floats, Integers

PlainData = Mapping[str, object]


@dataclass(frozen=True, eq=False)
class Runs:
    """The runs of cells, first and last included, that one attribute of so many cells is cut into, from 0 on."""

    first: Integers
    last: Integers

    def __len__(self) -> int:
        return len(self.first)

    @property
    def sizes(self) -> Integers:
        """How many cells each run holds."""
        return self.last - self.first + 1

    def indicators(self) -> Floats:
        """Return a query for each run: 1 for its cells, 0 for all others."""
        cells = np.arange(int(self.last[-1]) + 1)
        return ((cells >= self.first[:, np.newaxis]) & (cells <= self.last[:, np.newaxis])).astype(np.float64)

    def ranges(self) -> tuple[Integers, Integers]:
        """Return the numbers of the first and the last run of every range of runs, the last one changing fastest."""
        low, high = np.triu_indices(len(self))
        return low.astype(np.int64), high.astype(np.int64)


@dataclass(frozen=True, eq=False)
class Portable:
    """How the answers of an estimate are computed: plain data, with arrays."""

    values: PlainData
    intervals: PlainData


@runtime_checkable
class PortableEstimate(Protocol):
    """An estimate whose answers a page can compute."""

    def portable(self, cuts: Sequence[Runs], confidence: float) -> Portable | None:
        """Return how, for attributes that are cut into runs; None if it takes too many numbers."""


def cells_of_runs(cells: np.ndarray, cuts: Sequence[Runs]) -> PlainData:
    """Return values that are sums of cells: the sums of all products of runs."""
    found = cells
    for axis, runs in enumerate(cuts):
        if len(runs) < found.shape[axis]:
            found = np.add.reduceat(found, runs.first, axis=axis)
    return {"kind": "cells", "cells": np.ascontiguousarray(found)}
