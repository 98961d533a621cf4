"""A one-axis strategy made to measure: each cell on its own, and a few shared rows of free whole numbers.

A = [diag(own); shared], where ``shared`` is sparse (p rows, p much smaller than the n cells) and every column of A has
the same sum. With E = diag(own)^-2 and C = shared, Woodbury's identity gives (A'A)^-1 = E - E C'K C E with
K = (I + C E C')^-1, so least squares, noise weights and variances take O(n p) time and memory; no n x n matrix is made.
The noise weights of a query q are k = K C E q on the shared rows and (q - C'k) / own on the cells' own.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import accumulate

import numpy as np
import scipy
from numpy.typing import NDArray

from veilcube.errors import PlanError
from veilcube.operators.base import AxisMoments, ColumnProducts, Moments, products_of_columns, read_size
from veilcube.system import Floats, Integers, compiled, share_out

LARGEST_MATCHED = 4096
MOST_SHARED_ROWS = 1024
MOST_ENTRIES = 1 << 18
LARGEST_COLUMN_SUM = 1 << 20


class MatchedAxis(AxisMoments):
    """Whole-number rows over the cells of one attribute: one per cell, then the shared ones.

    ``shared`` is a sparse matrix (rows, cells) of whole numbers >= 0. What the shared rows leave of ``column_sum`` is
    the multiplier of the cell's own row, at least 1, so A has full column rank and all its columns have the same sum.
    ``MatchedAxis.of_own`` takes the multipliers themselves: for Gaussian noise columns have about the same L2 norm.

    >>> axis = MatchedAxis(3, np.array([[1, 1, 0, 0], [0, 0, 1, 2]]))
    >>> axis.rows, axis.own.tolist(), axis.apply(np.array([5, 0, 1, 1])).tolist()
    (6, [2, 2, 2, 1], [10, 0, 2, 1, 5, 3])
    """

    def __init__(self, column_sum: int, shared: "NDArray[np.int64] | scipy.sparse.csr_array") -> None:
        matrix = scipy.sparse.csr_array(shared, dtype=np.int64)
        matrix.eliminate_zeros()
        matrix.sort_indices()
        rows, size = matrix.shape
        if not 1 <= size <= LARGEST_MATCHED or rows > MOST_SHARED_ROWS:
            raise PlanError(
                f"a matched axis has 1 to {LARGEST_MATCHED} cells and at most {MOST_SHARED_ROWS} shared rows, not "
                f"{size} and {rows}; use a tree for larger ones"
            )
        if not 1 <= column_sum <= LARGEST_COLUMN_SUM or (matrix.data < 0).any():
            raise PlanError(
                f"a matched axis has whole entries of at least 0 and a column sum of 1 to {LARGEST_COLUMN_SUM}"
            )
        own = column_sum - np.asarray(matrix.sum(axis=0), dtype=np.int64)
        if (own < 1).any():
            raise PlanError("the shared rows of a matched axis must leave each cell at least 1 of the column sum")
        self.has_equal_sums = True
        self.size, self.rows, self.column_sum = int(size), int(size + rows), int(column_sum)
        self.own, self.shared = own, matrix

    @classmethod
    def of_own(cls, own: Integers, shared: "NDArray[np.int64] | scipy.sparse.csr_array") -> "MatchedAxis":
        """Return the axis whose cells have these multipliers in rows of their own.

        >>> MatchedAxis.of_own(np.array([3, 1]), np.array([[1, 1]])).column_sums().tolist()
        [4, 2]
        """
        matrix = scipy.sparse.csr_array(shared, dtype=np.int64)
        if own.shape != matrix.shape[1:] or (own < 1).any():
            raise PlanError("a matched axis has a multiplier of at least 1 for each cell's own row")
        sums = own + np.asarray(matrix.sum(axis=0), dtype=np.int64)
        axis = cls(int(sums.max()), matrix)
        axis.has_equal_sums, axis.own = bool((sums == sums[0]).all()), own.astype(np.int64)
        return axis

    @property
    def keeps_totals(self) -> bool:
        """False: rows matched to a workload may leave the total with enormous noise."""
        return False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MatchedAxis) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        arrays = self.own, self.shared.indptr, self.shared.indices, self.shared.data
        return self.size, self.column_sum, *(array.astype(np.int64).tobytes() for array in arrays)

    def __repr__(self) -> str:
        return f"MatchedAxis({self.size} cells, {self.shared.shape[0]} shared rows, column sum {self.column_sum})"

    def apply(self, cells: Integers) -> Integers:
        """Return each cell's count times its multiplier, then the shared rows."""
        flat = self._matrix(cells, self.size).astype(np.int64, copy=False)
        measured = np.concatenate([flat * self.own, (self.shared @ flat.T).T], axis=1)
        return measured.reshape((*cells.shape[:-1], self.rows))

    def adjoint(self, measurements: Floats) -> Floats:
        """Return A' y."""
        flat = self._matrix(measurements, self.rows).astype(np.float64, copy=False)
        result: Floats = flat[:, : self.size] * self.own + (self._entries.T @ flat[:, self.size :].T).T
        return result.reshape((*measurements.shape[:-1], self.size))

    def solve(self, measurements: Floats | Integers) -> Floats:
        """Return the least-squares estimate of the cells.

        The cells' own measurements give a first estimate; what the shared rows say beyond it corrects it by the gain
        E C'K (the update of recursive least squares), which loses no digits to large counts.
        """
        flat = self._matrix(measurements, self.rows).astype(np.float64, copy=False)
        first = flat[:, : self.size] / self.own
        surprise = flat[:, self.size :] - (self._entries @ first.T).T
        correction = self._spread.T @ scipy.linalg.cho_solve(self._factor, surprise.T)
        estimate: Floats = first + correction.T
        return estimate.reshape((*measurements.shape[:-1], self.size))

    def noise_weights(self, query: Floats) -> Floats:
        """Return A (A'A)^-1 q."""
        flat = self._matrix(query, self.size).astype(np.float64, copy=False)
        pulls = scipy.linalg.cho_solve(self._factor, self._spread @ flat.T)
        weights = np.concatenate([(flat - (self._entries.T @ pulls).T) / self.own, pulls.T], axis=1)
        return weights.reshape((*query.shape[:-1], self.rows))

    def column_sums(self) -> Integers:
        """Return the column sum for each cell."""
        if self.has_equal_sums:
            return np.full(self.size, self.column_sum, dtype=np.int64)
        return self.own + np.asarray(self.shared.sum(axis=0), dtype=np.int64)

    def least_shared(self) -> int:
        """Return the least overlap of two columns: only shared rows overlap; one cell shares its whole column."""
        if self.size == 1:
            return self.column_sum
        columns = self.shared.tocsc()
        return int(_least_overlap(columns.indptr, columns.indices, columns.data, self.column_sum))

    @property
    def largest_square(self) -> int:
        """The largest squared L2 norm of a column, whose entries add up to at most 2^20."""
        return int((np.square(self.own) + np.asarray(self.shared.power(2).sum(axis=0))).max())

    def column_products(self) -> tuple[ColumnProducts, ...]:
        """Return the farthest pairs of columns: only shared rows overlap, the cells' own rows add to the norms."""
        return products_of_columns(self.shared.toarray().T, [own**2 for own in self.own.tolist()])

    def variance_of_ranges(self, low: Integers, high: Integers) -> Floats:
        """Return q'(A'A)^-1 q of each inclusive range in O(p): q'E q less the squared length of L^-1 C E q, LL' = K^-1.

        Both are differences of sums over prefixes.
        """
        start, stop = np.asarray(low, dtype=np.int64), np.asarray(high, dtype=np.int64) + 1
        before = np.concatenate([[0.0], np.cumsum(1.0 / np.square(self.own, dtype=np.float64))])
        variance: Floats = before[stop] - before[start]
        table = self._prefix_factors
        share_out(
            lambda first, last: _less_squared_distance(table, start, stop, variance, first, last),
            len(start),
            len(start) * table.shape[1],
        )
        return variance

    def moments_of_steps(self, cuts: Integers, values: Floats) -> Moments:
        """Return the moments of step functions: the shared rows' weights from prefixes, then one pass over cells."""
        cuts = np.ascontiguousarray(cuts, dtype=np.int64)
        values = np.ascontiguousarray(values, dtype=np.float64)
        found = Moments(*np.empty((3, len(cuts))))
        powers = found.second, found.fourth, found.sixth
        columns = self._entries.tocsc()
        own, table = self.own.astype(np.float64), self._prefix_pulls

        def part(first: int, last: int) -> None:
            _step_moments(own, columns.indptr, columns.indices, columns.data, table, cuts, values, powers, first, last)

        share_out(part, len(cuts), len(cuts) * self.rows)
        return found

    def to_dict(self) -> dict[str, object]:
        """Return the plain data it is rebuilt from: each shared row as its first cell and its entries from there on."""
        own = {} if self.has_equal_sums else {"own": self.own.tolist()}
        return {"kind": "matched", "size": self.size, "column_sum": self.column_sum, **own, "shared": self._runs()}

    def _runs(self) -> list[list[int]]:
        runs = []
        for first, last in zip(self.shared.indptr[:-1], self.shared.indptr[1:], strict=True):
            cells, entries = self.shared.indices[first:last], self.shared.data[first:last]
            start = int(cells[0]) if len(cells) else 0
            dense = np.zeros(int(cells[-1]) - start + 1 if len(cells) else 0, dtype=np.int64)
            dense[cells - start] = entries
            runs.append([start, *dense.tolist()])
        return runs

    def _matrix(self, array: NDArray[np.generic], length: int) -> NDArray[np.generic]:
        if array.shape[-1] != length:
            raise ValueError(f"the last axis must have {length} entries, not {array.shape[-1]}")
        return array.reshape(-1, length)

    @cached_property
    def _entries(self) -> "scipy.sparse.csr_array":
        """C as floats."""
        return self.shared.astype(np.float64)

    @cached_property
    def _spread(self) -> "scipy.sparse.csr_array":
        """C E."""
        scaled = self._entries.copy()
        scaled.data /= np.square(self.own[scaled.indices].astype(np.float64))
        return scaled

    @cached_property
    def _factor(self) -> tuple[Floats, bool]:
        """The Cholesky factor of K^-1 = I + C E C', lower."""
        inner = (self._entries @ self._spread.T).toarray() + np.eye(self.rows - self.size)
        return np.asfortranarray(scipy.linalg.cholesky(inner, lower=True)) if inner.size else inner, True

    @cached_property
    def _prefixes(self) -> Floats:
        """C E q for each prefix q, a row for every number of cells from none to all."""
        sums = np.zeros((self.size + 1, self.rows - self.size))
        np.cumsum(self._spread.toarray().T, axis=0, out=sums[1:])
        return sums

    @cached_property
    def _prefix_factors(self) -> Floats:
        if not self._prefixes.size:
            return self._prefixes
        return np.ascontiguousarray(scipy.linalg.solve_triangular(self._factor[0], self._prefixes.T, lower=True).T)

    @cached_property
    def _prefix_pulls(self) -> Floats:
        if not self._prefixes.size:
            return self._prefixes
        return np.ascontiguousarray(scipy.linalg.cho_solve(self._factor, self._prefixes.T).T)


