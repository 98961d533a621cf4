"""Parities over binary attributes: queries on a released histogram, and learning a hidden parity vector from it.

Symbols: d attributes of two values each, the last one the label; v a non-zero vector of d - 1 bits; a row x agrees with
v if its label is v·x = Σ_j v_j x_j mod 2. Two learners find the v that most rows agree with:

* ``learn_parity`` by a Walsh-Hadamard transform of the histogram, whose entry at (v, 1) is the number of rows that
  agree less those that do not, for all 2^(d-1) vectors in O(N log N); far below zero, it is the negated parity;
* ``learn_parity_by_elimination``, section 6.3 of TR-2010-003, corrected: kept for comparison, since it throws away
  most of the data and its probability of being right falls like (1 - 2η)^(d-1) with the share η of rows that disagree.

Everything here reads released counts only, so nothing here costs privacy.
"""

from dataclasses import dataclass
from math import exp, sqrt
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, stdtr

from veilcube.errors import QueryError
from veilcube.laws import DiscreteLaplace, tail
from veilcube.system import Floats, Integers, read_kind

MOST_ATTRIBUTES = 26
# Tails are computed for this many best rivals; the others, which are further behind, are counted as if at the last.
_RIVALS_ONE_BY_ONE = 1024
_LARGEST_INTEGER = 2.0**62
_MOST_ROWS_AT_ONCE = 2**24
_ROUNDS_OF_VOTES = 50
# Chernoff's bound is taken at the best of so many slopes.
_SLOPES = 400


@dataclass(frozen=True)
class LearnedParity:
    """A parity vector with the confidence that there is a parity and that it is this one.

    ``negated`` tells that the label is 1 less the parity; ``agreement`` estimates the share of rows whose label is the
    parity, or the negated one; ``runner_up`` is the vector that came second, empty if there is only one.
    """

    vector: tuple[int, ...]
    confidence: float
    agreement: float
    runner_up: tuple[int, ...]
    negated: bool = False


@dataclass(frozen=True)
class EliminatedParity:
    """A parity vector by elimination: ``shares[j]`` of the votes said that bit j is 1.

    ``confidence`` is about the voting only: with at least this probability more votes on the same release would not
    change the vector (Hoeffding). It cannot see what the noise of the release did.
    """

    vector: tuple[int, ...]
    confidence: float
    shares: tuple[float, ...]


def walsh_hadamard(vector: ArrayLike) -> NDArray[Any]:
    """Return w with w[v] = Σ_x (-1)^(v·x) vector[x], where v·x counts the bits that v and x share; O(N log N).

    The length must be a power of two. Integers give exact int64 integers, other numbers give doubles. Applied twice it
    multiplies by the length.

    >>> walsh_hadamard([5, 1, 0, 7, 2, 6, 8, 1])
    array([30,  0, -2,  0, -4, -6,  0, 22])
    """
    values = _checked_vector(vector)
    length, half = values.size, 1
    other = np.empty_like(values)
    while half < length:
        pairs = values.reshape(-1, 2, half)
        sums = other.reshape(-1, 2, half)
        np.add(pairs[:, 0], pairs[:, 1], out=sums[:, 0])
        np.subtract(pairs[:, 0], pairs[:, 1], out=sums[:, 1])
        values, other = other, values
        half *= 2
    return values


def parity_count(counts: ArrayLike, vector: ArrayLike) -> float:
    """Return how many rows of a released histogram agree with ``vector``: their label is the parity of its bits.

    >>> parity_count([[4, 1], [0, 5]], [1])
    9.0
    """
    cells = _checked_histogram(counts)
    bits = _checked_bits(vector, attributes=_attributes(cells) - 1)
    rows = np.arange(cells.size)
    mask = 2 * _number_of(bits) + 1
    return float(cells[_parity_of(rows & mask) == 0].sum())


