"""Kernel ridge for any alpha from one eigendecomposition, and the choice of alpha from the history itself.

In whitened units, with G the kernel of the noisy answers and y the answers less what is known exactly, G = U Λ U' once,
and B = (G + I/α²)^-1 = U diag(d) U' with d = 1/(λ + 1/α²) for every alpha. A free total adds the drift t, the answers
that a table of the prior alone would give for each row, and B_t = B - B t t' B / (t' B t) takes the place of B
(universal kriging). The error of answer i's estimate from all others is (B_t y)_i / (B_t)_ii.

Exact leave-one-out and cross-validation in k groups, as published, estimate the mean squared error of answers to
queries like the past ones: the mean squared difference from answers that were left out, less the mean variance of these
(Theorem 4). The data are not touched, so nothing is spent.
"""

import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import brentq, minimize_scalar

from veilcube.errors import QueryError
from veilcube.system import Floats, read_real, show

_LOWEST, _HIGHEST = -1.0, 4.5  # decades of alpha about the largest eigenvalue's
_STEPS_OF_A_DECADE = 12
# One sharp answer makes the largest eigenvalue say nothing of the others: the grid also reaches this many decades
# beyond where a small eigenvalue (this share of them are smaller) is believed.
_BEYOND, _SMALL_SHARE = 1.0, 0.05
_RULED_OUT = 2.71  # the 90% point of chi-squared with one degree: 95% on one side


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenvalues λ, eigenvectors U (columns), and U'y and U't; ``drift`` is None where the total is not free."""

    values: Floats
    vectors: Floats
    answers: Floats
    drift: Floats | None = None

    @classmethod
    def of(cls, kernel: Floats, answers: Floats, drift: Floats | None) -> "Spectrum":
        """Decompose a kernel in whitened units, which is overwritten."""
        values, vectors = (
            eigh(kernel, driver="evd", overwrite_a=True, check_finite=False)
            if answers.size
            else (np.empty(0), np.empty((0, 0)))
        )
        rotated = None if drift is None else vectors.T @ drift
        return cls(np.maximum(values, 0.0), vectors, vectors.T @ answers, rotated)

    @cached_property
    def rounding(self) -> float:
        """Eigenvalues at or below this one cannot be told from 0."""
        return float(self.values.max(initial=0.0)) * self.values.size * np.finfo(np.float64).eps

    def filter(self, alpha: float) -> Floats:
        """Return d, which is 1/λ, or 0 where λ is 0, for an infinite alpha."""
        with np.errstate(over="ignore", divide="ignore"):
            shrinking = np.square(1.0 / np.float64(alpha))
        if shrinking < self.rounding or shrinking == 0:  # it cannot be told from 0 beside the eigenvalues
            usable = self.values > self.rounding
            return np.where(usable, 1.0 / np.where(usable, self.values, 1.0), 0.0)
        return np.asarray(1.0 / (self.values + shrinking))

    def weights(self, along: Floats, means: Floats, alpha: float) -> Floats:
        """Return U'v for queries, v the weight of each whitened answer in theirs: v = B k + B t (u - t'B k)/(t'B t).

        ``along`` are the queries' inner products with the eigenvectors, U'k, one row each, and ``means`` their u.
        """
        filtered = self.filter(alpha)
        weights = along * filtered
        if self.drift is not None:
            missing = means - along @ (filtered * self.drift)
            # The size of the drift depends on d up to a factor only, and without it alpha = 0 is no exception.
            largest = float(filtered.max())
            pulled = self.drift * (filtered / largest if largest > 0 else 1.0)
            weights += np.outer(missing / (self.drift @ pulled), pulled)
        return weights

    def errors_of(self, weights: Floats, along: Floats, norms: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the variance of each answer's noise, |q - q'|² with q' the query that is really answered, and Σ v⁴.

        The last one tells how far the noise is from a normal law: it is as large as the variance squared where one
        past answer brings all of it.
        """
        noise = np.square(weights).sum(axis=1)
        distance = norms - 2 * (weights * along).sum(axis=1) + np.square(weights) @ self.values
        fourth = np.square(np.square(weights @ self.vectors.T)).sum(axis=1)
        return noise, np.maximum(distance, 0.0), fourth

    def grid(self, *, whole: bool = False) -> Floats:
        """Return the alphas that are tried: from where everything is shrunk away to where hardly anything is.

        The whole grid ends only where 1/α² is lost in rounding.
        """
        usable = self.values[self.values > self.rounding]
        largest = self._largest
        small = float(np.quantile(usable, _SMALL_SHARE)) if usable.size else largest
        last = -np.log10(self._relative_rounding) / 2 - 0.1
        furthest = last if whole else min(_BEYOND + np.log10(largest / small) / 2, last)
        return np.asarray(10 ** _decades(max(_HIGHEST, furthest)) / np.sqrt(largest))

    @property
    def _largest(self) -> float:
        return float(self.values.max(initial=0.0)) or 1.0

    @property
    def _relative_rounding(self) -> float:
        return float(max(self.values.size, 1) * np.finfo(np.float64).eps)

    def leave_one_out(self, alphas: Floats) -> Floats:
        """Return the whitened error of each answer's estimate from all others, (answers, alphas), exactly."""
        filters = np.stack([self.filter(alpha) for alpha in alphas.tolist()], axis=1)
        residuals = self.vectors @ (filters * self.answers[:, np.newaxis])
        diagonal = np.square(self.vectors) @ filters
        if self.drift is not None:
            pulled = filters * self.drift[:, np.newaxis]
            strength = self.drift @ pulled
            spread = self.vectors @ pulled
            residuals -= spread * ((self.answers @ pulled) / strength)
            diagonal -= np.square(spread) / strength
        # An answer that no other one tells anything about is all drift: there is nothing to compare it with.
        alone = diagonal <= np.finfo(np.float64).eps * filters.max(axis=0)
        return np.where(alone, 0.0, residuals / np.where(alone, 1.0, diagonal))

    @cached_property
    def likely_scale(self) -> float:
        """The most likely scale τ of the data's distance from the prior, given the answers, in the units of alpha.

        Along eigenvector i an answer is noise of variance 1, plus a deviation of variance τ² λ_i, plus the drift. A
        free total is integrated out (restricted likelihood).
        """
        if not self.answers.size:
            return 0.0
        tried = self._log_scales
        best = int(np.argmin([self._surprise(log_scale) for log_scale in tried.tolist()]))
        around = (tried[max(best - 1, 0)], tried[min(best + 1, tried.size - 1)])
        return float(np.exp(minimize_scalar(self._surprise, bounds=around, method="bounded").x))

    @cached_property
    def largest_scale(self) -> float:
        """The largest scale τ that the answers do not rule out at 95%, by the ratio of likelihoods.

        Few answers cannot tell data at the prior from data some way off; what they leave open belongs into the bias.
        """
        if not self.answers.size:
            return 0.0
        best, end = float(np.log(self.likely_scale)), float(self._log_scales[-1])
        limit = self._surprise(best) + _RULED_OUT
        if best >= end or self._surprise(end) <= limit:
            return float(np.exp(max(best, end)))
        return float(np.exp(brentq(lambda log_scale: self._surprise(log_scale) - limit, best, end)))

    @cached_property
    def finest(self) -> "Spectrum":
        """The half of the eigenvectors that tells least: differences between neighbours, and not broad slopes."""
        usable = np.flatnonzero(self.values > self.rounding)
        kept = usable[self.values[usable] <= np.median(self.values[usable])] if usable.size else usable
        # Differences alone, such as wavelets, have no part in a free total.
        drift = None if self.drift is None or not self.drift[kept].any() else self.drift[kept]
        return Spectrum(self.values[kept], self.vectors[:, kept], self.answers[kept], drift)

    @cached_property
    def _log_scales(self) -> Floats:
        """Logarithms of scales to try, up to where every answer that has an eigenvalue would be no surprise.

        Beyond that the likelihood can only fall, or the answers are too few to say anything of the scale.
        """
        usable = self.values > self.rounding
        needed = np.abs(self.answers[usable]) / np.sqrt(self.values[usable] / self._largest)
        furthest = np.log10(max(float(needed.max(initial=0.0)), 1.0)) + 2.0
        told = usable.sum() > (0 if self.drift is None else 1)
        decades = _decades(max(_HIGHEST, furthest) if told else _HIGHEST)
        return np.asarray(np.log(10.0) * decades - np.log(self._largest) / 2)

    def _surprise(self, log_scale: float) -> float:
        """Return minus twice the log-likelihood of the answers, apart from a constant."""
        spread = 1.0 + np.exp(2 * log_scale + np.log(self._largest)) * (self.values / self._largest)
        if self.drift is None:
            return float((np.log(spread) + np.square(self.answers) / spread).sum())
        pulled = self.drift / spread
        strength = pulled @ self.drift
        rest = self.answers - self.drift * (pulled @ self.answers / strength)
        return float((np.log(spread) + np.square(rest) / spread).sum() + np.log(strength))


def _decades(highest: float) -> Floats:
    """Return the powers of ten from the lowest that is tried to at least ``highest``, in even steps."""
    steps = int(np.ceil((highest - _LOWEST) * _STEPS_OF_A_DECADE - 1e-9))
    return np.asarray(_LOWEST + np.arange(steps + 1) / _STEPS_OF_A_DECADE)


# The groups of a cross-validation are drawn with a fixed seed: the same history gives the same answers.
_SEED = 20120326
# Squared errors that fall by more than this share of the noise in the last step say that a larger alpha does better.
_STILL_FALLING = 0.01


@dataclass(frozen=True, eq=False)
class AlphaSearch:
    """The alphas that were tried, and the root mean squared error that the history predicts for each."""

    alphas: Floats
    errors: Floats
    best: float


def read_alpha(alpha: object, words: str = "") -> float:
    """Return an alpha that is given as a number; ``words`` are those that may stand in its place."""
    try:
        number = read_real(alpha, "alpha", infinite=True)
    except QueryError:
        number = -1.0
    if number < 0:
        allowed = f"{words}, or a number from 0 to infinity" if words else "a number from 0 to infinity here"
        raise QueryError(f"alpha is {allowed}, not {show(alpha)}")
    return number


def leave_one_out(spectrum: Spectrum, scales: Floats) -> AlphaSearch:
    """Try every alpha of the grid on each answer, estimated from all others; ``scales`` undo the whitening.

    Where the best is the last one and errors still fall there, the whole grid is tried.
    """
    alphas = spectrum.grid()
    errors = spectrum.leave_one_out(alphas)
    if _is_cut_off(_squared(errors, scales), scales):
        alphas = spectrum.grid(whole=True)
        errors = spectrum.leave_one_out(alphas)
    return _search(alphas, errors, scales)


def cross_validate(
    alphas: Floats, kernel: Floats, answers: Floats, drift: Floats | None, scales: Floats, folds: int
) -> AlphaSearch:
    """Try the alphas on each of ``folds`` groups of answers, estimated from the other groups."""
    groups = np.arange(answers.size) % folds
    np.random.default_rng(_SEED).shuffle(groups)
    errors = np.empty((answers.size, alphas.size))
    for group in range(folds):
        test, train = groups == group, groups != group
        lines = kernel[np.ix_(test, train)]
        spectrum = Spectrum.of(kernel[np.ix_(train, train)], answers[train], None if drift is None else drift[train])
        along = lines @ spectrum.vectors
        means = np.zeros(len(lines)) if drift is None else drift[test]
        for column, alpha in enumerate(alphas.tolist()):
            errors[test, column] = answers[test] - spectrum.weights(along, means, alpha) @ spectrum.answers
    return _search(alphas, errors, scales)


def _search(alphas: Floats, errors: Floats, scales: Floats) -> AlphaSearch:
    squared = _squared(errors, scales)
    if _is_cut_off(squared, scales):
        warnings.warn(
            "the best alpha is the largest that was tried, so answers may be shrunk too much towards the prior; "
            "compare alpha='likelihood' or a larger number",
            stacklevel=5,
        )
    return AlphaSearch(alphas, np.sqrt(np.maximum(squared, 0.0)), float(alphas[np.argmin(squared)]))


def _squared(errors: Floats, scales: Floats) -> Floats:
    """Return the mean squared error of each alpha's answers, in the units of answers."""
    return np.asarray(np.square(scales) @ (np.square(errors) - 1.0) / scales.size)


def _is_cut_off(squared: Floats, scales: Floats) -> bool:
    falling = squared[-2] - squared[-1] > _STILL_FALLING * np.square(scales).mean()
    return bool(falling and np.argmin(squared) == squared.size - 1)
