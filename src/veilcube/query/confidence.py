"""What goes with every question, as callers give it: the confidence of an interval, and what is True or False."""

from numbers import Real

import numpy as np

from veilcube.errors import QueryError


def read_confidence(confidence: float) -> float:
    """Return a confidence as a float; refuses what is none before anything is spent or computed.

    >>> read_confidence(0.95)
    0.95
    """
    if isinstance(confidence, bool) or not isinstance(confidence, Real) or not 0 < float(confidence) < 1:
        raise QueryError(f"confidence must lie strictly between 0 and 1, not {confidence!r}: 0.95 is usual")
    return float(confidence)


def read_flag(flag: object, name: str) -> bool:
    """Return True or False; refuses all else, since "no" and "False" would count as true.

    >>> read_flag(True, "fresh")
    True
    """
    if not isinstance(flag, bool | np.bool_):
        raise QueryError(f"{name} must be True or False")
    return bool(flag)
