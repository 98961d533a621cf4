"""Protected tables asked for a rho, or for epsilon with a delta: which noise, at which price, and what is stored."""

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import veilcube as vc
from support.command_line import caller
from support.protected import recorded_table
from veilcube.curator.protected.table import ProtectedTable
from veilcube.errors import BudgetExceededError, LedgerError, PrivacyError
from veilcube.laws import DiscreteGaussian, DiscreteLaplace, half_widths
from veilcube.privacy import Budget, Currency, PrivacyUnit, pure_epsilon_within, rho_for

SCHEMA = vc.Schema([vc.Ordinal("age", 1, 6), vc.Nominal("sex", ["Female", "Male"])])
COUNTS = np.arange(12).reshape(SCHEMA.shape) + 20
CUBE = vc.Cube(SCHEMA, COUNTS)
RHO = Fraction(1, 50)


@pytest.fixture
def ledger(tmp_path: Path) -> vc.Ledger:
    ledger = vc.Ledger(tmp_path / "budget.db")
    ledger.create("people", rho=10)
    ledger.create("pure", 10)
    return ledger


@pytest.fixture
def table(ledger: vc.Ledger) -> ProtectedTable:
    return vc.protect(CUBE, ledger=ledger, dataset="people")


Asking = Callable[..., object]
NOISY: dict[str, tuple[Callable[[ProtectedTable], Asking], int]] = {
    "count": (lambda table: table.noisy_count, 1),
    "sum": (lambda table: lambda **price: table.noisy_sum("age", **price), 36),
    "mean": (lambda table: lambda **price: table.noisy_mean("age", **price), 25),
    "moment": (lambda table: lambda **price: table.noisy_moment({"age": 2}, **price), 36**2),
    "marginal": (lambda table: lambda **price: table.noisy_marginal("sex", "age", **price), 1),
    "counts of parts": (lambda table: table.partition("sex").noisy_count, 1),
    "sums of parts": (lambda table: lambda **price: table.partition("sex").noisy_sum("age", **price), 36),
    "means of parts": (lambda table: lambda **price: table.partition("sex").noisy_mean("age", **price), 25),
    "a part": (lambda table: table.partition("sex")["Male"].noisy_count, 1),
}
DRAWN: dict[str, Callable[[ProtectedTable], Asking]] = {
    "maximum": lambda table: lambda **price: table.noisy_max("age", **price),
    "minimum": lambda table: lambda **price: table.noisy_min("age", interval="1/2", **price),
    "quantile": lambda table: lambda **price: table.noisy_quantile("age", 0.5, **price),
    "rank": lambda table: lambda **price: table.noisy_quantile("age", rank=3, **price),
    "quantiles": lambda table: lambda **price: table.noisy_quantiles("age", [0.25, 0.75], **price),
    "finite": lambda table: (
        lambda **price: table.distributive(vc.DistributiveQuery.max(range(7)), "age", by=["sex"], **price)
    ),
}


# Which noise, and what it costs


@pytest.mark.parametrize("name", NOISY)
def test_a_rho_buys_gaussian_noise_and_costs_itself(name: str, table: ProtectedTable, ledger: vc.Ledger) -> None:
    asking, squared = NOISY[name]
    answer = asking(table)(rho=RHO)
    assert ledger.budget("people") == Budget(Fraction(10), RHO, Currency.RHO) == table.budget
    (stored,) = ledger.history("people").answers
    assert stored.noise == DiscreteGaussian(squared / (2 * RHO))
    assert stored.statement.rho == RHO
    assert "rho = 0.02" in str(answer.privacy)
    if name != "a part":
        assert asking(table)(rho=RHO / 2).privacy == answer.privacy
        assert ledger.budget("people").spent == RHO


@pytest.mark.parametrize("name", DRAWN)
def test_draws_for_a_rho_are_pure_and_cost_no_more(name: str, table: ProtectedTable, ledger: vc.Ledger) -> None:
    DRAWN[name](table)(rho=RHO)
    epsilon = pure_epsilon_within(RHO)
    assert epsilon == Fraction(1, 5)
    (charge,) = ledger.history("people")
    assert (charge.amount, charge.statement.epsilon, charge.statement.rho) == (RHO, epsilon, None)


@pytest.mark.parametrize("name", [*NOISY, *DRAWN])
def test_a_pure_question_costs_half_its_square_in_rho(name: str, table: ProtectedTable, ledger: vc.Ledger) -> None:
    ask = NOISY[name][0] if name in NOISY else DRAWN[name]
    ask(table)(epsilon="1/3")
    (charge,) = ledger.history("people")
    assert (charge.rho, charge.statement.epsilon) == (Fraction(1, 18), Fraction(1, 3))


