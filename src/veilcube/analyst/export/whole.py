"""Controlled rounding: whole, non-negative tables whose totals are given whole numbers.

A table over several attributes is built up one attribute at a time: the finished table over the first of them gives the
sums along the next one, whose own counts give the sums across. Each step is a matrix with whole sums of its rows and
columns. The nearest non-negative matrix with these sums (least squares, by its dual) is found first. Its fractions are
then moved along closed paths of cells, alternately up and down, until none is left: every cell becomes one of the two
whole numbers around it, and no sum of a row or a column changes. Such paths always exist, since sums are whole, so that
a row or a column with one fraction has another.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from veilcube.analyst.estimate import project_onto_simplex
from veilcube.errors import QueryError
from veilcube.system import Floats, Integers, compiled

# Fractions are counted in units of this part of a row, so that sums are exact.
UNITS = 1 << 20
ROUNDS = 300
# What sums of rows may be off by before fractions of it are handed out in order.
CLOSE = 1e-3

Mask = NDArray[np.bool_]


def whole_parts(values: Floats, total: int) -> Integers:
    """Return whole numbers of at least 0 with the sum ``total``, near to the values: largest remainders rounded up.

    >>> whole_parts(np.array([1.5, -0.4, 2.5]), 4).tolist()
    [2, 0, 2]
    """
    near = np.array(values, dtype=np.float64)
    project_onto_simplex(near, 0, near.size, float(total))
    found = np.floor(near).astype(np.int64)
    left = total - int(found.sum())
    order = np.argsort(found - near, kind="stable")
    found[order[: max(left, 0)]] += 1
    # Sums of floats may be a unit too high.
    for place in np.argsort(-found, kind="stable")[: max(-left, 0)]:
        found[place] -= 1
    return found


def whole_table(values: Floats, margins: Sequence[Integers], possible: Mask | None = None) -> Integers:
    """Return whole numbers of at least 0 near to the values, whose sums over all other axes are the ``margins``.

    Cells that are not ``possible`` stay 0.
    """
    allowed = np.ones(values.shape, dtype=np.bool_) if possible is None else possible
    # No cell that cannot be is chosen while another can.
    worth = np.where(allowed, values, values.min() - 2.0 * (float(margins[0].sum()) + 1.0))
    found = margins[0].reshape(-1)
    for axis in range(1, values.ndim):
        later = tuple(range(axis + 1, values.ndim))
        shape = (found.size, values.shape[axis])
        part = worth.sum(axis=later).reshape(shape)
        can_be: Mask = np.asarray(allowed.any(axis=later)).reshape(shape)
        found = _without_impossible(_whole_matrix(part, found, margins[axis]), can_be, part).reshape(-1)
    return found.reshape(values.shape)


def _whole_matrix(values: Floats, rows: Integers, columns: Integers) -> Integers:
    """Return the whole matrix with these sums."""
    near = _nearest(values, rows.astype(np.float64), columns.astype(np.float64))
    units = _in_units(near, rows * UNITS, columns * UNITS)
    _round_along_paths(units, UNITS)
    return units // UNITS


def _nearest(values: Floats, rows: Floats, columns: Floats) -> Floats:
    """Return about the nearest non-negative matrix with these sums, by turns over the rows and the columns.

    It is max(values + u_i + v_j, 0): given v, each row's u follows from its sum, and the other way round.
    """
    down = np.zeros(len(columns))
    found = np.zeros(values.shape)
    for _ in range(ROUNDS):
        found, across = _with_sums(values + down, rows)
        if np.abs(found.sum(axis=0) - columns).max(initial=0.0) <= CLOSE:
            break
        turned, down = _with_sums(np.ascontiguousarray(values.T + across), columns)
        found = turned.T
    return np.ascontiguousarray(found)


def _with_sums(values: Floats, sums: Floats) -> tuple[Floats, Floats]:
    """Return the rows projected to their sums, and what each was shifted by."""
    found = np.ascontiguousarray(values)
    highest = found.argmax(axis=1)
    before = found[np.arange(len(found)), highest]
    found = found.copy()
    _project_rows(found, sums)
    return found, found[np.arange(len(found)), highest] - before


@compiled
def _project_rows(values: Floats, sums: Floats) -> None:
    width = values.shape[1]
    flat = values.reshape(-1)
    for row in range(len(sums)):
        project_onto_simplex(flat, row * width, (row + 1) * width, sums[row])


def _in_units(near: Floats, rows: Integers, columns: Integers) -> Integers:
    """Return the matrix in whole units, with exactly these sums: what is missing is handed out in order."""
    scaled = near * np.minimum(1.0, _ratio(columns / UNITS, near.sum(axis=0)))
    scaled *= np.minimum(1.0, _ratio(rows / UNITS, scaled.sum(axis=1)))[:, np.newaxis]
    units = np.floor(scaled * UNITS).astype(np.int64)
    for row in np.flatnonzero(units.sum(axis=1) > rows):
        units[row] = _lowered(units[row], int(rows[row]))
    for column in np.flatnonzero(units.sum(axis=0) > columns):
        units[:, column] = _lowered(units[:, column], int(columns[column]))
    _hand_out(units, rows - units.sum(axis=1), columns - units.sum(axis=0))
    return units


def _ratio(wanted: Floats, found: Floats) -> Floats:
    return np.divide(wanted, found, out=np.ones_like(wanted), where=found > 0)


def _lowered(units: Integers, total: int) -> Integers:
    """Return units that sum to ``total`` at most, taken from the largest."""
    lowered = units.copy()
    for place in np.argsort(-lowered, kind="stable"):
        excess = int(lowered.sum()) - total
        if excess <= 0:
            break
        lowered[place] -= min(excess, int(lowered[place]))
    return lowered


@compiled
def _hand_out(units: Integers, rows: Integers, columns: Integers) -> None:
    """Add what rows and columns still lack, from the first to the last."""
    row = column = 0
    while row < len(rows) and column < len(columns):
        amount = min(rows[row], columns[column])
        units[row, column] += amount
        rows[row] -= amount
        columns[column] -= amount
        if rows[row] == 0:
            row += 1
        else:
            column += 1


@compiled
def _next_fraction(line: Integers, unit: int, start: int) -> int:
    while start < len(line) and line[start] % unit == 0:
        start += 1
    return start


@compiled
def _other_end(line: Integers, unit: int, firsts: Integers, seconds: Integers, number: int, came_by: int) -> int:
    """Return a place with a fraction other than the one that was come by; pointers only move on."""
    first = _next_fraction(line, unit, firsts[number])
    firsts[number] = first
    if first != came_by:
        return first
    second = _next_fraction(line, unit, max(seconds[number], first + 1))
    seconds[number] = second
    return second


@compiled
def _round_along_paths(units: Integers, unit: int) -> None:
    """Move fractions along closed paths until none is left; sums of rows and columns must be whole."""
    many, width = units.shape
    firsts, seconds = np.zeros(many + width, dtype=np.int64), np.zeros(many + width, dtype=np.int64)
    place_in_path = np.full(many + width, -1, dtype=np.int64)
    path = np.zeros(many + width + 1, dtype=np.int64)
    turned = units.T
    for start in range(many):
        path[0], place_in_path[start], length = start, 0, 1
        while True:
            node, before = path[length - 1], path[length - 2] if length > 1 else -1
            if length == 1 and _next_fraction(units[node], unit, firsts[node]) == width:
                break
            if node < many:
                following = many + _other_end(units[node], unit, firsts, seconds, node, before - many)
            else:
                following = _other_end(turned[node - many], unit, firsts, seconds, node, before)
            if place_in_path[following] < 0:
                path[length], place_in_path[following] = following, length
                length += 1
                continue
            begin = place_in_path[following]
            path[length] = following
            _move(units, unit, path, begin, length)
            for step in range(begin + 1, length):
                place_in_path[path[step]] = -1
            length = begin + 1
        place_in_path[start] = -1


@compiled
def _move(units: Integers, unit: int, path: Integers, begin: int, end: int) -> None:
    """Take the smaller of the two steps along a closed path that make one of its cells whole."""
    many = units.shape[0]
    up = down = unit
    for step in range(begin, end):
        one, other = path[step], path[step + 1]
        fraction = units[min(one, other), max(one, other) - many] % unit
        if (step - begin) % 2 == 0:
            up, down = min(up, unit - fraction), min(down, fraction)
        else:
            up, down = min(up, fraction), min(down, unit - fraction)
    amount = up if up <= down else -down
    for step in range(begin, end):
        one, other = path[step], path[step + 1]
        sign = 1 if (step - begin) % 2 == 0 else -1
        units[min(one, other), max(one, other) - many] += sign * amount


def _without_impossible(found: Integers, can_be: Mask, values: Floats) -> Integers:
    """Return the matrix without counts where none can be: each is exchanged with the count of another row."""
    if not (found[~can_be] > 0).any():
        return found
    found = found.copy()
    for row, column in np.argwhere((found > 0) & ~can_be):
        while found[row, column] > 0:
            others = can_be[:, column][:, np.newaxis] & can_be[row][np.newaxis] & (found > 0)
            if not others.any():
                raise QueryError(
                    "the rounded totals leave rows where the schema says that none can be; leave out whole"
                )
            best = np.unravel_index(np.argmax(np.where(others, found - values, -np.inf)), found.shape)
            amount = min(int(found[row, column]), int(found[best]))
            found[row, column] -= amount
            found[best] -= amount
            found[row, best[1]] += amount
            found[best[0], column] += amount
    return found
