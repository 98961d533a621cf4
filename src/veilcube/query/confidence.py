"""The confidence of an interval, as callers give it."""

from numbers import Real

from veilcube.errors import QueryError


def read_confidence(confidence: float) -> float:
    """Return a confidence as a float; refuses what is none before anything is spent or computed.

    >>> read_confidence(0.95)
    0.95
    """
    if isinstance(confidence, bool) or not isinstance(confidence, Real) or not 0 < float(confidence) < 1:
        raise QueryError(f"confidence must lie strictly between 0 and 1, not {confidence!r}: 0.95 is usual")
    return float(confidence)