@pytest.mark.parametrize("name", [*NOISY, *DRAWN])
def test_a_pair_costs_the_rho_that_it_allows_in_an_account_in_rho(
    name: str, table: ProtectedTable, ledger: vc.Ledger
) -> None:
    ask = NOISY[name][0] if name in NOISY else DRAWN[name]
    ask(table)(epsilon=1, delta="1e-9")
    allowed = rho_for(1, "1e-9")
    (charge,) = ledger.history("people")
    if name in NOISY:
        assert (charge.rho, charge.statement.delta) == (allowed, Fraction(1, 10**9))
    else:
        assert allowed * (1 - Fraction(1, 10**12)) < charge.rho <= allowed


@pytest.mark.parametrize("name", [*NOISY, *DRAWN])
def test_a_pair_is_kept_by_laplace_noise_where_that_is_less(name: str, ledger: vc.Ledger) -> None:
    table = vc.protect(CUBE, ledger=ledger, dataset="pure")
    ask = NOISY[name][0] if name in NOISY else DRAWN[name]
    ask(table)(epsilon=1, delta="1e-9")
    (charge,) = ledger.history("pure")
    assert (charge.epsilon, charge.statement.epsilon, charge.statement.delta) == (1, 1, 0)


def test_gaussian_noise_is_refused_to_a_budget_in_epsilon_before_anything_is_drawn(ledger: vc.Ledger) -> None:
    table = vc.protect(CUBE, ledger=ledger, dataset="pure")
    with pytest.raises(LedgerError, match="Gaussian noise has no price"):
        table.noisy_count(rho=RHO)
    assert ledger.history("pure") == []
    assert ledger.history("pure").answers == ()


def test_the_rows_of_a_person_may_all_fall_into_one_group() -> None:
    cube = vc.Cube(SCHEMA, COUNTS, unit=PrivacyUnit.person("id", 30))
    found, published = recorded_table(cube, "replace")
    found.noisy_marginal("age", rho=RHO)
    assert published[0].noise == DiscreteGaussian(2 * 30**2 / (2 * RHO))


def test_parts_under_replace_double_the_square_and_not_the_size() -> None:
    table, published = recorded_table(CUBE, "replace")
    table.partition("sex")["Male"].noisy_count(rho=RHO)
    table.partition("sex")["Male"].noisy_sum("age", rho=RHO)
    table.noisy_sum("age", rho=RHO)
    assert [one.noise.parameter * 2 * RHO for one in published] == [2, 2 * 36, 25]


# Stored answers


def test_the_quieter_of_two_stored_answers_is_given_whatever_its_family(
    table: ProtectedTable, ledger: vc.Ledger
) -> None:
    quiet = table.noisy_count(rho=2)  # variance 1/4
    spent = ledger.budget("people").spent
    assert table.noisy_count(epsilon=1).value == quiet.value  # variance 1.84
    assert table.noisy_count(epsilon=1).stddev == quiet.stddev == DiscreteGaussian(Fraction(1, 4)).stddev
    assert ledger.budget("people").spent == spent
    table.noisy_count(epsilon=3)  # variance 0.11
    assert ledger.budget("people").spent == spent + Fraction(9, 2)
    assert table.noisy_count(rho=2).stddev == DiscreteLaplace(Fraction(1, 3)).stddev


def test_intervals_follow_from_the_law_that_is_stored(table: ProtectedTable) -> None:
    law = DiscreteGaussian(1 / (2 * RHO))
    count = table.noisy_count(rho=RHO, confidence=0.9)
    assert count.high - count.value == count.value - count.low == half_widths(law, [1], 0.9)[0]
    assert count.stddev == law.stddev
    mean = table.noisy_mean("age", rho=RHO)
    assert mean.low < mean.value < mean.high
    summed = table.distributive(vc.DistributiveQuery.count(), "age", by=["sex"], rho=RHO, confidence=0.9)
    assert summed.high - summed.value == half_widths(law, [2], 0.9)[0]
    assert summed.stddev == pytest.approx(law.stddev * 2**0.5)


def test_the_history_weighs_answers_by_the_variance_of_their_noise(table: ProtectedTable, ledger: vc.Ledger) -> None:
    table.noisy_sum("age", rho=RHO)
    table.noisy_count(epsilon="1/10")
    past = ledger.history("people").answered
    laws = DiscreteGaussian(36 / (2 * RHO)), DiscreteLaplace(Fraction(10))
    assert past.variances == pytest.approx([law.variance for law in laws])
    assert vc.KernelPCA().fit(past).answer(vc.Workload(SCHEMA, [{"sex": "Male"}])).stddev[0] > 0


