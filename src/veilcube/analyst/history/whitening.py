"""Whitening: combinations of past answers whose noise is independent and of variance 1, and those without noise."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky, eigh, solve_triangular

from veilcube.errors import QueryError
from veilcube.release import History

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

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
