"""Estimators: from a public record to answers with intervals. None of them touches private data."""

from veilcube.analyst.estimate.base import Estimator, Fit
from veilcube.analyst.estimate.best import best_estimator
from veilcube.analyst.estimate.linear import LeastSquares, Nonnegative, Thresholded
from veilcube.analyst.estimate.marginals import MarginalMaxEntropy
from veilcube.analyst.estimate.mixture import LatentClasses
from veilcube.analyst.estimate.partition import Observed, Shrunken
from veilcube.analyst.estimate.polya import Posterior
from veilcube.errors import QueryError
from veilcube.record import ReleaseRecord

ESTIMATORS: tuple[Estimator, ...] = (
    LeastSquares(),
    Nonnegative(),
    Posterior(),
    Thresholded(),
    Thresholded(is_pooled=False),
    Shrunken(),
    Observed(),
    MarginalMaxEntropy(),
    LatentClasses(),
)


def choose_estimator(record: ReleaseRecord, name: str, fit: Fit) -> Estimator:
    """Return the estimator that a user named, or for ``"best"`` the one that suits the release best."""
    if not isinstance(name, str):
        raise QueryError("an estimator is named by a text such as 'best'")
    able = [estimator for estimator in ESTIMATORS if estimator.can_read(record)]
    if name == "best" and able:
        return best_estimator(record, fit)
    for estimator in able:
        if estimator.name == name:
            return estimator
    allowed = ", ".join(["best", *(estimator.name for estimator in able)])
    if name not in {estimator.name for estimator in ESTIMATORS}:
        raise QueryError(f"there is no estimator '{name}'; on this release use one of {allowed}")
    raise QueryError(f"the estimator '{name}' cannot read this release; use one of {allowed}")
