"""Conversions between rho and (epsilon, delta): against other arithmetic, against exact laws, never unsafe.

What is proved in docs/proofs/zcdp.md is tested here.
"""

import subprocess
import sys
from collections.abc import Callable
from decimal import Context, Inexact, localcontext
from fractions import Fraction
from math import exp, log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.special import log_ndtr

from support import high_precision
from veilcube.errors import PrivacyError
from veilcube.privacy import delta_of, epsilon_for, pure_rho, read_delta, read_rho, rho_for
from veilcube.privacy.zcdp import SMALLEST_DELTA, _delta_at

Conversion = Callable[[Fraction, Fraction], Fraction]

TINY = Fraction(1, 10**20)
RHOS = [Fraction(text) for text in ("1e-12", "1e-6", "1/1000", "1/20", "1/2", "3", "100", "1e4")]
DELTAS = [Fraction(text) for text in ("1e-300", "1e-100", "1e-12", "1e-6", "1/100", "1/2", "0.999", "0.999999999")]


def log_delta_at(step: Fraction, rho: Fraction, epsilon: Fraction) -> Fraction:
    """Return the logarithm of exp((a-1)(a rho - epsilon)) / (a-1) * (1 - 1/a)^a at a = 1 + step, as it is published."""
    alpha = 1 + step
    logs = alpha * high_precision.log(1 - 1 / alpha) - high_precision.log(step)
    return step * (alpha * rho - epsilon) + logs


def least_log_delta(rho: Fraction, epsilon: Fraction) -> Fraction:
    """Search the least logarithm over all orders by golden sections of log2(a - 1): no derivative is needed."""

    def height(place: Fraction) -> Fraction:
        whole = place.numerator // place.denominator
        return log_delta_at(Fraction(2) ** whole * (1 + place - whole), rho, epsilon)

    golden = Fraction(round((sqrt(5) - 1) / 2 * 2**60), 2**60)
    low, high = Fraction(-60), Fraction(60)
    left, right = high - golden * (high - low), low + golden * (high - low)
    at_left, at_right = height(left), height(right)
    while high - low > Fraction(1, 10**13):
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = _short(high - golden * (high - low))
            at_left = height(left)
        else:
            low, left, at_left = left, right, at_right
            right = _short(low + golden * (high - low))
            at_right = height(right)
    return min(at_left, at_right)


def _short(value: Fraction) -> Fraction:
    return Fraction(round(value * 2**80), 2**80)


PAIRS = [
    ("1e-12", "1e-5"), ("1e-6", "1/1000"), ("1e-6", "1/100"), ("1/1000", "0"), ("1/1000", "1/4"), ("1/20", "1"),
    ("1/2", "1/2"), ("1/2", "8"), ("3", "2"), ("3", "40"), ("100", "90"), ("100", "300"), ("1e4", "10160"),
    ("1e4", "15000"),
]  # fmt: skip


def check_least_delta(converted: Conversion) -> None:
    """The conversion is the least over all orders: not below it, and above it by less than rounding."""
    for rho, epsilon in PAIRS:
        exact = high_precision.exp(least_log_delta(Fraction(rho), Fraction(epsilon)))
        found = converted(Fraction(rho), Fraction(epsilon))
        assert exact * (1 - TINY) <= found, f"delta too small at rho={rho}, epsilon={epsilon}"
        assert found <= exact * (1 + TINY), f"delta too large at rho={rho}, epsilon={epsilon}"


def gaussian_delta(rho: float, epsilon: float) -> float:
    """Return the hockey-stick divergence of two normal laws of variance 1 whose means are sqrt(2 rho) apart."""
    shift = sqrt(2 * rho)
    ours, theirs = log_ndtr(shift / 2 - epsilon / shift), epsilon + log_ndtr(-shift / 2 - epsilon / shift)
    return float(-np.expm1(theirs - ours) * np.exp(ours))