def learn_parity(counts: ArrayLike, noise: DiscreteLaplace | None = None) -> LearnedParity:
    """Return the non-zero vector whose parity, or negated parity, most rows of a released histogram agree with.

    ``counts`` has one entry for each combination of the d attributes (shape (2,)*d, or flat in that order), the label
    last. ``confidence`` is 1 less two chances. One is that noise alone put a rival behind, from the exact law: two
    vectors differ in half of the cells, so their scores differ by twice the sum of N/2 noises. The other is that there
    is no parity at all: how often the best of all vectors would do as well with labels that were shuffled among the
    rows. So where there is none, a confidence of c or more is met at most 1 - c of the time. Without the ``noise`` of
    the counts, the spread of the rivals' scores stands in for it; of two attributes, counts are then taken as exact.
    """
    if noise is not None:
        read_kind(noise, DiscreteLaplace, "noise must be the DiscreteLaplace law of the released counts, or left out")
    cells = _checked_histogram(counts)
    scores = walsh_hadamard(cells)
    candidates = scores[1::2][1:].astype(np.float64)
    if candidates.size == 0:
        raise QueryError("a parity needs at least two binary attributes, the last one its label; add an attribute")
    order = np.argsort(-np.abs(candidates), kind="stable")
    length, best = _attributes(cells) - 1, float(abs(candidates[order[0]]))
    # A rival could have come first by its parity or by the negated one.
    rivals = np.abs(candidates[order[1:]])
    behind = np.concatenate([best - rivals, (best + rivals)[::-1]])
    if noise is None:
        chances = _chances_from_spread(rivals, behind) + _chance_of_exact_luck(scores, int(order[0]))
    else:
        chances = _chances_from_noise(noise, cells.size, behind) + _chance_of_luck(scores, int(order[0]), noise)
    total = float(scores[0])
    return LearnedParity(
        vector=_bits_of(int(order[0]) + 1, length),
        confidence=min(max(1 - chances, 0.0), 1.0),
        agreement=min(max((1 + best / total) / 2, 0.0), 1.0) if total > 0 else 0.5,
        runner_up=_bits_of(int(order[1]) + 1, length) if order.size > 1 else (),
        negated=bool(candidates[order[0]] < 0),
    )


@dataclass(frozen=True)
class _Shuffled:
    """What scores are if labels are shuffled: ``residuals`` from what skewed bits and labels make of them.

    ``bits`` and ``label`` are how far the parity bits and the label lean to 0, from -1 to 1; ``rows`` how many there
    are. A residual is a sum over the rows of (±1 - bits)(±1 - label).
    """

    residuals: Floats
    bits: Floats
    label: float
    rows: float

    @classmethod
    def of(cls, scores: NDArray[Any]) -> "_Shuffled":
        """Read the transform of a histogram: scores at (v, 1), bits at (v, 0), the label at (0, 1), rows at 0."""
        even, odd = scores[::2].astype(np.float64), scores[1::2].astype(np.float64)
        rows = max(float(even[0]), 0.0)
        label = min(max(float(odd[0]) / rows, -1.0), 1.0) if rows else 0.0
        bits = np.clip(even[1:] / rows, -1.0, 1.0) if rows else np.zeros(even.size - 1)
        return cls(odd[1:] - bits * label * rows, bits, label, rows)


def _chance_of_luck(scores: NDArray[Any], best: int, noise: DiscreteLaplace) -> float:
    """Return at least the probability that shuffled labels and noise give any vector a residual as large as the best's.

    By Chernoff: shuffled labels have a sub-Gaussian sum (Hoeffding), and the noise a known moment generating function.
    The number of rows is noisy itself, and is taken three standard deviations larger.
    """
    found = _Shuffled.of(scores)
    rows = found.rows + 3 * noise.stddev * sqrt(scores.size)
    # A residual weighs a quarter of the cells' noises by each of (1 ± bits)(1 ± label).
    weights = np.outer(1 + abs(found.bits[best]) * np.array([-1, 1]), 1 + abs(found.label) * np.array([-1, 1])).ravel()
    size = abs(float(found.residuals[best]))
    slopes = noise.rate / weights.max() * np.geomspace(1e-6, 1 - 1e-6, _SLOPES)
    of_noise = sum(scores.size / 4 * _log_moment(noise.rate, slopes * weight) for weight in weights)
    exponent = float(np.min(slopes**2 * rows / 2 + of_noise - slopes * size))
    return 2 * found.residuals.size * exp(min(exponent, 0.0))


def _log_moment(rate: float, slopes: Floats) -> Floats:
    """Return log E exp(sZ) = log (cosh r - 1)/(cosh r - cosh s) of one noise of rate r, for 0 <= s < r."""
    ends = np.log1p(-np.exp(-(rate + slopes))) + np.log1p(-np.exp(-(rate - slopes)))
    return np.asarray(2 * np.log1p(-np.exp(-rate)) - ends)


