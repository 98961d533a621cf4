"""Privacy statements with a delta and a rho: what they say, and that they cannot say less than was done."""

from fractions import Fraction

import pytest

from veilcube.errors import PrivacyError
from veilcube.privacy import (
    Currency,
    Event,
    GaussianEvent,
    LaplaceEvent,
    Neighbours,
    PrivacyStatement,
    PrivacyUnit,
    Promise,
    SequentialEvent,
    epsilon_for,
    rho_for,
)

TENTH = LaplaceEvent(1, Fraction(10))
# Costs 1/25.
GAUSSIAN = GaussianEvent(4, Fraction(50))
DELTA = Fraction(1, 10**9)
RHO = Fraction(1, 25)
EPSILON = epsilon_for(RHO, DELTA)


def stated(
    event: Event = GAUSSIAN,
    epsilon: Fraction = EPSILON,
    delta: Fraction = DELTA,
    rho: Fraction | None = RHO,
    unit: PrivacyUnit | None = None,
    neighbours: str = "add-remove",
) -> PrivacyStatement:
    return PrivacyStatement(epsilon, neighbours, unit or PrivacyUnit.row(), event, "docs/x.md", delta=delta, rho=rho)


def test_a_statement_in_rho_costs_its_rho_and_nothing_in_epsilon() -> None:
    statement = stated()
    assert statement.currency is Currency.RHO
    assert statement.cost(Currency.RHO) == RHO
    with pytest.raises(PrivacyError, match="no price in epsilon alone"):
        statement.cost(Currency.EPSILON)


def test_a_pure_event_that_is_stated_in_rho_still_has_its_epsilon() -> None:
    statement = stated(TENTH)
    assert statement.cost(Currency.EPSILON) == Fraction(1, 10)
    assert statement.cost(Currency.RHO) == RHO


def test_a_pure_statement_costs_half_its_square_in_rho() -> None:
    statement = stated(TENTH, Fraction(1, 10), Fraction(0), None)
    assert (statement.currency, statement.cost(Currency.EPSILON)) == (Currency.EPSILON, Fraction(1, 10))
    assert statement.cost(Currency.RHO) == Fraction(1, 200)


def test_a_rho_below_what_its_event_costs_is_refused() -> None:
    with pytest.raises(PrivacyError, match="costs more than the rho"):
        stated(rho=RHO * Fraction(95, 100))
    with pytest.raises(PrivacyError, match="costs more than the rho"):
        stated(SequentialEvent((GAUSSIAN, TENTH)))


def test_a_pair_that_rho_does_not_keep_is_refused() -> None:
    for wrong in ({"epsilon": EPSILON * Fraction(99, 100)}, {"delta": DELTA / 2}, {"rho": RHO * Fraction(101, 100)}):
        with pytest.raises(PrivacyError, match="does not keep the epsilon and delta"):
            stated(**wrong)


def test_a_pair_that_rho_keeps_may_be_wider_than_it_needs_to_be() -> None:
    assert stated(epsilon=2 * EPSILON, delta=Fraction(1, 1000)).rho == RHO


@pytest.mark.parametrize("epsilon", ["1/100", "1", "7/2", "40"])
@pytest.mark.parametrize("delta", ["1e-15", "1e-9", "1/1000"])
def test_the_rho_of_a_pair_is_told_to_keep_it(epsilon: str, delta: str) -> None:
    rho = rho_for(epsilon, delta)
    event = GaussianEvent(1, 1 / (2 * rho))
    assert stated(event, Fraction(epsilon), Fraction(delta), rho).rho == rho
    shown = Promise.read(rho=rho)
    assert stated(event, shown.epsilon, shown.delta, rho).epsilon == shown.epsilon


def test_a_delta_without_a_rho_is_refused() -> None:
    with pytest.raises(PrivacyError, match="states the rho that it follows from"):
        stated(TENTH, Fraction(1), DELTA, None)


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1), Fraction(-1, 10), Fraction(3, 2)])
def test_a_rho_with_a_delta_that_is_no_probability_is_refused(delta: Fraction) -> None:
    with pytest.raises(PrivacyError, match="delta between 0 and 1"):
        stated(delta=delta)


@pytest.mark.parametrize("rho", [Fraction(0), Fraction(-1), Fraction(10**9 + 1)])
def test_a_rho_out_of_range_is_refused(rho: Fraction) -> None:
    with pytest.raises(PrivacyError, match="rho of at most"):
        stated(rho=rho)


@pytest.mark.parametrize("wrong", [{"delta": 1e-9}, {"rho": 0.04}, {"rho": "1/25"}], ids=str)
def test_numbers_that_are_not_exact_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(PrivacyError, match="exact numbers"):
        stated(**wrong)


