"""Linear refinements in general, A X + D c + h (Ying, Wu and Wang 2013, Definition 7), with their theory's checks."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from veilcube.analyst.refine.answers.answers import read_factor
from veilcube.analyst.refine.facts import read_numbers
from veilcube.errors import QueryError
from veilcube.system import Floats

_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class LinearRefinement:
    """X ↦ A X + D c + h for facts B'μ = c: A (answers, answers), D and B (answers, facts), h (answers,), 0 if left out.

    The shapes are checked, nothing else: a refinement for study may be biased or break its facts.
    """

    A: ArrayLike
    D: ArrayLike
    B: ArrayLike
    h: ArrayLike | None = None

    def __post_init__(self) -> None:
        matrix = read_square(self.A)
        size = len(matrix)
        object.__setattr__(self, "A", matrix)
        for name in ("D", "B"):
            columns = read_numbers(getattr(self, name), name)
            columns = columns.reshape(-1, 1) if columns.ndim == 1 else columns
            if columns.ndim != 2 or len(columns) != size:
                raise QueryError(f"{name} must have one row per answer ({size}), not the shape {columns.shape}")
            object.__setattr__(self, name, columns)
        if np.shape(self.D) != np.shape(self.B):
            raise QueryError("D and B must have the same shape: one row per answer, one column per fact")
        offset = np.zeros(size) if self.h is None else read_numbers(self.h, "h")
        if offset.shape != (size,):
            raise QueryError(f"h must have one entry per answer ({size}), not the shape {offset.shape}")
        object.__setattr__(self, "h", offset)

    def _arrays(self) -> tuple[Floats, Floats, Floats, Floats]:
        return np.asarray(self.A), np.asarray(self.D), np.asarray(self.B), np.asarray(self.h)

    def apply(self, values: ArrayLike, c: ArrayLike) -> Floats:
        """Return A X + D c + h for answers X, one vector or one in each row."""
        matrix, shares, _, offset = self._arrays()
        given, constants = read_numbers(values, "values"), np.atleast_1d(read_numbers(c, "c"))
        if given.shape[-1:] != offset.shape or constants.shape != shares.shape[1:]:
            raise QueryError(f"values must end in {len(offset)} answers and c must have {shares.shape[1]} entries")
        return np.asarray(given @ matrix.T + shares @ constants + offset)

    def is_unbiased(self) -> bool:
        """Return whether E(A X + D c + h) = μ for all μ with c = B'μ, that is A + D B' = I and h = 0."""
        matrix, shares, facts, offset = self._arrays()
        whole = matrix + shares @ facts.T
        return _equal(whole, np.eye(len(matrix)), matrix, shares) and _equal(offset, 0 * offset, matrix)

    def is_constrained(self) -> bool:
        """Return whether every X and every possible c gives B'(A X + D c + h) = c: B'A = 0, B'D B' = B', B'h = 0."""
        matrix, shares, facts, offset = self._arrays()
        return (
            _equal(facts.T @ matrix, 0 * facts.T, facts, matrix)
            and _equal(facts.T @ shares @ facts.T, facts.T, facts, shares)
            and _equal(facts.T @ offset, np.zeros(facts.shape[1]), facts)
        )

    def covariance(self, noise: ArrayLike) -> Floats:
        """Return A S A', the covariance of the refined answers, for S as ``refine`` takes its covariance."""
        matrix, *_ = self._arrays()
        root = matrix @ read_factor(noise, len(matrix))
        return np.asarray(root @ root.T)


def best_refinement(
    B: ArrayLike,  # noqa: N803 - the paper's name
    covariance: ArrayLike | None = None,
) -> LinearRefinement:
    """Return D = S B (B'S B)⁺, A = I - D B', h = 0: what ``refine`` does, as matrices (Theorem 3 for any noise S).

    >>> best_refinement([1, 1]).A
    array([[ 0.5, -0.5],
           [-0.5,  0.5]])
    """
    facts = read_numbers(B, "B")
    facts = facts.reshape(-1, 1) if facts.ndim == 1 else facts
    if facts.ndim != 2 or not len(facts):
        raise QueryError(f"B must have one row per answer and one column per fact, not the shape {facts.shape}")
    root = np.eye(len(facts)) if covariance is None else read_factor(covariance, len(facts))
    # With S = L L' and M = L'B, S B (B'S B)⁺ = L (M⁺)': the pseudo-inverse of M, not of its square, keeps the digits.
    shares = root @ np.linalg.pinv(root.T @ facts, rcond=1e-10).T
    return LinearRefinement(np.eye(len(facts)) - shares @ facts.T, shares, facts)


def read_square(matrix: ArrayLike) -> Floats:
    """Return the matrix A of a refinement, checked to be square."""
    square = read_numbers(matrix, "A")
    if square.ndim != 2 or square.shape[0] != square.shape[1] or not square.size:
        raise QueryError(f"A must be a square matrix, answers by answers, not of the shape {square.shape}")
    return square


def _equal(found: Floats, wanted: Floats, *parts: Floats) -> bool:
    """Return whether two matrices agree, up to rounding relative to the numbers that they were computed from."""
    size = np.prod([max(1.0, float(np.abs(part).max(initial=0.0))) for part in parts])
    return bool(np.abs(found - wanted).max(initial=0.0) <= _ROUNDING * size)
