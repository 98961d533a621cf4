"""Numbers as people read them, wherever they are shown."""

import math
import sys
from datetime import date
from decimal import Decimal


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
    if abs(value) >= 1000 or float(value).is_integer():
        return f"{value:,.0f}"
    return f"{value:.4g}"


def show_interval(low: object, high: object) -> str:
    """Return the two ends of an interval as text.

    >>> show_interval(990.0, 1010.0)
    '990 to 1,010'
    """
    return f"{show_number(low)} to {show_number(high)}"


def show_confidence(confidence: float) -> str:
    """Return a confidence as a percentage: 0.95 is '95%'."""
    return f"{100 * confidence:.6g}%"