def test_gaussian_noise_is_never_stated_as_pure() -> None:
    with pytest.raises(PrivacyError, match="no price in epsilon alone"):
        stated(GAUSSIAN, Fraction(100), Fraction(0), None)


@pytest.mark.parametrize(
    ("promise", "event", "is_in_rho"),
    [
        (Promise.read(epsilon=1), TENTH, False),
        (Promise.read(epsilon=1, delta=1e-9), TENTH, False),
        (Promise.read(epsilon=1, delta=1e-9), GaussianEvent(1, Fraction(50)), True),
        (Promise.read(epsilon=1, delta=1e-9).priced_in_rho(), TENTH, True),
        (Promise.read(rho="1/25"), TENTH, True),
        (Promise.read(rho="1/25"), GAUSSIAN, True),
    ],
)
def test_a_promise_is_kept_in_epsilon_alone_where_that_is_true_and_no_rho_was_asked_for(
    promise: Promise, event: Event, is_in_rho: bool
) -> None:
    statement = PrivacyStatement.keeping(promise, Neighbours.ADD_REMOVE, PrivacyUnit.row(), event, "docs/x.md")
    assert (statement.rho is not None) is is_in_rho
    assert (statement.delta, statement.rho) == ((promise.delta, promise.rho) if is_in_rho else (0, None))
    assert statement.epsilon == promise.epsilon


def test_a_promise_that_an_event_does_not_keep_is_not_stated() -> None:
    for promise in (Promise.read(epsilon="1/2", delta=1e-9), Promise.read(rho="1/26")):
        with pytest.raises(PrivacyError, match="costs more than the rho"):
            PrivacyStatement.keeping(promise, Neighbours.ADD_REMOVE, PrivacyUnit.row(), GAUSSIAN, "docs/x.md")


def test_words_say_what_delta_bounds_and_further_pairs() -> None:
    words = stated().words
    assert "Zero-concentrated differentially private with rho = 0.04" in words
    assert f"epsilon = {float(EPSILON):.6g} and delta = 1e-09" in words
    assert "adding or removing one row makes any set of outputs at most exp(" in words
    assert "plus 1e-09, which bounds how likely an output is that tells more" in words
    for delta in ("1e-06", "1e-09", "1e-12"):
        assert f"({float(epsilon_for(RHO, delta)):.6g}, {delta})" in words
    assert words.endswith("Not charged to any ledger.")


def test_words_say_whom_they_are_about() -> None:
    words = stated(unit=PrivacyUnit.person("patient_id", 3), neighbours="replace").words
    assert "replacing one person ('patient_id', at most 3 rows of each) (their number is public) makes" in words
    # Two people are one group of two: four times rho.
    assert "should two people share an id, rho for either of them is 0.16." in words


def test_a_statement_comes_back_from_plain_data() -> None:
    for statement in (stated(), stated(TENTH), stated(unit=PrivacyUnit.person("id", 2), neighbours="replace")):
        data = statement.charged("the budget of 'visits' as charge 4").to_dict()
        assert (data["delta"], data["rho"]) == ("1/1000000000", "1/25")
        assert PrivacyStatement.from_dict(data) == statement.charged("the budget of 'visits' as charge 4")


def test_a_document_from_before_there_was_a_delta_is_read_as_pure() -> None:
    data = stated(TENTH, Fraction(1, 10), Fraction(0), None).to_dict()
    assert not {"delta", "rho"} & set(data)
    again = PrivacyStatement.from_dict(data)
    assert (again.epsilon, again.delta, again.rho) == (Fraction(1, 10), 0, None)


@pytest.mark.parametrize(
    "changed",
    [{"rho": "1/26"}, {"rho": "0"}, {"rho": "1" + "0" * 12}, {"rho": 0.04}, {"rho": None}, {"rho": "1/0"},
     {"rho": "-1/25"}, {"rho": "1/" + "9" * 400}, {"delta": "0"}, {"delta": "1"}, {"delta": "2"}, {"delta": 1e-9},
     {"delta": "1/" + "1" + "0" * 320}, {"delta": None}, {"delta": "1/2000000000"}, {"epsilon": "1/2"}],
    ids=lambda changed: str(changed)[:30],
)  # fmt: skip
def test_a_document_that_states_less_than_it_should_is_refused(changed: dict[str, object]) -> None:
    with pytest.raises(PrivacyError):
        PrivacyStatement.from_dict(stated().to_dict() | changed)


@pytest.mark.parametrize("missing", ["rho", "delta"])
def test_a_document_with_one_of_rho_and_delta_is_refused(missing: str) -> None:
    for statement in (stated(), stated(TENTH)):
        data = {name: value for name, value in statement.to_dict().items() if name != missing}
        with pytest.raises(PrivacyError):
            PrivacyStatement.from_dict(data)
