"""What callers pass, checked in one way everywhere: the wrong kind of argument ends in a sentence of ours.

Each function returns the argument in its plain form or refuses it with the error of the caller's room. Nothing here
trusts what it is given: values may be of any type, of any size, and may contain themselves.
"""

import inspect
import os
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from veilcube.errors import QueryError, VeilcubeError

Refusal = type[VeilcubeError]
Kind = TypeVar("Kind")
LONGEST_SHOWN = 60
# Enough for every array that veilcube works with; more levels are an object that contains itself.
DEEPEST_LIST = 64


def show(value: object) -> str:
    """Return a value for an error message: short, and without running into what the value may be.

    >>> show("x"), show(3.5), show([1, 2]), show(10**5000)
    ("'x'", '3.5', 'a list', 'a whole number of 16610 bits')
    """
    if isinstance(value, bool | float | None):
        return repr(value)
    if isinstance(value, int):
        return str(value) if value.bit_length() < 128 else f"a whole number of {value.bit_length()} bits"
    if isinstance(value, str):
        text = repr(value)
        return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."
    name = type(value).__name__
    return f"an {name}" if name[:1].lower() in "aeiou" else f"a {name}"


def read_whole(value: object, what: str, least: int, most: int | None = None, error: Refusal = QueryError) -> int:
    """Return a whole number from ``least`` to ``most``.

    >>> read_whole(3, "k", 1)
    3
    """
    whole = isinstance(value, Integral) and not isinstance(value, bool | np.bool_)
    if not whole or int(value) < least or (most is not None and int(value) > most):  # type: ignore[call-overload]
        limits = f"of at least {least:,}" if most is None else f"from {least:,} to {most:,}"
        raise error(f"{what} must be a whole number {limits}, not {show(value)}")
    return int(value)  # type: ignore[call-overload, no-any-return]


def read_real(value: object, what: str, error: Refusal = QueryError, *, infinite: bool = False) -> float:
    """Return a number as a float; refuses NaN and, unless ``infinite``, what is beyond all floats.

    >>> read_real(3, "x")
    3.0
    """
    refusal = error(f"{what} must be a {'' if infinite else 'finite '}number, not {show(value)}")
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise refusal
    try:
        number = float(value)
    except (OverflowError, ValueError):
        raise refusal from None
    if np.isnan(number) or (np.isinf(number) and not infinite):
        raise refusal
    return number


def read_text(value: object, what: str, error: Refusal = QueryError) -> str:
    """Return a text that is not empty and can be written to a file.

    >>> read_text("age", "the attribute")
    'age'
    """
    if not isinstance(value, str) or not value or not is_writable(value):
        raise error(f"{what} must be a text that is not empty, not {show(value)}")
    return value


def is_writable(text: str) -> bool:
    """Whether a text can be stored anywhere: it has no NUL and no half of a character.

    >>> is_writable("é"), is_writable(chr(0))
    (True, False)
    """
    return "\0" not in text and is_encodable(text)


def is_encodable(text: str) -> bool:
    """Whether a text can be written to a file: it has no half of a character.

    >>> is_encodable("é"), is_encodable(chr(0xD800))
    (True, False)
    """
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def read_flag(value: object, what: str, error: Refusal = QueryError) -> bool:
    """Return a truth value: True or False and nothing that merely counts as one.

    >>> read_flag(True, "fresh")
    True
    """
    if not isinstance(value, bool | np.bool_):
        raise error(f"{what} must be True or False, not {show(value)}")
    return bool(value)


def read_choice(value: object, what: str, choices: Sequence[str], error: Refusal = QueryError) -> str:
    """Return one of a few words.

    >>> read_choice("kd", "partition", ("grow", "kd"))
    'kd'
    """
    if not isinstance(value, str) or value not in choices:
        raise error(f"{what} must be one of {', '.join(choices)}, not {show(value)}")
    return value


def read_path(value: object, what: str, error: Refusal) -> Path:
    """Return the path of a file.

    >>> str(read_path("a.veil", "the path", QueryError))
    'a.veil'
    """
    if isinstance(value, str | os.PathLike):
        text = os.fspath(value)
        if isinstance(text, str) and text and "\0" not in text:
            try:
                os.fsencode(text)
            except UnicodeEncodeError:
                pass
            else:
                return Path(text)
    raise error(f"{what} must be the name of a file, not {show(value)}")


def takes(function: object, arguments: int) -> bool:
    """Whether it is a function that can be called with this many arguments, as far as it tells.

    >>> takes(lambda share: None, 1), takes(lambda: None, 1), takes(5, 1)
    (True, False, False)
    """
    if not callable(function):
        return False
    try:
        inspect.signature(function).bind(*range(arguments))
    except ValueError:  # compiled functions need not tell what they take
        return True
    except TypeError:
        return False
    return True


def read_progress(progress: Any, error: Refusal = QueryError) -> Callable[[float | None], None] | None:
    """Return what is told how far a work is, or None: a function of one argument.

    >>> read_progress(None) is None
    True
    """
    if progress is not None and not takes(progress, 1):
        raise error(f"progress must be a function of one argument, the share that is done, not {show(progress)}")
    return progress  # type: ignore[no-any-return]


def read_kind(value: object, kind: type[Kind], sentence: str, error: Refusal = QueryError) -> Kind:
    """Return an object of one class; ``sentence`` says which and where it comes from.

    >>> read_kind(1, int, "n must be whole")
    1
    """
    if not isinstance(value, kind):
        raise error(f"{sentence}, not {show(value)}")
    return value


def read_numbers(values: object, what: str, error: Refusal = QueryError) -> NDArray[np.float64]:
    """Return numbers, of any shape, as an array of floats; they may be infinite or NaN, which is the caller's to judge.

    >>> read_numbers([1, 2.5], "values").tolist()
    [1.0, 2.5]
    """
    refusal = error(f"{what} must be an array of numbers; it holds something else or has uneven rows")
    if isinstance(values, str | bytes | dict | set | frozenset) or not _is_shallow(values):
        raise refusal
    try:
        array = np.asarray(values)
        if array.dtype.kind == "O" and array.size and all(isinstance(one, Real) for one in array.flat):
            return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError, RecursionError):
        raise refusal from None
    if array.dtype.kind not in "iufb" and array.size:
        raise refusal
    return np.asarray(array, dtype=np.float64)


def _is_shallow(values: object) -> bool:
    """Whether lists lie in lists to a depth that an array can have, which their first elements tell."""
    for _ in range(DEEPEST_LIST):
        if not isinstance(values, list | tuple) or not values:
            return True
        values = values[0]
    return False
