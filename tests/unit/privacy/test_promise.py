"""Budgets, events, calibration and statements: exact, and refusing what makes no sense."""

from fractions import Fraction

import pytest

from veilcube.errors import PrivacyError
from veilcube.operators import MarginalsOperator
from veilcube.privacy import (
    Budget,
    LaplaceEvent,
    Neighbours,
    ParallelEvent,
    PrivacyStatement,
    PrivacyUnit,
    SequentialEvent,
    epsilon_of,
    read_epsilon,
    read_event,
    scale_for,
    unit_sensitivity,
    unit_sensitivity_l2_squared,
)

TENTH = LaplaceEvent(1, Fraction(10))


@pytest.mark.parametrize(
    ("text", "exact"),
    [
        (0.1, Fraction(1, 10)),
        ("1/3", Fraction(1, 3)),
        (2, Fraction(2)),
        ("0.25", Fraction(1, 4)),
        (1e-3, Fraction(1, 1000)),
    ],
)
def test_epsilon_is_the_fraction_that_a_person_means(text: object, exact: Fraction) -> None:
    assert read_epsilon(text) == exact


def test_ten_charges_of_a_tenth_spend_one_exactly() -> None:
    budget = Budget(Fraction(1))
    for _ in range(10):
        assert budget.allows(read_epsilon(0.1))
        budget = budget.charge(read_epsilon(0.1))
    assert budget.left == 0
    assert not budget.allows(Fraction(1, 10**30))


def test_composition_adds_in_sequence_and_takes_the_largest_in_parallel() -> None:
    dear = LaplaceEvent(3, Fraction(10))
    assert epsilon_of(SequentialEvent((TENTH, dear))) == Fraction(4, 10)
    assert epsilon_of(ParallelEvent((TENTH, dear))) == Fraction(3, 10)
    assert epsilon_of(SequentialEvent((ParallelEvent((TENTH, dear)), TENTH))) == Fraction(4, 10)
    assert epsilon_of(SequentialEvent(())) == epsilon_of(ParallelEvent(())) == 0


def test_events_come_back_from_plain_data() -> None:
    event = SequentialEvent((ParallelEvent((TENTH,)), LaplaceEvent(2, Fraction(7, 3))))
    assert read_event(event.to_dict()) == event


@pytest.mark.parametrize(
    "data",
    [{}, {"kind": "laplace"}, {"kind": "laplace", "sensitivity": 0, "scale": "1"}, {"kind": "magic"},
     {"kind": "laplace", "sensitivity": 1, "scale": "1/0"}, {"kind": "sequential", "events": 3},
     {"kind": "sequential", "events": ["x"]}, {"kind": "laplace", "sensitivity": 1, "scale": "1e30000000"},
     {"kind": "laplace", "sensitivity": 2**62 + 1, "scale": "1"}, {"kind": "laplace", "sensitivity": "1", "scale": "1"},
     {"kind": "laplace", "sensitivity": 1, "scale": 1.5}],
)  # fmt: skip
def test_an_event_that_is_not_well_formed_is_refused(data: dict[str, object]) -> None:
    with pytest.raises(PrivacyError):
        read_event(data)


def test_an_endless_nesting_of_events_is_refused() -> None:
    data: dict[str, object] = TENTH.to_dict()
    for _ in range(40):
        data = {"kind": "sequential", "events": [data]}
    with pytest.raises(PrivacyError):
        read_event(data)


def test_an_event_has_at_most_a_thousand_parts_and_a_bounded_number_of_digits() -> None:
    assert len(read_event(SequentialEvent((TENTH,) * 999).to_dict()).events) == 999
    long = LaplaceEvent(1, Fraction(10**330 + 1, 10**329))
    halves = SequentialEvent((TENTH,) * 500)
    for too_much in (SequentialEvent((TENTH,) * 1000), ParallelEvent((halves, halves)), SequentialEvent((long,) * 400)):
        with pytest.raises(PrivacyError, match="too many digits"):
            read_event(too_much.to_dict())


@pytest.mark.parametrize("epsilon", ["1", "1/10", "0.123456789", "3/7", "1e-9", "12345.678901234567890123456789"])
@pytest.mark.parametrize("sensitivity", [1, 2, 9])
def test_a_scale_never_spends_more_than_epsilon_and_hardly_less(epsilon: str, sensitivity: int) -> None:
    exact = read_epsilon(epsilon)
    scale = scale_for(exact, sensitivity)
    spent = sensitivity / scale
    assert spent <= exact
    assert max(scale.numerator, scale.denominator) <= 2**57
    if sensitivity / exact >= Fraction(1, 1024):
        assert spent >= exact * (1 - Fraction(1, 2**18))


def test_a_vanishing_epsilon_is_refused() -> None:
    with pytest.raises(PrivacyError, match="so small"):
        scale_for(Fraction(1, 2**41), 1)


