"""Parts of partitions are charged at the dearest part: in one session, in several, and inside one another."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import veilcube as vc
from veilcube.curator.ledger import PartOf
from veilcube.curator.protected.table import ProtectedTable, private_view
from veilcube.errors import BudgetExceededError, PrivacyError
from veilcube.schema import Region

SCHEMA = vc.Schema(
    [vc.Nominal("school", ["none", "some", "all"]), vc.Nominal("sex", ["Female", "Male"]), vc.Ordinal("age", 1, 5)]
)
CUBE = vc.Cube(SCHEMA, np.arange(30).reshape(SCHEMA.shape))
TENTH = Fraction(1, 10)


@pytest.fixture
def ledger(tmp_path: Path) -> vc.Ledger:
    ledger = vc.Ledger(tmp_path / "budget.db")
    ledger.create("people", 1)
    return ledger


def spent(ledger: vc.Ledger) -> Fraction:
    return ledger.budget("people").spent


def test_every_part_is_asked_for_the_price_of_one(ledger: vc.Ledger) -> None:
    parts = vc.protect(CUBE, ledger=ledger, dataset="people").partition("school")
    for part in dict(parts.items()).values():
        part.noisy_count(epsilon=TENTH)
    assert spent(ledger) == TENTH
    assert len(ledger.history("people")) == 1
    assert [answer.charge for answer in ledger.history("people").answers] == [1, None, None]


def test_only_what_exceeds_the_dearest_part_is_charged(ledger: vc.Ledger) -> None:
    parts = vc.protect(CUBE, ledger=ledger, dataset="people").partition("school")
    parts["none"].noisy_count(epsilon="3/10")
    parts["some"].noisy_count(epsilon="2/10")
    answer = parts["some"].noisy_sum("age", epsilon="2/10")
    assert spent(ledger) == Fraction(4, 10)
    first, second = ledger.history("people")
    assert (first.epsilon, second.epsilon) == (Fraction(3, 10), TENTH)
    assert second.statement.epsilon == Fraction(2, 10)
    assert "charge 2 of epsilon 0.1, the rest with another part" in answer.privacy
    parts["all"].noisy_count(epsilon="4/10")
    assert spent(ledger) == Fraction(4, 10)


def test_conditions_before_and_after_do_not_part_a_partition(ledger: vc.Ledger) -> None:
    table = vc.protect(CUBE, ledger=ledger, dataset="people")
    table.where(sex="Female").partition("school")["none"].noisy_count(epsilon=TENTH)
    table.partition("school")["some"].where(age=(1, 3)).noisy_count(epsilon=TENTH)
    assert spent(ledger) == TENTH
    table.where(sex="Female").partition("school")["some"].noisy_count(epsilon=TENTH)
    assert spent(ledger) == 2 * TENTH


def test_partitions_by_other_attributes_add_up(ledger: vc.Ledger) -> None:
    table = vc.protect(CUBE, ledger=ledger, dataset="people")
    table.partition("school")["none"].noisy_count(epsilon=TENTH)
    table.partition("sex")["Male"].noisy_count(epsilon=TENTH)
    table.partition("school", "sex")["none", "Male"].noisy_count(epsilon=TENTH)
    table.partition("sex", "school")["Female", "none"].noisy_count(epsilon=TENTH)
    assert spent(ledger) == 3 * TENTH


def test_all_parts_at_once_cost_epsilon_on_top_of_single_parts(ledger: vc.Ledger) -> None:
    parts = vc.protect(CUBE, ledger=ledger, dataset="people").partition("school")
    parts["none"].noisy_count(epsilon=TENTH)
    parts.noisy_count(epsilon=TENTH)
    assert spent(ledger) == 2 * TENTH


def test_parts_within_a_part_pass_on_what_their_dearest_costs(ledger: vc.Ledger) -> None:
    schools = vc.protect(CUBE, ledger=ledger, dataset="people").partition("school")
    inner = schools["none"].partition("sex")
    inner["Female"].noisy_count(epsilon="2/10")
    inner["Male"].noisy_count(epsilon="1/10")
    assert spent(ledger) == Fraction(2, 10)
    schools["none"].noisy_count(epsilon="1/10")
    assert spent(ledger) == Fraction(3, 10)
    schools["some"].partition("sex")["Male"].noisy_count(epsilon="3/10")
    assert spent(ledger) == Fraction(3, 10)
    inner["Male"].noisy_sum("age", epsilon="2/10")
    assert spent(ledger) == Fraction(4, 10)


def test_partitions_of_other_units_or_schemas_do_not_cover_each_other(ledger: vc.Ledger) -> None:
    narrow = vc.Schema([vc.Nominal("school", ["none", "some", "all"])])
    other = vc.Cube(narrow, [1, 2, 3])
    vc.protect(CUBE, ledger=ledger, dataset="people").partition("school")["none"].noisy_count(epsilon=TENTH)
    vc.protect(other, ledger=ledger, dataset="people").partition("school")["some"].noisy_count(epsilon=TENTH)
    assert spent(ledger) == 2 * TENTH


def test_sessions_and_threads_share_what_was_spent_on_parts(ledger: vc.Ledger) -> None:
    def ask(part: str) -> None:
        session = vc.protect(CUBE, ledger=vc.Ledger(ledger.path, timeout=60), dataset="people")
        for _ in range(5):
            session.partition("school")[part].noisy_count(epsilon=TENTH, fresh=True)

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(ask, SCHEMA["school"].labels()))
    assert spent(ledger) == Fraction(5, 10)
    assert len(ledger.history("people").answers) == 15


def test_over_budget_parts_are_refused_and_leave_nothing(ledger: vc.Ledger) -> None:
    parts = vc.protect(CUBE, ledger=ledger, dataset="people").partition("school")
    parts["none"].noisy_count(epsilon="9/10")
    with pytest.raises(BudgetExceededError, match=r"ask for epsilon '1/10' or less"):
        parts["none"].noisy_sum("age", epsilon="2/10")
    parts["some"].noisy_count(epsilon=1)
    assert spent(ledger) == 1
    parts["none"].noisy_sum("age", epsilon=TENTH)
    with pytest.raises(BudgetExceededError):
        parts["none"].noisy_sum("age", epsilon=TENTH, fresh=True)


def test_only_the_increment_counts_against_an_analysts_share(ledger: vc.Ledger) -> None:
    ledger.allow("people", "Ada", TENTH)
    parts = vc.protect(CUBE, ledger=ledger, dataset="people").partition("school")
    parts["none"].noisy_count(epsilon="5/10")
    mine = vc.protect(CUBE, ledger=ledger, dataset="people", analyst="Ada").partition("school")
    mine["some"].noisy_count(epsilon="6/10")
    assert ledger.shares("people")[0].budget.left == 0


def test_labels_numbers_and_missing_values_name_parts(ledger: vc.Ledger) -> None:
    schema = vc.Schema([vc.Ordinal("age", 1, 3, missing="cell")])
    ages = vc.protect(vc.Cube(schema, [1, 2, 3, 4]), ledger=ledger, dataset="people").partition("age")
    assert list(ages) == ["1", "2", "3", "(missing)"]
    assert len(ages) == 4
    assert cells_of(ages[2]) == cells_of(ages["2"]) == [False, True, False, False]
    assert cells_of(ages[None]) == cells_of(ages["(missing)"]) == [False, False, False, True]


def cells_of(part: ProtectedTable) -> list[bool]:
    """Return which cells a part holds."""
    return private_view(part).region.mask().tolist()


# Parts and rows agree


def test_a_forged_part_is_refused(ledger: vc.Ledger) -> None:
    whole = vc.protect(CUBE, ledger=ledger, dataset="people")
    schools = whole.partition("school")
    faces = (whole, schools["none"], schools["some"], schools["none"].partition("sex")["Male"])
    table, none, some, inner = map(private_view, faces)
    everything = Region.everything(SCHEMA.shape)
    forged = [
        (table, {"within": none.within}),  # all rows, charged as a part
        (none, {"region": everything}),
        (none, {"region": some.region}),
        (none, {"within": some.within}),
        (none, {"within": (*none.within, *some.within)}),
        (inner, {"within": inner.within[::-1]}),
        (inner, {"within": inner.within[1:]}),
        (inner, {"region": none.region}),
        (table, {"within": (PartOf("{}", "[]"),)}),
        (table, {"within": (PartOf("other", "1"),)}),
        (none, {"within": (PartOf(none.within[0].partition, "[0, 0]"),)}),
        (none, {"within": (PartOf(json.dumps({"by": ["school"]}), "[0]"),)}),
        (table, {"within": ("none",)}),
    ]
    for start, change in forged:
        with pytest.raises(PrivacyError, match="do not all lie in the part"):
            replace(start, **change)  # type: ignore[arg-type]
    assert spent(ledger) == 0


def test_a_part_may_be_narrowed_in_every_way(ledger: vc.Ledger) -> None:
    part = vc.protect(CUBE, ledger=ledger, dataset="people").partition("sex", "school")["Male", "all"]
    narrowed = part.where(age=(1, 2)).where(age=3)  # no row is left, which is a part of everything
    assert private_view(narrowed).within == private_view(part).within
    region = private_view(part.where(age=1)).region
    assert ProtectedTable(replace(private_view(part), region=region)).noisy_count(epsilon=TENTH).confidence == 0.95
