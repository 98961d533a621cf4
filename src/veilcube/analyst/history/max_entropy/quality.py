"""How well synthetic rows follow what was measured, judged by the noisy measurements alone.

For every set of one, two or three attributes that was measured, alone or as part of a larger table, the distance of the
rows' counts from the noisy ones is compared with the distance that the noise alone makes. The private table is never
looked at again.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations, groupby
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from veilcube.analyst.history.max_entropy.tables import TableGroup, make_group, query_supports, table_cells
from veilcube.record import History
from veilcube.system import Floats

Rows: TypeAlias = NDArray[np.signedinteger[Any]]  # int32 where cell numbers allow it

MOST_ATTRIBUTES = 3


@dataclass(frozen=True)
class MarginalQuality:
    """One set of attributes: ``error`` is Σ |rows - noisy| over its measured queries, as a share of all rows.

    ``noise`` is what the noise alone makes of it on average.
    """

    names: tuple[str, ...]
    queries: int
    error: float
    noise: float


@dataclass(frozen=True)
class Quality:
    """One entry for each set of at most three attributes that was measured."""

    marginals: tuple[MarginalQuality, ...]

    def by_ways(self) -> list[tuple[int, int, float, float]]:
        """Return (attributes, how many sets, mean error, mean noise) for one, two and three attributes."""
        ordered = sorted(self.marginals, key=lambda entry: len(entry.names))
        found = []
        for ways, entries in groupby(ordered, key=lambda entry: len(entry.names)):
            listed = list(entries)
            errors, noises = [entry.error for entry in listed], [entry.noise for entry in listed]
            found.append((ways, len(listed), float(np.mean(errors)), float(np.mean(noises))))
        return found


def judge_rows(history: History, rows: Iterable[Rows], total: float) -> Quality:
    """Compare rows, given as cell numbers, with noisy measurements of a table that has ``total`` rows."""
    drawn = np.concatenate(list(rows))
    answers = history.queries.count_rows(drawn) * (total / len(drawn))
    supports, which = query_supports(history.queries)
    found: dict[tuple[int, ...], MarginalQuality] = {}
    for number, axes in enumerate(supports):
        chosen = np.flatnonzero(which == number)
        gaps, variances = answers[chosen] - history.values[chosen], history.variances[chosen]
        group = make_group(history.queries, axes, chosen) if _may_be_whole(history, axes, chosen.size) else None
        if group is None or group.cells is None or np.unique(group.cells).size != group.size:
            if 1 <= len(axes) <= MOST_ATTRIBUTES:
                _keep_quieter(found, axes, _judge(history, axes, gaps, variances, total))
            continue
        for ways in range(1, min(len(axes), MOST_ATTRIBUTES) + 1):
            for kept in combinations(axes, ways):
                sums, noise = _add_up(group, gaps, kept), _add_up(group, variances, kept)
                _keep_quieter(found, kept, _judge(history, kept, sums, noise, total))
    return Quality(tuple(found[axes] for axes in sorted(found, key=lambda axes: (len(axes), axes))))


def _may_be_whole(history: History, axes: tuple[int, ...], queries: int) -> bool:
    return bool(axes) and queries == table_cells(history.schema.shape, axes)


def _add_up(group: TableGroup, values: Floats, kept: tuple[int, ...]) -> Floats:
    """Sum what belongs to the cells of a whole table over all attributes but ``kept``."""
    table = group.log_weights(values)
    return np.asarray(table.sum(axis=tuple(i for i, axis in enumerate(group.axes) if axis not in kept))).ravel()


def _judge(history: History, axes: tuple[int, ...], gaps: Floats, variances: Floats, total: float) -> MarginalQuality:
    # Single noises are Laplace and sums of many are nearly normal; their mean sizes differ by a tenth.
    noise = float(np.sqrt(variances).sum() * np.sqrt(2 / np.pi) / total)
    names = tuple(history.schema.names[axis] for axis in axes)
    return MarginalQuality(names, gaps.size, float(np.abs(gaps).sum() / total), noise)


def _keep_quieter(found: dict[tuple[int, ...], MarginalQuality], axes: tuple[int, ...], entry: MarginalQuality) -> None:
    """Of several measurements of one marginal the one with least noise is the judge."""
    if axes not in found or entry.noise < found[axes].noise:
        found[axes] = entry