def test_sensitivity_of_a_unit_follows_rows_and_neighbours() -> None:
    person = PrivacyUnit.person("id", 3)
    assert unit_sensitivity(1, 2, PrivacyUnit.row(), Neighbours.ADD_REMOVE) == 1
    assert unit_sensitivity(5, 7, PrivacyUnit.row(), Neighbours.REPLACE) == 7
    assert unit_sensitivity(5, 7, person, Neighbours.ADD_REMOVE) == 15
    assert unit_sensitivity(5, 7, person, Neighbours.REPLACE) == 21
    assert unit_sensitivity(5, 4, person, Neighbours.REPLACE) == 15


def test_squared_l2_sensitivity_of_a_unit_grows_with_the_square_of_its_rows() -> None:
    row, person = PrivacyUnit.row(), PrivacyUnit.person("id", 3)
    assert unit_sensitivity_l2_squared(1, 2, row, Neighbours.ADD_REMOVE) == 1
    assert unit_sensitivity_l2_squared(5, 7, row, Neighbours.REPLACE) == 7
    assert unit_sensitivity_l2_squared(5, 7, person, Neighbours.ADD_REMOVE) == 45
    assert unit_sensitivity_l2_squared(5, 7, person, Neighbours.REPLACE) == 63
    assert unit_sensitivity_l2_squared(5, 4, person, Neighbours.REPLACE) == 45


def test_six_rows_of_a_person_in_21_tables_change_them_by_27_and_not_by_126() -> None:
    tables = MarginalsOperator((3,) * 7, tuple("abcdefg"), 2, (1,) * 21)
    rows = tables.sensitivity_l2_squared("add-remove"), tables.sensitivity_l2_squared("replace")
    person = PrivacyUnit.person("id", 6)
    assert unit_sensitivity_l2_squared(*rows, person, Neighbours.ADD_REMOVE) == 36 * 21 < 28**2
    assert unit_sensitivity(21, 42, person, Neighbours.ADD_REMOVE) == 126


@pytest.mark.parametrize(
    "arguments",
    [
        ("row", "id", 1),
        ("person", None, 2),
        ("person", "id", 0),
        ("row", None, 2),
        ("x", None, 1),
        ("person", "id", True),
    ],
)
def test_a_unit_that_makes_no_sense_is_refused(arguments: tuple[object, ...]) -> None:
    with pytest.raises(PrivacyError):
        PrivacyUnit(*arguments)


def test_a_statement_says_whom_it_protects_and_comes_back_from_plain_data() -> None:
    unit = PrivacyUnit.person("patient_id", 3)
    statement = PrivacyStatement(Fraction(1, 2), Neighbours.REPLACE, unit, LaplaceEvent(6, Fraction(12)), "docs/x.md")
    assert "replacing one person ('patient_id', at most 3 rows of each) (their number is public)" in statement.words
    assert "Not charged to any ledger" in statement.words
    charged = statement.charged("dataset 'visits', charge 4")
    assert "Charged to dataset 'visits', charge 4" in str(charged)
    assert PrivacyStatement.from_dict(charged.to_dict()) == charged


def test_a_statement_cannot_claim_less_than_its_event_costs() -> None:
    with pytest.raises(PrivacyError, match="costs more"):
        PrivacyStatement(Fraction(1, 11), Neighbours.ADD_REMOVE, PrivacyUnit.row(), TENTH, "docs/x.md")


def test_a_statement_reads_its_neighbours_from_text() -> None:
    statement = PrivacyStatement(Fraction(1), "add-remove", PrivacyUnit.row(), TENTH, "docs/x.md")
    assert statement.neighbours is Neighbours.ADD_REMOVE
    assert "adding or removing one row changes" in statement.words
    with pytest.raises(PrivacyError, match="not known"):
        PrivacyStatement(Fraction(1), "siblings", PrivacyUnit.row(), TENTH, "docs/x.md")


@pytest.mark.parametrize("epsilon", ["0", "-1", "1e30000000", "1e400", "1000000001", "1/0", 1, 0.5, None])
def test_a_statement_whose_epsilon_is_not_a_bounded_ratio_is_refused(epsilon: object) -> None:
    statement = PrivacyStatement(Fraction(1), Neighbours.ADD_REMOVE, PrivacyUnit.row(), TENTH, "docs/x.md")
    with pytest.raises(PrivacyError):
        PrivacyStatement.from_dict(statement.to_dict() | {"epsilon": epsilon})


def test_a_statement_keeps_every_epsilon_that_a_ledger_keeps() -> None:
    epsilon = Fraction(2**1100 - 1, 2**1099)
    statement = PrivacyStatement(epsilon, Neighbours.ADD_REMOVE, PrivacyUnit.row(), TENTH, "docs/x.md")
    assert PrivacyStatement.from_dict(statement.to_dict()) == statement