def read_matched_axis(data: Mapping[str, object]) -> MatchedAxis:
    """Rebuild from ``to_dict``; takes no more memory than a small multiple of the text."""
    size, column_sum, runs = read_size(data["size"]), data["column_sum"], data["shared"]
    if type(column_sum) is not int or not isinstance(runs, list):
        raise TypeError("a matched axis needs a whole column sum and a list of shared rows")
    if size > LARGEST_MATCHED or len(runs) > MOST_SHARED_ROWS:
        raise ValueError(f"a matched axis has at most {LARGEST_MATCHED} cells and {MOST_SHARED_ROWS} shared rows")
    if not all(isinstance(run, list) and run and all(type(number) is int for number in run) for run in runs):
        raise TypeError("a shared row is a list of whole numbers")
    if sum(map(len, runs)) > MOST_ENTRIES + len(runs):
        raise ValueError(f"the shared rows of a matched axis have at most {MOST_ENTRIES} entries")
    if any(run[0] < 0 or run[0] + len(run) - 1 > size for run in runs):
        raise ValueError("a shared row leaves the axis")
    if any(not 0 <= entry <= LARGEST_COLUMN_SUM for run in runs for entry in run[1:]):
        raise ValueError(f"the entries of a shared row lie between 0 and {LARGEST_COLUMN_SUM}")
    own = data.get("own")
    if own is not None and not (isinstance(own, list) and len(own) == size and all(type(n) is int for n in own)):
        raise TypeError("the cells of a matched axis have whole multipliers, one each")
    if own is not None and not all(1 <= number <= LARGEST_COLUMN_SUM for number in own):
        raise ValueError(f"the multipliers of the cells of a matched axis lie between 1 and {LARGEST_COLUMN_SUM}")
    try:
        shared = _from_runs(size, runs)
        return MatchedAxis(column_sum, shared) if own is None else MatchedAxis.of_own(np.array(own), shared)
    except PlanError as problem:
        raise ValueError(str(problem)) from problem


