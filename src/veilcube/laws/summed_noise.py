"""The law of sums of discrete Laplace or Gaussian noise, inverted into the half-widths of intervals.

S_m is the sum of m independent noises of one law, V the variance of one; for ``DiscreteLaplace(t)`` t is the scale and
p = exp(-1/t). There are three ways to the tail of S_m, each used where it is exact (docs/proofs/intervals.md derives
them and lists their errors):

* few terms of Laplace noise: a finite sum of positive numbers (``_race_survival``), right to rounding at every scale;
* small variance per term (V ≤ 1), or few terms of Gaussian noise: the half-width is a staircase in m, whose steps come
  from a contour integral;
* many terms: the Cornish-Fisher expansion with the exact fourth and sixth cumulant, once the excess kurtosis of the sum
  is at most ``LARGEST_KURTOSIS``: there P(|S| <= w) is off by less than 1e-6 at every confidence, and P(|S| > w) by
  less than 0.5% of itself at confidence 0.999999 and 5% of itself at 1 - 1e-12.
"""

from dataclasses import dataclass
from functools import lru_cache
from numbers import Real

import numpy as np
import scipy
from numpy.typing import ArrayLike

from veilcube.errors import PrivacyError
from veilcube.laws.gaussian_sums import gaussian_lattice_tail
from veilcube.laws.noise import DiscreteLaplace, Noise
from veilcube.laws.noise_inversion import blurred_half_widths, lattice_tail
from veilcube.system import Floats, Integers

# The excess kurtosis of 128 summed Laplace variables: below it the Cornish-Fisher expansion is used.
LARGEST_KURTOSIS = 3 / 128
# Up to this many terms `tail` is a finite sum.
MOST_TERMS_IN_CLOSED_FORM = 512
# P(S != 0) <= m·V by Markov; below this variance that is less than 1 - confidence for every double and every m < 2^63.
NEGLIGIBLE_VARIANCE = 1e-36
_ENTRIES_AT_ONCE = 1 << 20
_BLOCK = 1 << 14
_MOST_TERMS = 1 << 62


def half_widths(noise: Noise, terms: ArrayLike, confidence: float) -> Floats:
    """For each m of ``terms`` the smallest integer w with P(|S_m| <= w) >= confidence, as floats; zero for m = 0.

    The first call for a noise and a confidence builds a rule (milliseconds), which later calls look up.

    >>> from fractions import Fraction
    >>> half_widths(DiscreteLaplace(Fraction(10)), [0, 1, 2, 100], 0.95)
    array([  0.,  30.,  41., 277.])
    """
    counts = _checked_terms(terms)
    error_rate = _checked_error_rate(confidence)
    if noise.variance < NEGLIGIBLE_VARIANCE:
        return np.zeros(counts.shape)
    rule = _exact_rule(noise, error_rate)
    flat = counts.ravel()
    widths = np.empty(flat.size)
    # In blocks that stay in the processor's cache: twice as fast as whole arrays of a million entries.
    for start in range(0, flat.size, _BLOCK):
        block = flat[start : start + _BLOCK]
        exact = rule.exact(np.minimum(block, rule.last_exact))
        if int(block.max()) > rule.last_exact:
            expanded = _many_term_widths(noise, np.maximum(block, rule.last_exact + 1), error_rate)
            exact = np.where(block <= rule.last_exact, exact, expanded)
        widths[start : start + _BLOCK] = exact
    return widths.reshape(counts.shape)


