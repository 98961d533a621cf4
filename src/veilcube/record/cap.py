"""What is measured about a cap: how many persons have how many rows, and how many rows lie beyond ``max_rows``.

A person is in one bin, by the number of her rows, and which bins there are is public: so noise on all bins costs what
that of the dearest bin costs (docs/proofs/cap.md).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil

import numpy as np

from veilcube.errors import PrivacyError, ReleaseFileError
from veilcube.laws import DiscreteLaplace
from veilcube.privacy import LaplaceEvent, Neighbours, ParallelEvent, PrivacyStatement, scale_for
from veilcube.system import Integers, read_whole

# The largest number of rows of a person that is told apart, and the largest epsilon: scales stay within the sampler's.
LARGEST_BOUND = 10**6
LARGEST_CAP_EPSILON = 1000
# Unless said, no person is taken to have more than this many times the rows that are kept of her.
DEFAULT_BOUND = 10
_LARGEST_VALUE = 2**61
_ALONE = 10
_GROWTH = Fraction(5, 4)


def changed_bins(neighbours: Neighbours) -> int:
    """Return how many persons come or go when one person changes: an exchanged one leaves a bin and enters another."""
    return 1 if neighbours is Neighbours.ADD_REMOVE else 2


@dataclass(frozen=True)
class RowBins:
    """Bins of the number of a person's rows: 1 to 10 alone, then wider ones; the last, from ``largest`` on, has no end.

    >>> RowBins(15).first
    (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 14, 15)
    """

    largest: int

    def __post_init__(self) -> None:
        read_whole(
            self.largest, "largest, the number of rows from which on persons are not told apart,", 2, LARGEST_BOUND
        )

    @cached_property
    def first(self) -> tuple[int, ...]:
        """The smallest number of rows in each bin."""
        found = [1]
        while found[-1] < self.largest:
            step = found[-1] + 1 if found[-1] <= _ALONE else ceil(found[-1] * _GROWTH)
            found.append(min(step, self.largest))
        return tuple(found)

    @property
    def last(self) -> tuple[int, ...]:
        """The largest number of rows in each bin; ``largest`` in the one without an end."""
        return (*(start - 1 for start in self.first[1:]), self.largest)

    def labels(self) -> tuple[str, ...]:
        """Each bin in words."""
        ends = zip(self.first[:-1], self.last[:-1], strict=True)
        return (*(str(low) if low == high else f"{low} to {high}" for low, high in ends), f"{self.largest} and more")


@dataclass(frozen=True, eq=False)
class MeasuredPersons:
    """How many persons have how many rows, with noise: one number for each bin."""

    bins: RowBins
    values: Integers
    noise: DiscreteLaplace
    statement: PrivacyStatement


@dataclass(frozen=True)
class ExcessBins:
    """Bins of the number of a person's rows beyond ``max_rows``, each twice as wide as the one before.

    Nobody is taken to have more than ``most_rows`` rows, which is public; whoever has more is counted apart.

    >>> ExcessBins(10, 30).ends
    (1, 2, 3, 5, 10, 20)
    """

    max_rows: int
    most_rows: int

    def __post_init__(self) -> None:
        read_whole(self.max_rows, "max_rows", 1, LARGEST_BOUND - 1, PrivacyError)
        read_whole(self.most_rows, "most_rows, the rows that a person has at most,", 2, LARGEST_BOUND, PrivacyError)
        if self.most_rows <= self.max_rows:
            raise PrivacyError(
                f"most_rows, the rows that a person has at most, must be above the cap of {self.max_rows}; take a "
                "number from public knowledge, for example 365 for visits of a year"
            )

    @cached_property
    def ends(self) -> tuple[int, ...]:
        """The largest number of rows beyond the cap in each bin."""
        found = [self.most_rows - self.max_rows]
        while found[0] > 1:
            found.insert(0, ceil(found[0] / 2))
        return tuple(found)

    @property
    def sensitivities(self) -> tuple[int, ...]:
        """By how much one person changes each number: rows beyond the cap in each bin, and persons above all bins."""
        return (*self.ends, 1)

    def noises(self, epsilon: Fraction, neighbours: Neighbours) -> tuple[DiscreteLaplace, ...]:
        """Return the noise of each number for an epsilon."""
        times = changed_bins(neighbours)
        return tuple(DiscreteLaplace(scale_for(epsilon, times * size)) for size in self.sensitivities)

    def event(self, noises: Sequence[DiscreteLaplace], neighbours: Neighbours) -> ParallelEvent:
        """Return what measuring with these noises does to the data: a person is in one bin, so the dearest counts."""
        times = changed_bins(neighbours)
        pairs = zip(self.sensitivities, noises, strict=True)
        return ParallelEvent(tuple(LaplaceEvent(times * size, noise.scale) for size, noise in pairs))


@dataclass(frozen=True, eq=False)
class MeasuredCap:
    """How many rows lie beyond the cap of a release, with noise: one number for each bin of persons.

    The last number is of persons above all bins, who have more than ``most_rows`` rows.
    """

    bins: ExcessBins
    values: Integers
    noises: tuple[DiscreteLaplace, ...]

    def __post_init__(self) -> None:
        if self.values.shape != (len(self.bins.sensitivities),) or len(self.noises) != self.values.size:
            raise ReleaseFileError("what was measured beyond the cap does not have a number for each of its bins")
        if any(abs(value) > _LARGEST_VALUE for value in self.values.tolist()):
            raise ReleaseFileError("what was measured beyond the cap is larger than any table")
        self.values.setflags(write=False)

    def event(self, neighbours: Neighbours) -> ParallelEvent:
        """Return the event that a privacy statement must declare for it."""
        return self.bins.event(self.noises, neighbours)

    def to_dict(self) -> dict[str, object]:
        """Return the plain data it is rebuilt from."""
        return {
            "max_rows": self.bins.max_rows,
            "most_rows": self.bins.most_rows,
            "ends": list(self.bins.ends),
            "values": self.values.tolist(),
            "noise": [noise.to_json() for noise in self.noises],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> "MeasuredCap":
        """Rebuild from ``to_dict``; the data is untrusted."""
        max_rows, most_rows, values, noises = (data[name] for name in ("max_rows", "most_rows", "values", "noise"))
        if not isinstance(values, list) or not isinstance(noises, list):
            raise ReleaseFileError(
                "what was measured beyond the cap is not well formed; ask for a new copy of the file"
            )
        if not all(type(value) is int and abs(value) <= _LARGEST_VALUE for value in (max_rows, most_rows, *values)):
            raise ReleaseFileError(
                "what was measured beyond the cap are no whole numbers; ask for a new copy of the file"
            )
        bins = ExcessBins(max_rows, most_rows)  # type: ignore[arg-type]
        if list(bins.ends) != data["ends"]:
            raise ReleaseFileError("the bins beyond the cap are not those that veilcube makes; ask for a new copy")
        laws = tuple(DiscreteLaplace.from_json(noise) for noise in noises)
        if any(type(law) is not DiscreteLaplace for law in laws):
            raise ReleaseFileError(
                "the noise beyond the cap is not plain Laplace noise; ask for a new copy of the file"
            )
        return cls(bins, np.array(values, dtype=np.int64), laws)
