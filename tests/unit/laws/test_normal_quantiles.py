"""The reach of intervals stays finite up to the largest confidence that a number can hold."""

from fractions import Fraction

import numpy as np
import pytest

from veilcube.errors import QueryError
from veilcube.laws.normal_quantiles import laplace_sum_deviations, normal_quantile, widest_deviations
from veilcube.query.answer import read_confidence


@pytest.mark.parametrize("confidence", [1e-9, 0.5, 0.95, 1 - 2**-53])
def test_every_confidence_has_a_finite_reach(confidence: float) -> None:
    assert 0 < normal_quantile(confidence) <= widest_deviations(confidence) < 30
    assert np.isfinite(laplace_sum_deviations(np.array([0.0, 1.0]), confidence)).all()


@pytest.mark.parametrize("confidence", [0, 1, -0.5, 2, np.nan, True, "0.95", None, Fraction(10**20 - 1, 10**20)])
def test_what_is_no_confidence_is_refused(confidence: object) -> None:
    with pytest.raises(QueryError, match="strictly between 0 and 1"):
        read_confidence(confidence)  # type: ignore[arg-type]
