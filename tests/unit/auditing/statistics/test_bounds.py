"""Bounds on probabilities and on epsilon hold as often as they say, and find what they say they find."""

from math import exp, log

import numpy as np
import pytest
from scipy import stats

from veilcube.auditing.statistics import clopper_pearson, detectable, epsilon_bound


@pytest.mark.parametrize("chance", [0.0, 0.001, 0.3, 0.5, 0.97, 1.0])
@pytest.mark.parametrize("error", [0.05, 0.001])
def test_each_bound_fails_at_most_as_often_as_it_says(chance: float, error: float) -> None:
    """Exactly: the sum of the probabilities of all counts whose bound would be wrong."""
    trials = 400
    counts = np.arange(trials + 1)
    low, high = clopper_pearson(counts, trials, error)
    masses = stats.binom.pmf(counts, trials, chance)
    assert masses[low > chance].sum() <= error + 1e-12
    assert masses[high < chance].sum() <= error + 1e-12


def test_the_bound_of_many_runs_comes_near_the_true_epsilon() -> None:
    assert epsilon_bound(7310, 2690, 10_000, 0.0, 0.001) == pytest.approx(1.0, abs=0.1)
    assert epsilon_bound(7310, 2690, 10_000, 0.0, 0.001) < log(7310 / 2690)
    assert epsilon_bound(7310, 2690, 10_000, 0.5, 0.001) < 0
    assert epsilon_bound(10, 0, 10_000, 0.1, 0.001) == -np.inf


def test_what_is_said_to_be_found_is_found_in_19_of_20_audits() -> None:
    trials, error = 20_000, 0.0005
    true = detectable(1.0, 0.0, trials, error)
    often = 1 / (1 + exp(-true))
    rng = np.random.default_rng(1)
    bounds = epsilon_bound(rng.binomial(trials, often, 4000), rng.binomial(trials, 1 - often, 4000), trials, 0.0, error)
    assert 0.93 < (bounds > 1).mean() < 0.985
