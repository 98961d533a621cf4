"""Conditioning on what is known exactly, and whitening of the rest: combinations with independent noise of variance 1.

The total and exact answers are constraints, never tiny variances. With E the exact queries and a_E their answers, every
query q is split into its part in the span of E, whose answer is known, and the rest. The rest has the kernel K~(q, r) =
K(q, r) - K(q, E) K(E, E)^+ K(E, r). For the total alone this is K - u u' with u = K(q, 1), and the known part of an
answer is n u.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky, eigh, qr, solve_triangular

from veilcube.errors import QueryError
from veilcube.record import History
from veilcube.system import Floats, Integers

# Shares of the largest variance below which a combination of correlated answers counts as exact.
_EXACT = 1e-12
_NO_NOISE = 1e-60  # variances of noise that no answer shows
# Noise is taken to be at least this share of that of nearly the noisiest answers (by this quantile, so that a few
# hopeless ones count for nothing): sharper answers would push what the others tell below rounding.
_SHARPEST, _NEARLY_NOISIEST = 1e-10, 0.9


@dataclass(frozen=True, eq=False)
class Combinations:
    """Rows W of combinations of answers: chosen answers divided by a number each, or any matrix after choosing."""

    chosen: Integers
    divisors: Floats | None = None
    matrix: Floats | None = None

    def __len__(self) -> int:
        return self.chosen.size if self.matrix is None else len(self.matrix)

    def apply(self, answers: Floats) -> Floats:
        """Return W times something that has one row for each answer."""
        rows = answers[self.chosen]
        if self.matrix is not None:
            return np.asarray(self.matrix @ rows)
        if self.divisors is None:
            return rows
        return np.asarray(rows / (self.divisors if rows.ndim == 1 else self.divisors[:, np.newaxis]))

    def dense(self, answers: int) -> Floats:
        """Return W as a matrix over all answers."""
        return self.apply(np.eye(answers))


@dataclass(frozen=True, eq=False)
class Whitening:
    """``noisy`` combinations W with W Σ W' = I, ``exact`` ones without noise, and the ``scales`` that undo W.

    Independent answers are divided by their standard deviations, so that a scale times an error in a combination is an
    error in an answer. Correlated ones are combined by the Cholesky factor of Σ: each answer, less what the noise of
    those before it tells of its own.
    """

    noisy: Combinations
    exact: Combinations
    scales: Floats

    @classmethod
    def of(cls, history: History) -> "Whitening":
        """Return the combinations of a history's answers."""
        noisy, exact = np.flatnonzero(history.variances > _NO_NOISE), np.flatnonzero(history.variances <= _NO_NOISE)
        variances = _raised(history.variances[noisy])
        if history.covariance is None:
            spread = np.sqrt(variances)
            return cls(Combinations(noisy, spread), Combinations(exact), spread)
        covariance = history.covariance[np.ix_(noisy, noisy)] + np.diag(variances - history.variances[noisy])
        try:
            factor = cholesky(covariance, lower=True, check_finite=False)
            diagonal = np.diagonal(factor).copy()
            if (np.square(diagonal) > _EXACT * variances).all():
                inverse = solve_triangular(factor, np.eye(noisy.size), lower=True, check_finite=False)
                return cls(Combinations(noisy, matrix=inverse), Combinations(exact), diagonal)
        except LinAlgError:
            pass
        return cls._of_singular(covariance, noisy, exact)

    @classmethod
    def _of_singular(cls, covariance: Floats, noisy: Integers, exact: Integers) -> "Whitening":
        """Return the principal combinations of answers whose noise cancels in some combinations."""
        values, vectors = eigh(covariance, check_finite=False)
        if values[0] < -np.sqrt(_EXACT) * values[-1]:
            raise QueryError("the covariance matrix of the history is not one: it must be symmetric and not indefinite")
        kept = values > _EXACT * values[-1]
        spread = np.sqrt(values[kept])
        cancelled = np.zeros((int((~kept).sum()) + exact.size, noisy.size + exact.size))
        cancelled[: int((~kept).sum()), : noisy.size] = vectors[:, ~kept].T
        cancelled[int((~kept).sum()) :, noisy.size :] = np.eye(exact.size)
        without_noise = Combinations(np.concatenate([noisy, exact]), matrix=cancelled)
        return cls(Combinations(noisy, matrix=vectors[:, kept].T / spread[:, np.newaxis]), without_noise, spread)


