"""How much data is enough: golden values, all three directions, and each bound against the law it stands for."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq
from scipy.special import gammaincc, gammaln

from veilcube.errors import PlanError, PrivacyError
from veilcube.laws.noise import DiscreteLaplace
from veilcube.laws.summed_noise import half_widths
from veilcube.planner.usefulness import MEANINGS, usefulness

BOUNDS = ["paper", "sum", "single-query"]


def tail_of_summed_laplace(n: int, w: float) -> float:
    """P(|sum of n Laplace(1)| > w), the closed form of ERRATA."""
    k = np.arange(n)
    log_coefficients = gammaln(n + k) - gammaln(n) - gammaln(k + 1) - gammaln(n - k) - (n + k) * np.log(2)
    return float(2 * np.sum(np.exp(log_coefficients + gammaln(n - k)) * gammaincc(n - k, w)))


def test_the_sample_sizes_of_the_paper_are_the_golden_values() -> None:
    # ERRATA: cells 100, epsilon .05, error .02, delta .05; one query exactly needs 27,748 whole rows.
    rows = usefulness(cells=100, epsilon=0.05, error=0.02, delta=0.05).rows
    assert rows["paper"] == pytest.approx(760090.2, abs=0.05)
    assert rows["sum"] == pytest.approx(116997.1, abs=0.05)
    assert np.ceil(rows["single-query"]) == 27748


@pytest.mark.parametrize("cells", [1, 2, 7, 100, 150, 400])
@pytest.mark.parametrize("delta", [0.5, 0.05, 1e-4])
def test_a_single_query_has_the_quantile_of_the_closed_form(cells: int, delta: float) -> None:
    expected = brentq(lambda w: tail_of_summed_laplace(cells, w) - delta, 0, 40 * cells + 40, rtol=1e-12)
    found = usefulness(cells=cells, epsilon=1, error=1, delta=delta).rows["single-query"]
    assert found == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("cells", [1, 30, 5000])
def test_the_sum_bound_is_the_quantile_of_a_gamma_law(cells: int) -> None:
    found = usefulness(cells=cells, epsilon="1/4", error=0.5, delta=0.1).rows["sum"]
    assert stats.gamma(cells).sf(found / 8) == pytest.approx(0.1, rel=1e-9)


def test_bounds_are_ordered_from_loose_to_tight() -> None:
    for cells in (2, 10, 1000, 10**6):
        rows = usefulness(cells=cells, epsilon=0.1, error=0.01, delta=0.01).rows
        assert rows["paper"] > rows["sum"] > rows["single-query"]


def test_one_cell_needs_the_same_by_every_bound() -> None:
    rows = usefulness(cells=1, epsilon=0.1, error=0.01, delta=0.05).rows
    assert list(rows.values()) == pytest.approx([rows["paper"]] * 3)


@pytest.mark.parametrize("bound", BOUNDS)
def test_every_direction_finds_the_same_triple(bound: str) -> None:
    rows = usefulness(cells=40, epsilon=0.2, error=0.03, delta=0.02).rows[bound]
    assert usefulness(cells=40, epsilon=0.2, rows=rows, delta=0.02).error[bound] == pytest.approx(0.03)
    assert usefulness(cells=40, error=0.03, rows=rows, delta=0.02).epsilon[bound] == pytest.approx(0.2)


def test_what_was_given_is_the_same_under_every_bound() -> None:
    found = usefulness(cells=40, epsilon=0.2, rows=1000, delta=0.02)
    assert found.solved == "error"
    assert dict(found.rows) == dict.fromkeys(BOUNDS, 1000.0)
    assert dict(found.epsilon) == dict.fromkeys(BOUNDS, 0.2)


def test_exchanged_rows_need_twice_as_many_rows() -> None:
    one, two = (
        usefulness(cells=9, epsilon=1, error=0.1, delta=0.05, neighbours=relation).rows
        for relation in ("add-remove", "replace")
    )
    assert two == pytest.approx({bound: 2 * rows for bound, rows in one.items()})


@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1, 10), Fraction(1), Fraction(3), Fraction(10)])
@pytest.mark.parametrize("cells", [1, 10, 1000, 10**6])
@pytest.mark.parametrize("delta", [0.5, 0.05, 0.001])
def test_discrete_noise_is_never_wider_by_more_than_one_count(epsilon: Fraction, cells: int, delta: float) -> None:
    continuous = usefulness(cells=cells, epsilon=epsilon, rows=1, delta=delta).error["single-query"]
    assert half_widths(DiscreteLaplace(1 / epsilon), [cells], 1 - delta)[0] <= continuous + 1


def test_the_inverted_tail_and_the_expansion_meet() -> None:
    inverted, expanded = (
        usefulness(cells=cells, epsilon=1, error=1, delta=1e-4).rows["single-query"] / cells**0.5
        for cells in (2**14, 2**14 + 1)
    )
    assert inverted == pytest.approx(expanded, rel=2e-8)


def test_every_bound_is_explained_in_its_text_and_data() -> None:
    found = usefulness(cells=100, epsilon=0.05, error=0.02, delta=0.05)
    assert list(found.rows) == list(MEANINGS) == BOUNDS
    assert [line.split(":")[0] for line in str(found).splitlines()] == ["rows 760090", "rows 116997", "rows 27747.4"]
    assert found.to_dict()["rows"] == dict(found.rows)
    assert found.to_dict()["meanings"] == dict(MEANINGS)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"error": 0.1},
        {"epsilon": 1, "error": 0.1, "rows": 10},
        {"epsilon": 1, "error": 0},
        {"epsilon": 1, "error": float("inf")},
        {"epsilon": 1, "error": "small"},
        {"epsilon": 1, "rows": -5},
        {"epsilon": 1, "rows": True},
        {"error": 1e-200, "rows": 1e-200},
        {"epsilon": 1, "error": 0.1, "cells": 0},
        {"epsilon": 1, "error": 0.1, "cells": 2.5},
        {"epsilon": 1, "error": 0.1, "cells": 2**41},
        {"epsilon": 1, "error": 0.1, "delta": 0},
        {"epsilon": 1, "error": 0.1, "delta": 1},
        {"epsilon": 1, "error": 0.1, "delta": float("nan")},
    ],
)
def test_what_cannot_be_planned_is_refused_in_one_sentence(given: dict[str, object]) -> None:
    with pytest.raises(PlanError) as refusal:
        usefulness(**({"cells": 10, "delta": 0.05} | given))  # type: ignore[arg-type]
    assert "\n" not in str(refusal.value)
    assert ". " not in str(refusal.value)


def test_a_wrong_epsilon_or_relation_is_refused() -> None:
    with pytest.raises(PrivacyError, match="epsilon must be above 0"):
        usefulness(cells=10, epsilon=0, error=0.1, delta=0.05)
    with pytest.raises(PrivacyError, match="'add-remove' or 'replace'"):
        usefulness(cells=10, epsilon=1, error=0.1, delta=0.05, neighbours="swap")
