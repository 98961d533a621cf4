"""Exact ratios from untrusted text: ``Fraction("1e999999999")`` would take all memory, so only short ones are read."""

import re
from fractions import Fraction

# Enough for any fraction of 1,100 bits, which is what a ledger keeps.
MAX_DIGITS = 340
_RATIO = re.compile(r"([0-9]+)(?:/([0-9]+))?", re.ASCII)


def read_ratio(text: object, max_digits: int = MAX_DIGITS) -> Fraction:
    """Return the ratio that ``write_fraction`` wrote; raises ``ValueError`` on anything else, however long it is.

    >>> read_ratio("7/2")
    Fraction(7, 2)
    """
    found = _RATIO.fullmatch(text) if isinstance(text, str) and len(text) <= 2 * max_digits + 1 else None
    if found is None or any(len(part or "") > max_digits for part in found.groups()) or not int(found[2] or "1"):
        raise ValueError(f"not an exact ratio of at most {max_digits} digits on each side")
    return Fraction(found[0])
