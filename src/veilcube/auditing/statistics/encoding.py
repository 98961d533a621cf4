"""Outputs of a mechanism as numbers that events can be looked for in: whatever it returns, to the last bit of a float.

An output has a structure (its kind, shape, words, what it raised, where it is NaN) and numbers. Floats are also looked
at by the place of their lowest bit: noise that was rounded to a sum tells what it was added to (Mironov 2012).
"""

from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from math import copysign, inf, isnan
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from veilcube.system import Floats, Integers

# Numbers beyond these places of an output are looked at in sums only, and differences only among so few.
MOST_NUMBERS, MOST_COMPARED = 24, 8
DEEPEST = 20
# Zero is a multiple of every power of two.
LOWEST_OF_ZERO = 1100.0


class Raised(NamedTuple):
    """What a mechanism raised in place of an output."""

    kind: str
    words: str


class Parts(NamedTuple):
    """An output taken apart."""

    structure: Hashable
    numbers: tuple[float, ...]
    key: Hashable


def taken_apart(output: object) -> Parts:
    """Return the structure, the numbers and a key that equals that of the same output."""
    if type(output) is int:
        return Parts("int", (_as_float(output),), output)
    if type(output) is float:
        return _float_parts(output)
    numbers: list[float] = []
    keys: list[Hashable] = []
    structure = _structure(output, numbers, keys, 0)
    return Parts(structure, tuple(numbers), (structure, tuple(keys)))


def _float_parts(value: float) -> Parts:
    if isnan(value):
        return Parts("nan", (), "nan")
    sign = copysign(1, value) if value == 0 else 0
    return Parts("float", (value,), (value, sign) if sign else value)


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return inf if value > 0 else -inf


def _structure(output: object, numbers: list[float], keys: list[Hashable], depth: int) -> Hashable:  # noqa: PLR0911
    if depth > DEEPEST:
        return "deeper"
    if isinstance(output, np.ndarray):
        shape = ("array", output.shape, output.dtype.str)
        return shape, tuple(_structure(one, numbers, keys, depth + 1) for one in output.ravel().tolist())
    if isinstance(output, np.generic):
        output = output.item()
    if output is None or isinstance(output, bool | str | bytes | Raised):
        return type(output).__name__, output
    if isinstance(output, int | Fraction | Decimal):
        numbers.append(_as_float(output))
        keys.append(output)
        return type(output).__name__
    if isinstance(output, Real):
        parts = _float_parts(float(output))
        numbers += parts.numbers
        keys.append(parts.key)
        return parts.structure
    if isinstance(output, Mapping):
        inner = sorted(output.items(), key=lambda item: repr(item[0]))
        return "mapping", tuple((repr(name), _structure(one, numbers, keys, depth + 1)) for name, one in inner)
    if isinstance(output, Set):
        return "set", tuple(sorted(repr(one) for one in output))
    if isinstance(output, Sequence):
        return type(output).__name__, tuple(_structure(one, numbers, keys, depth + 1) for one in output)
    return type(output).__name__, repr(output)


@dataclass
class Vocabulary:
    """Codes of all outputs and structures that were seen, shared by the samples of one audit."""

    keys: dict[Hashable, int] = field(default_factory=dict)
    structures: dict[Hashable, int] = field(default_factory=dict)

    def encode(self, outputs: Sequence[object]) -> "Sample":
        """Return a sample of outputs."""
        parts = [taken_apart(output) for output in outputs]
        keys = np.array([self.keys.setdefault(one.key, len(self.keys)) for one in parts], dtype=np.int64)
        structures = np.array(
            [self.structures.setdefault(one.structure, len(self.structures)) for one in parts], dtype=np.int64
        )
        width = min(max((len(one.numbers) for one in parts), default=0), MOST_NUMBERS)
        numbers = np.full((len(parts), width), np.nan)
        totals = np.full(len(parts), np.nan)
        for place, one in enumerate(parts):
            if one.numbers:
                numbers[place, : len(one.numbers)] = one.numbers[:width]
                totals[place] = sum(one.numbers)
        return Sample(keys, structures, numbers, totals)

    def words_of(self, code: int, *, is_structure: bool) -> str:
        """Return an output, or a structure, by its code."""
        known = self.structures if is_structure else self.keys
        return repr(next((key for key, number in known.items() if number == code), None))


@dataclass(frozen=True, eq=False)
class Sample:
    """Many outputs of one table: codes, and numbers that are NaN where an output has none."""

    keys: Integers
    structures: Integers
    numbers: Floats
    totals: Floats

    def __len__(self) -> int:
        return self.keys.size

    def part(self, start: int, stop: int) -> "Sample":
        """Return some of the outputs."""
        one = slice(start, stop)
        return Sample(self.keys[one], self.structures[one], self.numbers[one], self.totals[one])

    @cached_property
    def features(self) -> dict[str, Floats]:
        """Return numbers that a threshold may tell tables apart by, under what they are."""
        width = self.numbers.shape[1]
        found: dict[str, Floats] = {f"number {place + 1}": self.numbers[:, place] for place in range(width)}
        if width == 0:
            return found
        for place in range(width):
            column = self.numbers[:, place]
            if not _is_whole(column):
                found[f"lowest bit of number {place + 1}"] = lowest_bit(column)
                found[f"fraction of number {place + 1}"] = column - np.floor(column)
        if width > 1:
            with np.errstate(invalid="ignore"):
                found["the sum"] = self.totals
                filled = np.where(np.isnan(self.numbers).all(axis=1, keepdims=True), 0.0, self.numbers)
                found["the largest"] = np.nanmax(filled, axis=1)
                found["the smallest"] = np.nanmin(filled, axis=1)
                found["how many numbers"] = (~np.isnan(self.numbers)).sum(axis=1).astype(np.float64)
                for one in range(min(width, MOST_COMPARED)):
                    for two in range(one + 1, min(width, MOST_COMPARED)):
                        name = f"number {one + 1} less number {two + 1}"
                        found[name] = self.numbers[:, one] - self.numbers[:, two]
        return found


def _is_whole(column: Floats) -> bool:
    known = column[np.isfinite(column)]
    return bool((known == np.floor(known)).all())


def lowest_bit(column: Floats) -> Floats:
    """Return the power of two of the lowest bit of each float.

    >>> lowest_bit(np.array([0.75, 8.0, 0.1])).tolist()
    [-2.0, 3.0, -55.0]
    """
    mantissa, exponent = np.frexp(np.where(np.isfinite(column) & (column != 0), column, 0.5))
    whole: NDArray[np.int64] = np.abs(mantissa * 2.0**53).astype(np.int64)
    found = exponent - 53 + np.log2((whole & -whole).astype(np.float64))
    found[~np.isfinite(column)] = np.nan
    found[column == 0] = LOWEST_OF_ZERO
    return np.asarray(found, dtype=np.float64)