def _from_runs(size: int, runs: Sequence[Sequence[int]]) -> "scipy.sparse.csr_array":
    pointers = np.array([0, *accumulate(len(run) - 1 for run in runs)], dtype=np.int64)
    cells = [run[0] + offset for run in runs for offset in range(len(run) - 1)]
    entries = [entry for run in runs for entry in run[1:]]
    arrays = np.array(entries, dtype=np.int64), np.array(cells, dtype=np.int64), pointers
    return scipy.sparse.csr_array(arrays, shape=(len(runs), size))


@compiled
def _least_overlap(pointers: Integers, rows: Integers, entries: Integers, most: int) -> int:
    """Return the least over pairs of columns of Σ_r min(A_ri, A_rj); the rows of each column are sorted."""
    least = most
    for i in range(len(pointers) - 1):
        for j in range(i):
            overlap, a, b = 0, pointers[i], pointers[j]
            while a < pointers[i + 1] and b < pointers[j + 1]:
                if rows[a] == rows[b]:
                    overlap += min(entries[a], entries[b])
                    a += 1
                    b += 1
                elif rows[a] < rows[b]:
                    a += 1
                else:
                    b += 1
            least = min(least, overlap)
            if least == 0:
                return 0
    return least


@compiled
def _less_squared_distance(
    table: Floats, start: Integers, stop: Integers, result: Floats, first: int, last: int
) -> None:
    """Subtract from each result the squared distance between two rows of the table."""
    for query in range(first, last):
        total = 0.0
        for r in range(table.shape[1]):
            difference = table[stop[query], r] - table[start[query], r]
            total += difference * difference
        result[query] -= total