def _chance_of_exact_luck(scores: NDArray[Any], best: int) -> float:
    """Return the same for counts whose noise is not known: by Hoeffding as if there were none, and by Student's law.

    The other residuals tell how large noise and luck are together, but not less than luck alone.
    """
    found = _Shuffled.of(scores)
    size, many = abs(float(found.residuals[best])), found.residuals.size
    if size == 0 or not found.rows:
        return 1.0
    chance = 2 * many * exp(-(size**2) / (2 * found.rows))
    if many == 1:
        return chance
    others = float(np.sum(np.square(found.residuals)) - size**2) / (many - 1)
    luck = found.rows * (1 - found.bits[best] ** 2) * (1 - found.label**2)
    spread = max(sqrt(max(others, luck, 0.0)), 1e-300)
    return max(chance, 2 * many * float(stdtr(many - 1, -size / spread)))


def learn_parity_by_elimination(
    counts: ArrayLike, *, samples: int | None = None, votes: int = 1000, seed: int | None = None
) -> EliminatedParity:
    """Learn a parity vector bit by bit by elimination on rows sampled from a released histogram (TR-2010-003, 6.3).

    For bit j each vote draws ``samples`` rows (default 4d), clears every other bit k ≠ j by XOR with one row that has
    it, and reads the *label* of a remaining row in which bit j is 1; a draw that leaves none is repeated. The published
    steps also cleared bit j itself and read that bit instead of the label. The rows are drawn where counts are above 0.
    """
    cells = _checked_histogram(counts)
    length = _attributes(cells) - 1
    if length < 1:
        raise QueryError("a parity needs at least two binary attributes, the last one its label; add an attribute")
    drawn = _checked_number(4 * (length + 1) if samples is None else samples, "samples", least=length + 1)
    wanted = _checked_number(votes, "votes", least=1)
    if drawn * wanted > _MOST_ROWS_AT_ONCE:
        raise QueryError("samples times votes must be at most 2**24 rows; lower samples or votes")
    cumulative = np.cumsum(np.maximum(cells.astype(np.float64), 0))
    if cumulative[-1] <= 0:
        raise QueryError("no count of the histogram is above 0, so no rows can be drawn; use learn_parity instead")
    generator = np.random.default_rng(seed)
    shares = tuple(_vote(cumulative, bit, length, drawn, wanted, generator) for bit in range(length))
    misses = sum(float(np.exp(-2 * wanted * (share - 0.5) ** 2)) for share in shares)
    return EliminatedParity(tuple(int(share > 0.5) for share in shares), max(0.0, 1 - misses), shares)


