"""Estimators: from a public record to answers with intervals. None of them touches private data."""

from veilcube.analyst.estimate.base import Estimate, Estimates, Estimator, GroupedCounts
from veilcube.analyst.estimate.least_squares import LeastSquares
from veilcube.analyst.estimate.nonnegative import Nonnegative
from veilcube.errors import QueryError
from veilcube.release import ReleaseRecord

# In the order of preference of "best".
ESTIMATORS: tuple[Estimator, ...] = (LeastSquares(), Nonnegative())


def choose_estimator(record: ReleaseRecord, name: str) -> Estimator:
    """Return the estimator that a user named, or the preferred one that can read the release for ``"best"``."""
    able = [estimator for estimator in ESTIMATORS if estimator.can_read(record)]
    if name == "best" and able:
        return able[0]
    for estimator in able:
        if estimator.name == name:
            return estimator
    allowed = ", ".join(["best", *(estimator.name for estimator in able)])
    raise QueryError(f"the estimator '{name}' cannot read this release; use one of {allowed}")


__all__ = ["ESTIMATORS", "Estimate", "Estimates", "Estimator", "GroupedCounts", "choose_estimator"]