def discrete_gaussian_delta(variance: float, shift: int, epsilon: float) -> float:
    """Return the hockey-stick divergence of discrete Gaussians whose centres are a whole number apart."""
    reach = int(45 * sqrt(variance)) + shift + 5
    outputs = np.arange(-reach, reach + 1)
    masses = np.exp(-(outputs.astype(float) ** 2) / (2 * variance))
    moved = np.exp(-((outputs - shift).astype(float) ** 2) / (2 * variance))
    return float(np.maximum(masses - exp(epsilon) * moved, 0).sum() / masses.sum())


def check_bounds_gaussians(converted: Conversion) -> None:
    """No Gaussian, continuous or discrete, has a larger delta than its rho is converted to."""
    for rho in (0.001, 0.02, 0.125, 0.5, 2.0, 8.0):
        for ratio in (0.0, 0.3, 1.0, 2.0, 4.0):
            epsilon = rho + ratio * sqrt(2 * rho)
            assert gaussian_delta(rho, epsilon) <= converted(Fraction(rho), Fraction(epsilon))
    for variance in (0.0625, 0.25, 0.5, 1.0, 3.0, 50.0):
        for shift in (1, 2, 5):
            rho = Fraction(shift**2) / (2 * Fraction(variance))
            for ratio in (0.5, 1.0, 1.3, 2.0):
                epsilon = float(rho) * ratio
                # A part in 10^12 for what floats lose.
                assert discrete_gaussian_delta(variance, shift, epsilon) <= converted(rho, Fraction(epsilon)) * (
                    1 + Fraction(1, 10**12)
                )


def test_delta_is_the_least_over_all_orders_in_other_arithmetic() -> None:
    check_least_delta(delta_of)


def test_no_gaussian_has_a_larger_delta_than_its_conversion() -> None:
    check_bounds_gaussians(delta_of)


def three_percent_less(rho: Fraction, epsilon: Fraction) -> Fraction:
    return delta_of(rho, epsilon) * Fraction(97, 100)


def three_percent_more(rho: Fraction, epsilon: Fraction) -> Fraction:
    return delta_of(rho, epsilon) * Fraction(103, 100)


def cheaper_rho(rho: Fraction, epsilon: Fraction) -> Fraction:
    return delta_of(rho * Fraction(97, 100), epsilon)


def without_the_last_factor(rho: Fraction, epsilon: Fraction) -> Fraction:
    """Take the older conversion, exp(-(epsilon - rho)² / 4 rho), which is never better."""
    return Fraction(exp(-((float(epsilon - rho)) ** 2) / (4 * float(rho)))) if epsilon > rho else Fraction(1)


@pytest.mark.parametrize("broken", [three_percent_less, three_percent_more, cheaper_rho, without_the_last_factor])
def test_a_conversion_that_is_three_percent_off_or_not_the_best_is_found(broken: Conversion) -> None:
    with pytest.raises(AssertionError, match=r"delta too (small|large)"):
        check_least_delta(broken)


def test_a_conversion_below_the_gaussians_own_delta_is_found() -> None:
    with pytest.raises(AssertionError):
        check_bounds_gaussians(lambda rho, epsilon: delta_of(rho * Fraction(3, 4), epsilon))


@settings(max_examples=60)
@given(st.integers(-40, 40), st.integers(1, 10**6), st.integers(1, 10**9), st.integers(0, 10**6))
def test_at_any_order_delta_is_rounded_up_by_less_than_a_part_in_ten_to_the_twentieth(
    power: int, mantissa: int, rho: int, epsilon: int
) -> None:
    step, cost, bound = Fraction(2) ** power * mantissa / 10**6, Fraction(rho, 10**8), Fraction(epsilon, 10**4)
    exact = log_delta_at(step, cost, bound)
    found = _delta_at(step, cost, bound)
    if exact >= 0:
        assert found == 1
    elif exact < Fraction(-690):
        assert SMALLEST_DELTA <= found <= Fraction(1, 10**299)
    else:
        # The error of the series is below 2^-1500.
        value = high_precision.exp(exact)
        assert value - Fraction(1, 2**1500) <= found <= value * (1 + TINY)