def _chances_from_noise(noise: DiscreteLaplace, cells: int, behind: Floats) -> float:
    """Return Σ P(2·S >= gap), S the sum of cells/2 noises; ``behind`` is ascending."""
    if behind.size == 0:
        return 0.0
    near = behind[:_RIVALS_ONE_BY_ONE]
    chances = tail(noise, cells // 2, near / 2)
    return float(chances.sum() + (behind.size - near.size) * chances[-1])


def _chances_from_spread(rivals: Floats, behind: Floats) -> float:
    spread = sqrt(float(np.mean(np.square(rivals)))) if rivals.size else 0.0
    if spread == 0:
        return float(np.count_nonzero(behind <= 0))
    return float(ndtr(-behind / (sqrt(2) * spread)).sum())


def _vote(cumulative: Floats, bit: int, length: int, samples: int, votes: int, generator: np.random.Generator) -> float:
    """Return the share of votes for a 1 at ``bit`` (0 is the first attribute)."""
    ones = cast = 0
    # A vote is void only if no drawn row can isolate the bit; a release where that keeps happening cannot tell it.
    for _ in range(_ROUNDS_OF_VOTES):
        rows = np.searchsorted(cumulative, generator.random((votes - cast, samples)) * cumulative[-1], side="right")
        rows = np.minimum(rows, cumulative.size - 1)
        labels = _isolated_labels(rows, bit, length, generator)
        ones += int(labels.sum())
        cast += labels.size
        if cast == votes:
            return ones / votes
    raise QueryError(
        f"attribute {bit + 1} cannot be told apart from the others by elimination on this release; raise samples, or "
        "use learn_parity"
    )


def _isolated_labels(rows: Integers, bit: int, length: int, generator: np.random.Generator) -> Integers:
    """Clear all bits but ``bit`` and the label in each line of ``rows``; return the label of a row that keeps it.

    Attribute j is bit ``length - j`` of a cell's number, the label is bit 0. Lines without such a row are left out.
    """
    lines = np.arange(rows.shape[0])
    remaining = np.ones(rows.shape, dtype=np.bool_)
    for other in range(length):
        if other == bit:
            continue
        has_it = ((rows >> (length - other)) & 1).astype(np.bool_) & remaining
        # Rows are drawn in random order, so the first is a random one. A line without any needs no clearing.
        pivot = np.argmax(has_it, axis=1)
        found = has_it[lines, pivot]
        rows = np.where(has_it, rows ^ rows[lines, pivot][:, np.newaxis], rows)
        remaining[lines[found], pivot[found]] = False
    keeps_it = ((rows >> (length - bit)) & 1).astype(np.bool_) & remaining
    chosen = np.argmax(np.where(keeps_it, generator.random(rows.shape), -1.0), axis=1)
    valid = keeps_it[lines, chosen]
    return np.asarray(rows[lines, chosen][valid] & 1)


def _parity_of(numbers: Integers) -> Integers:
    """Return the number of ones, mod 2, of each number below 2^32."""
    folded = numbers.copy()
    for shift in (16, 8, 4, 2, 1):
        folded ^= folded >> shift
    return folded & 1


def _bits_of(number: int, length: int) -> tuple[int, ...]:
    return tuple(number >> place & 1 for place in reversed(range(length)))


def _number_of(bits: tuple[int, ...]) -> int:
    return int("".join(map(str, bits)), 2)


def _attributes(cells: NDArray[Any]) -> int:
    return int(cells.size).bit_length() - 1


def _checked_vector(vector: ArrayLike) -> NDArray[Any]:
    """Return a copy, in int64 or float64, that the transform may write into."""
    try:
        given: NDArray[Any] = np.asarray(vector)
    except ValueError:
        given = np.empty((0, 0))
    if given.ndim != 1 or given.size == 0 or given.size & (given.size - 1):
        raise QueryError("a Walsh-Hadamard transform needs one list whose length is a power of two; pad it with zeros")
    if given.dtype.kind == "f":
        # Each sum that is made on the way is at most the length times the largest number.
        largest = np.finfo(np.float64).max / given.size
        if not np.all(np.abs(given) <= largest):
            raise QueryError(
                f"a Walsh-Hadamard transform of {given.size} numbers needs finite ones up to {largest:.2g}"
            )
        return given.astype(np.float64)
    if given.dtype.kind not in "biu":
        raise QueryError("a Walsh-Hadamard transform needs real numbers; pass a list of integers or floats")
    if float(np.abs(given.astype(np.float64)).sum()) >= _LARGEST_INTEGER:
        raise QueryError("the sizes of the integers to transform must add up to less than 2**62; pass them as floats")
    return given.astype(np.int64)


def _checked_histogram(counts: ArrayLike) -> NDArray[Any]:
    try:
        cells: NDArray[Any] = np.asarray(counts)
    except ValueError:
        cells = np.empty(0, dtype=object)
    if cells.ndim > 1 and set(cells.shape) != {2}:
        raise QueryError("a parity needs attributes of two values each; choose binary attributes or merge their values")
    if cells.size < 2 or cells.size & (cells.size - 1) or _attributes(cells) > MOST_ATTRIBUTES:
        raise QueryError(
            f"a parity needs a count for each combination of 1 to {MOST_ATTRIBUTES} binary attributes, a power of two "
            "in number; check the list of counts"
        )
    if cells.dtype.kind not in "iuf" or not np.all(np.isfinite(cells)):
        raise QueryError("the released counts of a parity must be finite numbers; check the list of counts")
    return cells.ravel()


def _checked_bits(vector: ArrayLike, attributes: int) -> tuple[int, ...]:
    try:
        bits: NDArray[Any] = np.asarray(vector)
    except ValueError:
        bits = np.empty((0, 0))
    is_binary = bits.shape == (attributes,) and bits.dtype.kind in "biu" and bool(np.all((bits == 0) | (bits == 1)))
    if not is_binary or not bits.any():
        raise QueryError(
            f"a parity vector over these attributes has {attributes} bits, each 0 or 1 and not all 0; correct the bits"
        )
    return tuple(int(bit) for bit in bits)


def _checked_number(value: object, name: str, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or not least <= int(value) <= 10**6:
        raise QueryError(f"{name} must be a whole number from {least} to 1000000; correct it or leave it out")
    return int(value)
