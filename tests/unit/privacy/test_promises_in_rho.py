"""What may be asked for: pure epsilon, epsilon with a delta, or a rho; and the noise that each of them buys."""

from fractions import Fraction

import pytest
from hypothesis import given, settings, strategies as st

from veilcube.curator.sampling import discrete_gaussian
from veilcube.errors import PrivacyError
from veilcube.laws import DiscreteGaussian
from veilcube.operators import IdentityOperator, MarginalsOperator
from veilcube.privacy import (
    DELTA_SHOWN,
    Currency,
    Neighbours,
    PrivacyUnit,
    Promise,
    epsilon_for,
    pure_epsilon_within,
    rho_for,
    sigma_squared_for,
)
from veilcube.record import sensitivity_l2_squared_of

PURE = Promise.read(epsilon="1/2")
PAIR = Promise.read(epsilon=1, delta=1e-9)
IN_RHO = Promise.read(rho="1/8")


def test_epsilon_alone_is_pure_and_costs_epsilon() -> None:
    assert (PURE.epsilon, PURE.delta, PURE.rho) == (Fraction(1, 2), 0, None)
    assert PURE.is_pure
    assert (PURE.currency, PURE.cost, PURE.pure_epsilon) == (Currency.EPSILON, Fraction(1, 2), Fraction(1, 2))
    assert PURE.priced_in_rho() == PURE
    assert PURE.words == "epsilon 0.5"


def test_a_pair_costs_the_largest_rho_within_it_or_its_epsilon() -> None:
    assert (PAIR.epsilon, PAIR.delta) == (1, Fraction(1, 10**9))
    assert PAIR.rho == rho_for(1, "1e-9")
    assert (PAIR.currency, PAIR.cost) == (Currency.RHO, PAIR.rho)
    assert not PAIR.is_pure
    assert not PAIR.is_in_rho
    # Noise that is pure with this epsilon keeps the pair, whatever its delta.
    assert PAIR.pure_epsilon == 1
    assert PAIR.words == "epsilon 1 with delta 1e-09 (rho 0.0149731)"


def test_a_rho_is_taken_as_it_is_and_told_as_a_pair() -> None:
    assert IN_RHO.rho == Fraction(1, 8) == IN_RHO.cost
    assert IN_RHO.is_in_rho
    assert (IN_RHO.delta, IN_RHO.epsilon) == (DELTA_SHOWN, epsilon_for("1/8", DELTA_SHOWN))
    assert IN_RHO.pure_epsilon == Fraction(1, 2)
    assert IN_RHO.words == f"rho 0.125 (epsilon {float(IN_RHO.epsilon):.6g} with delta 1e-09)"


def test_a_pair_that_is_priced_in_rho_buys_laplace_noise_within_that_rho_only() -> None:
    priced = PAIR.priced_in_rho()
    assert (priced.epsilon, priced.delta, priced.rho, priced.is_in_rho) == (PAIR.epsilon, PAIR.delta, PAIR.rho, True)
    assert priced.pure_epsilon == pure_epsilon_within(PAIR.rho) < Fraction(1, 5)
    assert IN_RHO.priced_in_rho() == IN_RHO


def test_a_scaled_promise_is_of_the_same_kind() -> None:
    third = Fraction(1, 3)
    assert PURE.scaled(third) == Promise.read(epsilon="1/6")
    assert PAIR.scaled(third) == Promise.read(epsilon="1/3", delta="1e-9")
    assert IN_RHO.scaled(third) == Promise.read(rho="1/24")


@pytest.mark.parametrize("other", [{"epsilon": 1}, {"delta": 1e-9}, {"epsilon": 1, "delta": 1e-9}], ids=str)
def test_rho_together_with_another_is_refused(other: dict[str, object]) -> None:
    with pytest.raises(PrivacyError, match="promise of its own"):
        Promise.read(rho=1, **other)


def test_what_is_missing_is_named() -> None:
    with pytest.raises(PrivacyError, match="epsilon or rho is missing"):
        Promise.read()
    with pytest.raises(PrivacyError, match="delta needs the epsilon"):
        Promise.read(delta=1e-9)


WRONG = [True, float("nan"), float("inf"), "many", "nan", -1, "-0.1", "1/0", [1], "1e-999999999", 1j]


@pytest.mark.parametrize("delta", [0, "0", 0.0, 1, "1", 1.5, 10**6, *WRONG], ids=str)
def test_a_delta_that_is_no_small_probability_is_refused(delta: object) -> None:
    with pytest.raises(PrivacyError, match="delta"):
        Promise.read(epsilon=1, delta=delta)