@pytest.mark.parametrize("rho", RHOS, ids=str)
@pytest.mark.parametrize("delta", DELTAS, ids=lambda delta: f"{float(delta):.9g}")
def test_epsilon_and_delta_of_a_rho_agree(rho: Fraction, delta: Fraction) -> None:
    epsilon = epsilon_for(rho, delta)
    assert delta_of(rho, epsilon) <= delta * (1 + TINY)
    if epsilon > 0:
        assert delta_of(rho, epsilon * (1 - Fraction(1, 10**9))) > delta
    else:
        assert delta_of(rho, 0) <= delta


@pytest.mark.parametrize("delta", DELTAS, ids=lambda delta: f"{float(delta):.9g}")
@pytest.mark.parametrize("epsilon", ["0", "1e-6", "1/100", "1", "7/2", "20", "1000", "20000"])
def test_a_rho_made_for_a_pair_stays_within_it_and_nearly_uses_it_up(epsilon: str, delta: Fraction) -> None:
    if epsilon == "0" and delta < Fraction(1, 10**30):
        with pytest.raises(PrivacyError, match="so small"):
            rho_for(epsilon, delta)
        return
    rho = rho_for(epsilon, delta)
    assert delta_of(rho, epsilon) <= delta
    assert epsilon_for(rho, delta) <= Fraction(epsilon)
    more = rho * (1 + Fraction(1, 10**9))
    assert delta_of(more, epsilon) > delta


@settings(max_examples=60)
@given(st.integers(1, 10**9), st.integers(1, 299), st.integers(1, 999))
def test_round_trips_are_never_unsafe(epsilon: int, digits: int, mantissa: int) -> None:
    bound, delta = Fraction(epsilon, 10**6), Fraction(mantissa, 1000) / 10 ** (digits - 1)
    if delta >= SMALLEST_DELTA:
        rho = rho_for(bound, delta)
        assert epsilon_for(rho, delta) <= bound
        assert delta_of(rho, bound) <= delta


def test_conversions_are_monotone() -> None:
    for delta in DELTAS:
        found = [epsilon_for(rho, delta) for rho in RHOS]
        assert found == sorted(found)
    for rho in RHOS:
        found = [epsilon_for(rho, delta) for delta in DELTAS]
        assert found == sorted(found, reverse=True)
        found = [delta_of(rho, epsilon) for epsilon in (0, "1e-6", "1/10", 1, 10, 100, 10**4)]
        assert found == sorted(found, reverse=True)
    for epsilon in ("1/100", 1, 10):
        found = [rho_for(epsilon, delta) for delta in DELTAS]
        assert found == sorted(found)


def test_results_are_short_fractions_and_extreme_ones_are_told_at_the_limits() -> None:
    rho = rho_for(1, "1e-9")
    assert 0.0149 < rho < 0.0150
    assert rho.denominator <= 10**20
    assert delta_of("1e-12", 10**9) == SMALLEST_DELTA
    assert delta_of(10**9, 0) == 1
    assert rho_for(10**9, "0.9") <= 10**9


def test_the_classic_conversion_is_never_better() -> None:
    for rho in (0.01, 0.5, 4.0):
        for delta in (1e-12, 1e-6, 1e-3):
            classic = rho + 2 * sqrt(rho * log(1 / delta))
            assert 0.6 * classic < epsilon_for(rho, delta) < classic


def check_pure(cost: Callable[[float], Fraction]) -> None:
    """No order of the Rényi divergence of randomised response exceeds the cost, and some order needs nearly all."""
    for epsilon in (0.01, 0.1, 1.0, 3.0):
        truth = exp(epsilon) / (1 + exp(epsilon))
        ours, theirs = np.array([truth, 1 - truth]), np.array([1 - truth, truth])
        orders = np.array([1.001, 1.5, 2.0, 8.0, 100.0])
        divergences = np.log((ours ** orders[:, None] * theirs ** (1 - orders[:, None])).sum(axis=1)) / (orders - 1)
        needed = float((divergences / orders).max())
        assert needed <= float(cost(epsilon)) * (1 + 1e-9)
        assert needed >= 0.99 * float(cost(epsilon)) or epsilon > 0.1


