"""What samplers of vectors have in common: numbers read exactly, sizes, the split between threads, and the tape.

A parameter of the noise is one number for all entries or one number for each; ``what`` names it in refusals.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from numbers import Rational
from operator import index
from typing import Any, Protocol, Self, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from veilcube.curator.sampling.source import RandomWords, SystemWords, Words
from veilcube.errors import PrivacyError
from veilcube.system import Integers, require_memory

Number: TypeAlias = int | float | str | Fraction | Decimal
NumberLike: TypeAlias = Number | Sequence[Number] | npt.NDArray[Any]
Size: TypeAlias = int | tuple[int, ...] | None

# Bounded digits and exponent, so that no text can ask for a number with millions of digits.
NUMBER_TEXT = re.compile(r"\s*[+-]?\d{1,400}(\.\d{0,400})?(/\d{1,400}|[eE][+-]?\d{1,3})?\s*")
HOW_TO_PASS = 'pass an int, a Fraction, a text such as "7/2" or a float'
THREADS = 2
SAMPLES_WORTH_A_THREAD = 1 << 15
# Fewer fit everywhere, and asking how much memory there is takes longer than drawing a few.
SAMPLES_WORTH_A_CHECK = 1 << 20


class Parameters(Protocol):
    """Parameters of the noise: for all entries (``shape`` is None) or one per entry."""

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The shape of the entries."""
        ...

    def between(self, start: int, stop: int) -> Self:
        """Return the parameters of the entries from ``start`` up to ``stop``, counted in C order."""
        ...


Given = TypeVar("Given", bound=Parameters)
Fill: TypeAlias = Callable[[Integers, Given, RandomWords], None]


def positive_number(number: object, what: str) -> Fraction:
    """Read a number above zero exactly; a float counts as its shortest decimal text, so that .1 is 1/10."""
    exact = _exact_value(number, what)
    if exact <= 0:
        raise PrivacyError(f"The {what} of the noise is not above zero, but it must be: {HOW_TO_PASS} above 0.")
    return exact


def _exact_value(number: object, what: str) -> Fraction:
    if isinstance(number, Rational) and not isinstance(number, bool):
        return Fraction(int(number.numerator), int(number.denominator))
    if isinstance(number, str | float | np.floating | Decimal) and NUMBER_TEXT.fullmatch(str(number)):
        try:
            return Fraction(str(number))
        except (ValueError, ZeroDivisionError):
            pass  # such as "1.5/2" or "1/0": refused below with everything else that is not a number
    raise PrivacyError(f"The {what} of the noise is not a finite number, but it must be one: {HOW_TO_PASS} above 0.")


def entries_of(numbers: NumberLike) -> npt.NDArray[Any] | None:
    """Return the numbers as an array if there is one for each entry; None if it is a single one."""
    if isinstance(numbers, np.ndarray):
        return numbers if numbers.ndim > 0 else None
    if isinstance(numbers, Sequence) and not isinstance(numbers, str | bytes):
        return np.array(numbers, dtype=object)
    return None


def distinct_entries(entries: npt.NDArray[Any]) -> tuple[list[Any], npt.NDArray[np.intp]]:
    """Return the distinct entries, and which of them stands at each place in C order."""
    if entries.dtype.kind in "iuf":
        distinct, which = np.unique(entries, return_inverse=True)
        return list(distinct), which.ravel()
    # Long vectors repeat a few objects, which are told apart by identity: 0.1 means 1/10 but equals another fraction.
    objects = entries.ravel().tolist()
    positions: dict[int, int] = {}
    which = np.array([positions.setdefault(id(entry), len(positions)) for entry in objects], dtype=np.intp)
    first_places = np.unique(which, return_index=True)[1]
    return [objects[place] for place in first_places], which


def draw_vector(given: Given, size: Size, what: str, source: RandomWords | None, fill: Fill[Given]) -> Integers:
    """Draw a vector by ``fill``: large ones in threads, unless a source is passed, which is read in order."""
    if source is not None and not isinstance(source, RandomWords):
        raise PrivacyError("A source of random words has a method words(count); leave it out for the system's.")
    shape = _shape_of(size, given.shape, what)
    count = math.prod(shape)
    if count > SAMPLES_WORTH_A_CHECK:
        require_memory(8 * count, f"drawing {count:,} samples of noise", "draw fewer at a time")
    samples = np.empty(count, dtype=np.int64)
    if source is not None or samples.size < THREADS * SAMPLES_WORTH_A_THREAD:
        fill(samples, given, SystemWords() if source is None else source)
    else:
        fill_in_threads(fill, _split(samples, given))
    return samples.reshape(shape)


def fill_in_threads(fill: Fill[Given], parts: Iterable[tuple[Integers, Given]]) -> None:
    """Fill each part in a thread with random words of its own; the parts share no memory that is written."""
    with ThreadPoolExecutor(THREADS) as pool:
        tasks = [pool.submit(fill, *part, SystemWords()) for part in parts]
    for task in tasks:
        task.result()  # raises what the thread raised


def _split(samples: Integers, given: Given) -> Iterator[tuple[Integers, Given]]:
    """Cut the work into one part for each thread."""
    cuts = [samples.size * part // THREADS for part in range(THREADS + 1)]
    for start, stop in pairwise(cuts):
        yield samples[start:stop], given.between(start, stop)


def _shape_of(size: Size, given: tuple[int, ...] | None, what: str) -> tuple[int, ...]:
    if size is None:
        return given or ()
    try:
        shape = tuple(index(length) for length in size) if isinstance(size, tuple) else (index(size),)
    except TypeError:
        raise PrivacyError("The size of the noise must be a whole number or a tuple of whole numbers.") from None
    if min(shape, default=0) < 0:
        raise PrivacyError("The size of the noise is negative: pass how many samples to draw, 0 or more.")
    if given is not None and shape != given:
        raise PrivacyError(
            f"The size of the noise is {shape} but there are {what}s for {given}: pass one {what} for each "
            "entry, or leave the size out."
        )
    return shape


def append_words(tape: Words, used: int, fresh: Words, count: int) -> Words:
    """Return the unused rest of the tape with fresh words behind it, and wipe both arrays that held them."""
    if fresh.dtype != np.uint64 or fresh.shape != (count,):
        raise PrivacyError("A source of random words must return as many 64-bit unsigned words as it was asked for.")
    longer = np.concatenate((tape[used:], fresh))
    tape.fill(0)
    fresh.fill(0)
    return longer