@compiled
def _step_moments(
    own: Floats,
    pointers: Integers,
    rows: Integers,
    entries: Floats,
    table: Floats,
    cuts: Integers,
    values: Floats,
    powers: tuple[Floats, Floats, Floats],
    first: int,
    last: int,
) -> None:
    """Sum the even powers of the noise weights of step functions; ``table`` holds K C E q of prefixes q."""
    size = len(own)
    pulls = np.empty(table.shape[1])
    for query in range(first, last):
        pulls[:] = 0.0
        start = 0
        for step in range(values.shape[1]):
            stop = cuts[query, step] if step < cuts.shape[1] else size
            if values[query, step] != 0.0:
                for r in range(len(pulls)):
                    pulls[r] += values[query, step] * (table[stop, r] - table[start, r])
            start = stop
        second = fourth = sixth = 0.0
        for r in range(len(pulls)):
            square = pulls[r] ** 2
            second += square
            fourth += square**2
            sixth += square**3
        step, value = 0, values[query, 0]
        for cell in range(size):
            while step < cuts.shape[1] and cell >= cuts[query, step]:
                step += 1
                value = values[query, step]
            weight = value
            for at in range(pointers[cell], pointers[cell + 1]):
                weight -= entries[at] * pulls[rows[at]]
            square = (weight / own[cell]) ** 2
            second += square
            fourth += square**2
            sixth += square**3
        powers[0][query], powers[1][query], powers[2][query] = second, fourth, sixth