def test_the_commands_tell_the_noise_and_the_price(
    table: ProtectedTable, ledger: vc.Ledger, capfd: pytest.CaptureFixture[str]
) -> None:
    table.noisy_count(rho=RHO)
    table.noisy_sum("age", epsilon="1/2")
    call = caller(capfd)
    shown = call("history", "show", str(ledger.path), "people").out
    assert "rho 0.02" in shown
    assert "epsilon 0.5" in shown
    answers = json.loads(call("history", "show", str(ledger.path), "people", "--json").out)["answers"]
    assert [answer["noise"] for answer in answers] == [
        {"kind": "discrete-gaussian", "sigma_squared": "25"},
        {"kind": "discrete-laplace", "scale": "12"},
    ]
    assert [answer["scales"] for answer in answers] == [[], ["12"]]


# Refusals


@pytest.mark.parametrize("name", [*NOISY, *DRAWN])
@pytest.mark.parametrize(
    ("price", "told"),
    [
        ({}, "epsilon or rho is missing"),
        ({"delta": 1e-9}, "a delta needs the epsilon"),
        ({"epsilon": 1, "rho": 1}, "rho is a promise of its own"),
        ({"rho": 1, "delta": 1e-9}, "rho is a promise of its own"),
        ({"epsilon": 1, "delta": 0}, "delta=0 is pure"),
        ({"epsilon": 1, "delta": 1}, "delta must be below 1"),
        ({"epsilon": 1, "delta": -1e-9}, "delta must be"),
        ({"rho": 0}, "rho must be"),
        ({"rho": float("nan")}, "rho must be"),
    ],
)
def test_a_price_that_makes_no_sense_is_refused_and_charges_nothing(
    name: str, price: dict[str, object], told: str, table: ProtectedTable, ledger: vc.Ledger
) -> None:
    ask = NOISY[name][0] if name in NOISY else DRAWN[name]
    with pytest.raises(PrivacyError, match=told):
        ask(table)(**price)
    assert ledger.history("people") == []


def test_a_rho_too_small_for_any_noise_is_refused(table: ProtectedTable, ledger: vc.Ledger) -> None:
    with pytest.raises(PrivacyError, match="so small that the noise's sigma"):
        table.noisy_count(rho="1e-30")
    assert ledger.history("people") == []


def test_a_question_beyond_the_budget_is_told_in_rho_with_what_the_history_knows(table: ProtectedTable) -> None:
    table.noisy_count(rho=9)
    with pytest.raises(BudgetExceededError, match=r"the charge of rho 2 .* 1 is left of 10; .* past answers tell it"):
        table.noisy_count(rho=2, fresh=True)


# Budgets and shares


def test_protect_creates_budgets_and_shares_in_rho(tmp_path: Path) -> None:
    ledger = vc.Ledger(tmp_path / "new.db")
    with pytest.warns(UserWarning, match="a budget of rho 0.5 for 'd'"):
        vc.protect(CUBE, ledger=ledger, dataset="d", rho="1/2", analyst="Ada", analyst_rho="1/4")
    assert ledger.budget("d") == Budget(Fraction(1, 2), currency=Currency.RHO)
    assert ledger.shares("d")[0].budget == Budget(Fraction(1, 4), currency=Currency.RHO)
    with pytest.raises(LedgerError, match=r"a budget of rho 0\.5"):
        vc.protect(CUBE, ledger=ledger, dataset="d", epsilon="1/2")
    with pytest.raises(LedgerError, match="as rho, not as epsilon"):
        vc.protect(CUBE, ledger=ledger, dataset="d", analyst="Bob", analyst_epsilon="1/4")
    with pytest.raises(LedgerError, match="name the analyst too"):
        vc.protect(CUBE, ledger=ledger, dataset="d", analyst_rho="1/4")
    with pytest.raises(PrivacyError, match="not in both"):
        vc.protect(CUBE, ledger=ledger, dataset="d", epsilon=1, rho=1)


def test_parts_cost_the_dearest_in_rho(table: ProtectedTable, ledger: vc.Ledger) -> None:
    parts = table.partition("sex")
    parts["Male"].noisy_count(rho=RHO)
    parts["Female"].noisy_count(rho=RHO / 2)
    parts["Female"].noisy_sum("age", epsilon="1/10")
    assert ledger.budget("people").spent == RHO
    parts["Female"].noisy_sum("age", epsilon="1/5")
    assert ledger.budget("people").spent == RHO / 2 + Fraction(1, 200) + Fraction(1, 50)