def tail(noise: Noise, terms: int, threshold: ArrayLike) -> Floats:
    """P(S_m >= threshold) for m = ``terms``, one for each threshold.

    Up to 512 terms of Laplace noise the error is rounding, a relative 1e-12; beyond, and for Gaussian noise, a contour
    integral has relative error below 1e-9.
    Both hold for probabilities above 1e-60; smaller ones may come back as zero.
    """
    (count,) = _checked_terms([terms])
    least = np.ceil(np.asarray(threshold, dtype=np.float64))
    if count == 0 or noise.variance < NEGLIGIBLE_VARIANCE:
        return np.where(least <= 0, 1.0, 0.0)
    # The law is symmetric: P(S >= x) = 1 - P(S >= 1 - x), and the smaller of the two is the one computed. A threshold
    # so far out that its probability is zero in doubles is brought in, to keep infinities away.
    farthest = 1000 * (1 + noise.size + noise.stddev * float(count) ** 0.5)
    positive = np.minimum(np.maximum(least, 1 - least), np.ceil(farthest))
    upper = np.empty(positive.size)
    step = max(1, _ENTRIES_AT_ONCE // max(512, min(int(count), MOST_TERMS_IN_CLOSED_FORM)))
    for start in range(0, positive.size, step):
        part = slice(start, start + step)
        upper[part] = _upper_tail(noise, int(count), positive.ravel()[part])
    upper = upper.reshape(positive.shape)
    return np.where(least >= 1, upper, 1 - upper)


def weighted_half_width(noise: Noise, weights: ArrayLike, multiplicities: ArrayLike, confidence: float) -> float:
    """A w with P(|S| <= w) >= confidence for S = Σ_j weights[j] · (the sum of multiplicities[j] noise variables).

    With one distinct |weight| it is the smallest such w. Otherwise S is blurred by bounded noise no wider than the
    largest |weight|, which makes the law continuous, and half the width of the blur is added: so w is not too small,
    and it is larger than the smallest valid one by at most the largest |weight| (both up to a relative 1e-6).
    """
    sizes = np.abs(np.asarray(weights, dtype=np.float64))
    counts = _checked_terms(multiplicities)
    if sizes.ndim != 1 or sizes.shape != counts.shape or not np.all(np.isfinite(sizes)):
        raise PrivacyError(
            "weights and multiplicities must be two lists of equal length, the weights finite: correct them"
        )
    error_rate = _checked_error_rate(confidence)
    used = (sizes > 0) & (counts > 0)
    distinct, merged = _merge_equal(sizes[used], counts[used])
    if distinct.size == 0:
        return 0.0
    if distinct.size == 1:
        return float(distinct[0] * half_widths(noise, merged, confidence)[0])
    return float(_many_weight_widths(noise, distinct, merged[np.newaxis, :], error_rate)[0])


def two_weight_half_widths(
    noise: Noise, weight_a: float, terms_a: ArrayLike, weight_b: float, terms_b: ArrayLike, confidence: float
) -> Floats:
    """``weighted_half_width`` for many sums with the same two weights, entry k with terms_a[k] and terms_b[k] terms."""
    count_a, count_b = np.broadcast_arrays(_checked_terms(terms_a), _checked_terms(terms_b))
    error_rate = _checked_error_rate(confidence)
    size_a, size_b = abs(float(weight_a)), abs(float(weight_b))
    if not np.isfinite(size_a + size_b):
        raise PrivacyError("the two weights must be finite numbers: correct them")
    if np.isclose(size_a, size_b, rtol=1e-12, atol=0):
        return size_a * half_widths(noise, count_a + count_b, confidence)
    only_a = (count_b == 0) | (size_b == 0)
    only_b = (count_a == 0) | (size_a == 0)
    widths = np.where(
        only_a,
        size_a * half_widths(noise, np.where(only_a, count_a, 0), confidence),
        size_b * half_widths(noise, np.where(only_b, count_b, 0), confidence),
    )
    both = ~(only_a | only_b)
    if np.any(both):
        distinct = np.array([size_a, size_b])
        widths[both] = _many_weight_widths(
            noise, distinct, np.stack([count_a[both], count_b[both]], axis=1), error_rate
        )
    return widths


@dataclass(frozen=True)
class _Table:
    """Exact half-widths of 0..last_exact terms, one entry for each number of terms."""

    last_exact: int
    widths: Floats

    def exact(self, counts: Integers) -> Floats:
        return self.widths[counts]


@dataclass(frozen=True)
class _Staircase:
    """Exact half-widths of 0..last_exact terms: ``most_terms[w]`` is the largest number for which w suffices."""

    last_exact: int
    most_terms: Integers

    def exact(self, counts: Integers) -> Floats:
        return np.searchsorted(self.most_terms, counts, side="left").astype(np.float64)


@lru_cache(maxsize=256)
def _exact_rule(noise: Noise, error_rate: float) -> _Table | _Staircase:
    # m terms have an m-th of the excess kurtosis of one.
    last_exact = noise.most_kurtosis / LARGEST_KURTOSIS
    if noise.family == "laplace" and noise.variance > 1:
        return _Table(int(last_exact), _width_table(noise, int(last_exact), error_rate))
    widest = int(_cornish_fisher(error_rate, *_rounded_cumulants(noise, np.array([last_exact])))[0]) + 3
    last = int(min(last_exact, _MOST_TERMS))
    return _Staircase(last, _width_steps(noise, last, widest, error_rate))


def _width_table(noise: DiscreteLaplace, last: int, error_rate: float) -> Floats:
    """Bisection over the integers for all m = 1..last at once, on the exact tail P(|S_m| > w)."""
    terms = np.arange(1, last + 1)
    survival = _race_survival(noise, last)[terms]
    low = np.full(last, -1.0)
    high = np.ceil(noise.stddev * np.sqrt(terms))
    while np.any(short := _closed_form_tail(noise, survival, high) > error_rate):
        low, high = np.where(short, high, low), np.where(short, 2 * high, high)
    while True:
        middle = np.floor(low + (high - low) / 2)
        if not np.any((middle > low) & (middle < high)):
            return np.concatenate([[0.0], high])
        short = _closed_form_tail(noise, survival, np.maximum(middle, 0)) > error_rate
        low, high = np.where(short, middle, low), np.where(short, high, np.maximum(middle, low + 1))


def _width_steps(noise: Noise, last: int, widest: int, error_rate: float) -> Integers:
    """For each w = 0..widest the largest m <= last with P(|S_m| > w) <= error_rate, by bisection over m.

    One more symmetric unimodal term never makes P(|S| > w) smaller (Wintner, 1938), so there is exactly one such step.
    """
    thresholds = np.arange(1, widest + 2, dtype=np.float64)
    enough = np.zeros(widest + 1, dtype=np.int64)
    too_many = np.full(widest + 1, last + 1, dtype=np.int64)
    while np.any(unsettled := too_many - enough > 1):
        middle = np.where(unsettled, enough + (too_many - enough) // 2, np.maximum(enough, 1))
        fits = 2 * _lattice_tail(noise, middle.astype(np.float64), thresholds) <= error_rate
        enough = np.where(unsettled & fits, middle, enough)
        too_many = np.where(unsettled & ~fits, middle, too_many)
    return enough


@lru_cache(maxsize=32)
def _race_survival(noise: DiscreteLaplace, largest: int) -> Floats:
    """The matrix P(J_m > i), m = 0..largest, i = 0..largest-1, of the race behind |S_m|.

    S_m is the difference of two waiting times for m successes, each trial a success with probability 1 - p. Run both at
    once: when the first finishes, the other lacks J_m successes, and |S_m| is the waiting time for those. Without the
    trials in which nothing happens the race is a walk with steps (1,1), (1,0), (0,1) of probabilities r = tanh(1/(2t))
    and twice (1-r)/2; ``visits[x, y]`` is the probability that it visits (x, y), and P(J_m > i) sums one of its rows.
    """
    both = float(np.tanh(noise.rate / 2))
    one = float(np.exp(-noise.rate) / (1 + np.exp(-noise.rate)))
    visits = np.zeros((largest, largest))
    previous, current = np.zeros(largest), np.zeros(largest)
    current[0] = 1.0
    for diagonal in range(2 * largest - 1):
        x = np.arange(max(0, diagonal - largest + 1), min(diagonal, largest - 1) + 1)
        visits[x, diagonal - x] = current[x]
        following = one * current
        following[1:] += one * current[:-1] + both * previous[:-1]
        previous, current = current, following
    row_sums = np.cumsum(visits, axis=1)
    survival = np.zeros((largest + 1, largest))
    for m in range(1, largest + 1):
        reversed_sums = row_sums[m - 1, m - 1 :: -1]
        survival[m, :m] = 2 * one * reversed_sums
        survival[m, : m - 1] += 2 * both * reversed_sums[1:]
    survival.setflags(write=False)
    return survival


def _closed_form_tail(noise: DiscreteLaplace, survival: Floats, width: Floats) -> Floats:
    """P(|S_m| > w) = Σ_i C(w, i) (1-p)^i p^(w-i) P(J_m > i): w trials bring i < J_m successes; no term is negative."""
    index = np.arange(1, survival.shape[1])
    binomial = np.empty((width.size, survival.shape[1]))
    binomial[:, 0] = np.exp(-noise.rate * width)
    # Zero from i = w + 1 on, and it stays zero in the running product.
    binomial[:, 1:] = np.maximum(width[:, np.newaxis] - index + 1, 0) / index * np.expm1(noise.rate)
    np.cumprod(binomial, axis=1, out=binomial)
    return np.asarray(np.einsum("ki,ki->k", binomial, np.broadcast_to(survival, binomial.shape)))


def _upper_tail(noise: Noise, count: int, threshold: Floats) -> Floats:
    if noise.family == "gaussian" or count > MOST_TERMS_IN_CLOSED_FORM:
        return _lattice_tail(noise, np.full(threshold.shape, float(count)), threshold)
    # Sizes are rounded up so that neighbouring counts share one cached matrix.
    size = max(16, 1 << (count - 1).bit_length())
    return _closed_form_tail(noise, _race_survival(noise, size)[count, np.newaxis, :count], threshold - 1) / 2


def _lattice_tail(noise: Noise, terms: Floats, threshold: Floats) -> Floats:
    if noise.family == "gaussian":
        return gaussian_lattice_tail(noise, terms, threshold)
    return lattice_tail(noise, terms, threshold)


def _cornish_fisher(error_rate: float, k2: Floats, k4: Floats, k6: Floats) -> Floats:
    """The w with P(|X| > w) = error_rate for a symmetric continuous X with these cumulants, to second order in 1/m."""
    z = float(-scipy.special.ndtri(error_rate / 2))
    kurtosis = k4 / (k2 * k2)
    sixth = k6 / (k2 * k2 * k2)
    correction = kurtosis * ((z**3 - 3 * z) / 24) + sixth * ((z**5 - 10 * z**3 + 15 * z) / 720)
    correction -= kurtosis * kurtosis * ((3 * z**5 - 24 * z**3 + 29 * z) / 384)
    return np.asarray(np.sqrt(k2) * (z + correction))


def _rounded_cumulants(noise: Noise, counts: Floats) -> tuple[Floats, Floats, Floats]:
    """Cumulants of the continuous law that rounds to S_m, so that P(|S_m| <= w) is its probability of ±(w + 1/2).

    Rounding adds a uniform variable (cumulants 1/12, -1/120, 1/252), which Sheppard's correction takes off again. The
    standard deviation is above 6 beyond the crossover, so what is left of the lattice is below exp(-2π²·36).
    """
    k2, k4, k6 = noise.cumulants()
    return k2 * counts - 1 / 12, k4 * counts + 1 / 120, k6 * counts - 1 / 252


def _many_term_widths(noise: Noise, counts: Integers, error_rate: float) -> Floats:
    width = _cornish_fisher(error_rate, *_rounded_cumulants(noise, counts.astype(np.float64)))
    return np.asarray(np.maximum(np.ceil(width - 0.5), 0.0))


def _many_weight_widths(noise: Noise, sizes: Floats, counts: Integers, error_rate: float) -> Floats:
    """Half-widths for rows of ``counts`` over at least two distinct positive weights, each row using all of them."""
    if noise.variance < NEGLIGIBLE_VARIANCE:
        return np.zeros(counts.shape[0])
    largest = float(sizes.max())
    relative = sizes / largest
    multiplicity = counts.astype(np.float64)
    second, fourth, sixth = (multiplicity @ relative**power for power in (2, 4, 6))
    k2, k4, k6 = noise.cumulants()
    # The blur is a uniform variable as wide as the largest weight, with cumulants 1/12, -1/120 and 1/252 in its units.
    blurred = k2 * second + 1 / 12, k4 * fourth - 1 / 120, k6 * sixth + 1 / 252
    widths = np.maximum(_cornish_fisher(error_rate, *blurred), 0.0) + 0.5
    few = noise.most_kurtosis * fourth > LARGEST_KURTOSIS * second**2
    if np.any(few):
        rows, back = np.unique(multiplicity[few], axis=0, return_inverse=True)
        widths[few] = blurred_half_widths(noise, relative, rows, error_rate)[back.ravel()]
    return largest * widths


def _merge_equal(sizes: Floats, counts: Integers) -> tuple[Floats, Integers]:
    """Distinct sizes (up to rounding, 1e-12 relative) in ascending order, with the counts of equal ones added."""
    order = np.argsort(sizes)
    ascending = sizes[order]
    starts = np.flatnonzero(np.diff(ascending, prepend=-np.inf) > 1e-12 * ascending)
    if starts.size == 0:
        return ascending, counts
    return ascending[starts], np.add.reduceat(counts[order], starts)


def _checked_error_rate(confidence: float) -> float:
    if not isinstance(confidence, Real) or not 0 < confidence < 1:
        raise PrivacyError(f"confidence must lie strictly between 0 and 1, not {confidence}: 0.95 is usual")
    return 1 - float(confidence)


def _checked_terms(terms: ArrayLike) -> Integers:
    counts = np.asarray(terms)
    if counts.size == 0:
        return np.zeros(counts.shape, dtype=np.int64)
    if not np.issubdtype(counts.dtype, np.integer) or int(counts.min()) < 0 or int(counts.max()) > _MOST_TERMS:
        raise PrivacyError("numbers of noise terms must be integers from 0 to 2^62: correct the list of terms")
    return counts.astype(np.int64, copy=False)