@pytest.mark.parametrize("value", [0, "0", *WRONG], ids=str)
def test_an_epsilon_or_rho_that_is_no_number_above_zero_is_refused(value: object) -> None:
    for asked in ({"epsilon": value}, {"epsilon": value, "delta": 1e-9}, {"rho": value}):
        with pytest.raises(PrivacyError, match=r"^(epsilon|rho) must be"):
            Promise.read(**asked)


@given(st.fractions(Fraction(1, 10**30), 10**8), st.integers(0, 18))
@settings(max_examples=200)
def test_the_pure_epsilon_within_a_rho_is_rounded_down_and_by_little(rho: Fraction, digits: int) -> None:
    for cost in (rho, Fraction(round(rho * 10**digits), 10**digits)):
        if cost >= Fraction(1, 10**30):
            epsilon = pure_epsilon_within(cost)
            assert epsilon**2 <= 2 * cost < (epsilon * (1 + Fraction(1, 10**17))) ** 2


@given(st.integers(1, 10**9), st.integers(5, 20))
def test_the_pure_epsilon_within_half_a_square_is_its_root(numerator: int, digits: int) -> None:
    root = Fraction(numerator, 10**digits)
    assert pure_epsilon_within(root**2 / 2) == root


@given(st.fractions(Fraction(1, 10**12), 1000), st.integers(1, 10**9))
@settings(max_examples=300)
def test_a_sigma_squared_never_spends_more_than_rho_and_hardly_less(rho: Fraction, squared: int) -> None:
    found = sigma_squared_for(rho, squared)
    least = squared / (2 * rho)
    assert squared / (2 * found) <= rho
    assert found == Fraction(1, 16) or found <= least * (1 + Fraction(1, 2**38))
    assert found.denominator <= 2**57
    assert DiscreteGaussian(found).sigma_squared == found


def test_a_sigma_squared_is_exact_where_its_fraction_is_short() -> None:
    assert sigma_squared_for(Fraction(1, 8), 7) == 28
    assert sigma_squared_for(Fraction(3, 7), 5) == Fraction(35, 6)


def test_the_limits_of_sigma_squared_are_kept_and_can_be_drawn() -> None:
    assert sigma_squared_for(Fraction(10**9), 1) == Fraction(1, 16)
    largest = sigma_squared_for(Fraction(5, 2**81), 5)
    assert largest == 2**80
    with pytest.raises(PrivacyError, match=r"rho is so small.*at least 5/2\*\*81"):
        sigma_squared_for(Fraction(4, 2**81), 5)
    # Fractions that had to be rounded, at both ends, are within what the sampler takes.
    long = Fraction(10**40 + 1, 10**40)
    for rho in (Fraction(5, 2**81) * long, 8 / long, Fraction(1, 10**6) * long):
        assert discrete_gaussian(sigma_squared_for(rho, 5), 3).shape == (3,)


def test_the_squared_change_of_a_unit_enters_by_its_rows_and_tables() -> None:
    cells, tables = IdentityOperator((3, 3), ("a", "b")), MarginalsOperator((3,) * 4, tuple("abcd"), 2, (1,) * 6)
    row, person = PrivacyUnit.row(), PrivacyUnit.person("id", 5)
    added, replaced = Neighbours.ADD_REMOVE, Neighbours.REPLACE
    assert sensitivity_l2_squared_of(cells, row, added) == 1
    assert sensitivity_l2_squared_of(cells, row, replaced) == 2
    # Five rows in one cell: its count changes by five.
    assert sensitivity_l2_squared_of(cells, person, added) == 25
    assert sensitivity_l2_squared_of(cells, person, replaced) == 50
    # And in each of six tables: 5 sqrt(6).
    assert sensitivity_l2_squared_of(tables, person, added) == 25 * 6
    assert sensitivity_l2_squared_of(tables, person, replaced) == 25 * 12


def test_every_rho_is_told_as_an_epsilon_above_zero_that_statements_can_hold() -> None:
    assert epsilon_for("1e-18", DELTA_SHOWN) == 0
    for rho in ("1e-80", "1e-18", "9e8"):
        assert 0 < Promise.read(rho=rho).epsilon <= 10**9
    with pytest.raises(PrivacyError, match="rho is so large that it hides nothing"):
        Promise.read(rho=10**9)