def test_pure_epsilon_costs_half_its_square() -> None:
    assert pure_rho("1/10") == Fraction(1, 200)
    assert pure_rho(3) == Fraction(9, 2)
    check_pure(pure_rho)


@pytest.mark.parametrize("factor", [Fraction(97, 100), Fraction(103, 100)])
def test_a_pure_cost_that_is_three_percent_off_is_found(factor: Fraction) -> None:
    with pytest.raises(AssertionError):
        check_pure(lambda epsilon: pure_rho(epsilon) * factor)


def test_the_callers_decimal_context_changes_nothing() -> None:
    expected = epsilon_for("1/7", "1e-9"), delta_of("1/7", 2), rho_for(2, "1e-9")
    with localcontext(Context(prec=3, traps=[Inexact])):
        assert (epsilon_for("1/7", "1e-9"), delta_of("1/7", 2), rho_for(2, "1e-9")) == expected


def test_a_program_whose_decimals_are_short_and_strict_before_the_import_gets_the_same() -> None:
    program = (
        "import decimal\n"
        "for context in (decimal.DefaultContext, decimal.getcontext()):\n"
        "    context.prec, context.Emax = 3, 20\n"
        "    context.traps[decimal.Inexact] = context.traps[decimal.FloatOperation] = True\n"
        "from veilcube.privacy import delta_of, epsilon_for, rho_for\n"
        "print(epsilon_for('1/7', '1e-9'), delta_of('1/7', 2), rho_for(2, '1e-9'))\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    expected = epsilon_for("1/7", "1e-9"), delta_of("1/7", 2), rho_for(2, "1e-9")
    assert [Fraction(text) for text in ran.stdout.split()] == list(expected)


def test_numbers_are_read_as_people_mean_them() -> None:
    assert read_delta(1e-9) == read_delta("1e-9") == read_delta(Fraction(1, 10**9)) == Fraction(1, 10**9)
    assert read_delta(1e-300) == SMALLEST_DELTA
    assert read_rho(0.1) == read_rho("1/10") == Fraction(1, 10)


WRONG = [
    True, None, "", "many", "1/0", float("nan"), float("inf"), "nan", "inf", -1, -1e-9, "-0.1", "1e999999999",
    "1e-999999999", "１e-999999999", [1], b"1", 1j, "1" * 70,
]  # fmt: skip


@pytest.mark.parametrize("value", [*WRONG, 1e-301, "1e-301", Fraction(1, 10**301)], ids=str)
def test_what_is_no_delta_is_refused(value: object) -> None:
    for call in (read_delta, lambda bad: epsilon_for(1, bad), lambda bad: rho_for(1, bad)):
        with pytest.raises(PrivacyError, match="delta must be a number from"):
            call(value)


@pytest.mark.parametrize("value", [0, 0.0, "0", "0.000", "0e5", Fraction(0)], ids=str)
def test_a_delta_of_zero_is_told_to_be_pure(value: object) -> None:
    with pytest.raises(PrivacyError, match="pure differential privacy"):
        read_delta(value)


@pytest.mark.parametrize("value", [1, 1.0, "1", 1.5, "3/2", 10**6], ids=str)
def test_a_delta_of_one_or_more_is_refused(value: object) -> None:
    with pytest.raises(PrivacyError, match="below 1"):
        read_delta(value)


@pytest.mark.parametrize("value", [*WRONG, 0, "0", 2 * 10**9, Fraction(1, 10**81)], ids=str)
def test_what_is_no_rho_is_refused(value: object) -> None:
    for call in (read_rho, lambda bad: epsilon_for(bad, "1e-9"), lambda bad: delta_of(bad, 1)):
        with pytest.raises(PrivacyError, match="rho must be a finite number"):
            call(value)


@pytest.mark.parametrize("value", [*WRONG, 2 * 10**9], ids=str)
def test_what_is_no_epsilon_is_refused(value: object) -> None:
    for call in (pure_rho, lambda bad: rho_for(bad, "1e-9"), lambda bad: delta_of(1, bad)):
        with pytest.raises(PrivacyError, match="epsilon must be a finite number"):
            call(value)