def _raised(variances: Floats) -> Floats:
    """Return the variances, the sharpest raised to what arithmetic can tell beside the others; never lower."""
    if not variances.size:
        return variances
    return np.maximum(variances, _SHARPEST * float(np.quantile(variances, _NEARLY_NOISIEST, method="lower")))


# Directions of exact queries that are this short, relative to the queries, repeat others.
_REPEATED = 1e-10
# What exact answers may disagree by, relative to the numbers that are compared: where their queries depend on each
# other but for rounding (eigenvalues below this), and where they nearly do.
_ROUNDING, _DEPENDENT = 1e-9, 1e-14
_NEARLY = 1e-6
_FAR_ROUNDING = 1e-12  # what the largest answer leaves in all combinations


@dataclass(frozen=True, eq=False)
class Conditioning:
    """Orthonormal directions of the exact queries, as ``rows`` (directions, exact queries), and their ``answers``."""

    exact: Combinations
    rows: Floats
    answers: Floats
    has_total: bool

    @classmethod
    def of(
        cls, exact: Combinations, kernel: Floats, means: Floats, values: Floats, total: float | None
    ) -> "Conditioning":
        """Return the directions of a history's exact answers and, if it is given, of the total."""
        between = exact.apply(exact.apply(kernel).T)
        known = exact.apply(values)
        if total is not None:
            across = exact.apply(means)
            between = np.block([[between, across[:, np.newaxis]], [across[np.newaxis, :], np.ones((1, 1))]])
            known = np.append(known, total)
        lengths = np.sqrt(np.diagonal(between)).copy()
        lengths[lengths == 0] = 1.0
        squares, vectors = np.linalg.eigh(between / np.outer(lengths, lengths))
        kept = squares > _REPEATED * max(len(lengths), 1)
        scaled = known / lengths
        if _is_contradiction(squares, vectors, kept, scaled):
            raise QueryError(
                "the history contradicts itself: its exact answers, with the total if one was given, cannot all be "
                "true; remove the wrong one or give it the variance it has"
            )
        rows = (vectors[:, kept] / np.sqrt(squares[kept])).T / lengths
        return cls(exact, rows, rows @ known, total is not None)

    def coordinates(self, kernel: Floats, means: Floats) -> Floats:
        """Return how far queries lie in each direction, from their inner products with history and their means."""
        across = self.exact.apply(kernel.T).T
        if self.has_total:
            across = np.column_stack([across, means])
        return np.asarray(across @ self.rows.T)


def _is_contradiction(squares: Floats, vectors: Floats, kept: NDArray[np.bool_], scaled: Floats) -> bool:
    """Whether some combination of the exact queries that is 0 has an answer that is not.

    Each combination is compared with the answers it combines, not with the largest of all. What rounding of the
    eigenvectors lets in from the others is its first-order perturbation, δ Σ |v'a| / λ.
    """
    largest = float(np.abs(scaled).max(initial=0.0))
    null = squares <= _DEPENDENT * scaled.size
    nearly = ~kept & ~null
    if np.abs(vectors[:, nearly].T @ scaled).max(initial=0.0) > _NEARLY * largest:
        return True
    if not null.any():
        return False
    combinations = _separated(vectors[:, null].T)
    delta = 10 * scaled.size * np.finfo(np.float64).eps
    let_in = delta * float(np.linalg.norm((vectors[:, ~null].T @ scaled) / squares[~null]))
    allowed = _ROUNDING * (np.abs(combinations) @ np.abs(scaled)) + _FAR_ROUNDING * largest + let_in
    return bool((np.abs(combinations @ scaled) > allowed).any())


def _separated(combinations: Floats) -> Floats:
    """Return other combinations with the same span, each of as few queries as elimination finds."""
    triangle, order = qr(combinations, mode="r", pivoting=True, check_finite=False)
    count = len(combinations)
    found = np.empty_like(combinations)
    found[:, order] = solve_triangular(triangle[:, :count], triangle, check_finite=False)
    return found
