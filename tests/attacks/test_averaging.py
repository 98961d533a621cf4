"""Noise does not average away: a question asked again gets its stored answer, also asked otherwise, or is paid for."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

import veilcube as vc
from veilcube.curator import ProtectedTable

SCHEMA = vc.Schema(
    [vc.Ordinal("age", 20, 59), vc.Nominal("sex", ["Female", "Male"]), vc.Ordinal("income", edges=[0, 10, 20, 50])]
)
CUBE = vc.Cube(SCHEMA, [[[3] * 3] * 2] * 40)
EPSILON = "1/4"
Ask = Callable[[ProtectedTable], object]

# Questions that have the same answer on every table, as many ways as come to mind.
SAME: dict[str, list[Ask]] = {
    "women in their thirties": [
        lambda table: table.where("age BETWEEN 30 AND 39 AND sex = 'Female'"),
        lambda table: table.where("sex = 'Female' AND age >= 30 AND age < 40"),
        lambda table: table.where("NOT (age < 30 OR age > 39) AND NOT sex = 'Male'"),
        lambda table: table.where(age=(30, 39), sex="Female"),
        lambda table: table.where(sex=["Female"]).where(age=(30, 39)),
        lambda table: table.where(age=(30, 59)).where("age <= 39").where("sex IN ('Female')"),
        lambda table: table.where({"age": list(range(30, 40)), "sex": "Female"}),
        lambda table: table.where(
            "(age = 30 OR age BETWEEN 31 AND 35 OR age BETWEEN 34 AND 39) AND sex <> 'Male' AND income >= 0"
        ),
    ],
    "everybody": [
        lambda table: table,
        lambda table: table.where("age >= 20"),
        lambda table: table.where("sex = 'Female' OR sex = 'Male'"),
        lambda table: table.where("age < 40 OR age >= 40"),
        lambda table: table.where(age=(20, 59)).where({"sex": ["Male", "Female"]}),
        lambda table: table.where("1 = 1"),
    ],
}


@pytest.fixture
def table(tmp_path: Path) -> ProtectedTable:
    ledger = vc.Ledger(tmp_path / "budget.db")
    ledger.create("people", 10)
    return vc.protect(CUBE, ledger=ledger, dataset="people")


def test_a_question_that_is_asked_a_hundred_times_has_one_answer_and_one_price(table: ProtectedTable) -> None:
    values = {table.where("age < 30").noisy_count(epsilon=EPSILON).value for _ in range(100)}
    assert len(values) == 1
    assert table.budget.spent == Fraction(EPSILON)


@pytest.mark.parametrize("name", SAME)
def test_equivalent_questions_have_one_answer_and_one_price(name: str, table: ProtectedTable) -> None:
    values = {ask(table).noisy_count(epsilon=EPSILON).value for ask in SAME[name]}  # type: ignore[attr-defined]
    assert len(values) == 1
    assert table.budget.spent == Fraction(EPSILON)


def test_a_smaller_epsilon_after_a_larger_one_is_answered_by_the_quieter_answer(table: ProtectedTable) -> None:
    first = table.noisy_count(epsilon=EPSILON)
    again = [table.noisy_count(epsilon=f"1/{5 + number}") for number in range(20)]
    assert {answer.value for answer in again} == {first.value}
    assert table.budget.spent == Fraction(EPSILON)


def test_another_process_with_the_same_ledger_gets_the_same_answer(table: ProtectedTable, tmp_path: Path) -> None:
    first = table.where("age < 30").noisy_count(epsilon=EPSILON)
    other = vc.protect(CUBE, ledger=vc.Ledger(tmp_path / "budget.db"), dataset="people")
    assert other.where("age <= 29").noisy_count(epsilon=EPSILON).value == first.value
    assert other.budget.spent == Fraction(EPSILON)


def test_fresh_noise_is_paid_for_each_time(table: ProtectedTable) -> None:
    values = [table.noisy_count(epsilon=EPSILON, fresh=True).value for _ in range(12)]
    assert len(set(values)) > 1
    assert table.budget.spent == 12 * Fraction(EPSILON)


def test_parts_that_add_up_to_a_question_are_paid_for_as_parts(table: ProtectedTable) -> None:
    """The sum over parts is another noisy answer to the same question: it costs what parts cost, once."""
    table.noisy_count(epsilon=EPSILON)
    for _ in range(5):
        table.partition("sex").noisy_count(epsilon=EPSILON)
    assert table.budget.spent == 2 * Fraction(EPSILON)
