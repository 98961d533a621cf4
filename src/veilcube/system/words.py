"""Numbers as people read them, and the name that somebody who mistyped one meant."""

import math
import sys
from collections.abc import Iterable
from datetime import date
from decimal import Decimal

# Larger numbers are shown whole, and ten digits would cut them off.
SETTLED_BELOW = 1e9


def show_number(value: object) -> str:
    """Return an estimate for people: whole if it is whole or large, else four digits; dates as they are.

    >>> show_number(12345.678), show_number(12.0), show_number(0.123456)
    ('12,346', '12', '0.1235')
    >>> show_number(10**400)
    '1.000e+400'
    """
    if isinstance(value, date) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int) and abs(value) > sys.float_info.max:  # a file may hold any integer
        return f"{Decimal(value):.4g}"
    if not math.isfinite(value):
        return "-"
    value = _settled(value)
    if abs(value) >= 1000 or float(value).is_integer():
        return f"{value:,.0f}"
    return f"{value:.4g}"


def _settled(value: float) -> float:
    """Return a number without what the rounding of sums left in it, which would decide halves of the last digit shown.

    >>> _settled(338.65 - 2e-13) == _settled(338.65 + 2e-13) == 338.65
    True
    """
    return float(f"{value:.10g}") if isinstance(value, float) and abs(value) < SETTLED_BELOW else value


def show_interval(low: object, high: object) -> str:
    """Return the two ends of an interval as text.

    >>> show_interval(990.0, 1010.0)
    '990 to 1,010'
    """
    return f"{show_number(low)} to {show_number(high)}"


def show_confidence(confidence: float) -> str:
    """Return a confidence as a percentage: 0.95 is '95%'."""
    return f"{100 * confidence:.6g}%"


LONGEST_TO_COMPARE = 60
_MOST_TO_COMPARE = 5000
_BEGINNING = 3


def nearest(written: str, known: Iterable[str]) -> str | None:
    """Return the one of the known names that was probably meant: a few slips away, or the only one that begins so.

    A slip is a letter too many, too few, another one, or two exchanged. Half a name, or more, may not be wrong.

    >>> nearest("I1O", ["I10", "I20"]), nearest("reginon", ["region", "reason"]), nearest("X", ["F", "M"])
    ('I10', 'region', None)
    """
    folded = written.casefold()
    if not folded or len(folded) > LONGEST_TO_COMPARE:
        return None
    names = [name for name, _ in zip(known, range(_MOST_TO_COMPARE), strict=False)]
    if sum(name.casefold() == folded for name in names) > 1:
        return None
    best, fewest = None, max(1, min(3, len(folded) // 3)) + 1
    for name in names:
        slips = _slips(folded, name.casefold(), fewest)
        if slips < fewest and (slips == 0 or slips < max(len(folded), len(name))):
            best, fewest = name, slips
    begun = [name for name in names if name.casefold().startswith(folded)] if len(folded) >= _BEGINNING else []
    return best if best is not None or len(begun) != 1 else begun[0]


def did_you_mean(written: str, known: Iterable[str]) -> str:
    """Return a question to put into a refusal, before what is allowed; nothing if no known name is near.

    >>> did_you_mean("agee", ["age", "sex"])
    "did you mean 'age'? "
    """
    found = nearest(written, known)
    return "" if found is None else f"did you mean {found!r}? "


def _slips(one: str, other: str, enough: int) -> int:
    """Return the edit distance with exchanges of neighbours (optimal string alignment), or ``enough`` if that is less.

    >>> _slips("abc", "acb", 9), _slips("abc", "abcd", 9), _slips("abc", "xyz", 2)
    (1, 1, 2)
    """
    if abs(len(one) - len(other)) >= enough:
        return enough
    before: list[int] = []
    row = list(range(len(other) + 1))
    for place, letter in enumerate(one, start=1):
        older, before, row = before, row, [place]
        for at, against in enumerate(other, start=1):
            slips = min(before[at] + 1, row[at - 1] + 1, before[at - 1] + (letter != against))
            if place > 1 and at > 1 and letter == other[at - 2] and one[place - 2] == against:
                slips = min(slips, older[at - 2] + 1)
            row.append(slips)
        if min(row) >= enough:
            return enough
    return min(row[-1], enough)
