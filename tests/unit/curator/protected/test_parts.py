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
from veilcube.errors import BudgetExceededError, PrivacyError, QueryError
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


# Groups, bands and conditions

TREE = vc.Schema(
    [
        vc.Nominal("job", hierarchy={"Care": ["Nurse", "Aide"], "Law": ["Judge"]}, missing="cell"),
        vc.Ordinal("age", 0, 9),
        vc.Ordinal("pay", edges=[0, 10, 20, 40]),
    ]
)
TREE_CUBE = vc.Cube(TREE, np.arange(120).reshape(TREE.shape))


@pytest.fixture
def tree(ledger: vc.Ledger) -> ProtectedTable:
    return vc.protect(TREE_CUBE, ledger=ledger, dataset="people")


DIVISIONS: list[tuple[tuple[str, ...], dict[str, object], dict[str, tuple[str, ...]]]] = [
    (("job:Level 1",), {}, {"job:Level 1": ("Care", "Law", "(missing)")}),
    ((), {"bands": {"age": [3, 7]}}, {"age": ("0..2", "3..6", "7..9")}),
    (("AGE", "job:level 1"), {"bands": {"age": [9]}},
     {"age": ("0..8", "9"), "job:Level 1": ("Care", "Law", "(missing)")}),
    (("job:Level 1",), {"bands": {"pay": [20]}},
     {"job:Level 1": ("Care", "Law", "(missing)"), "pay": ("[0, 10)..[10, 20)", "[20, 40]")}),
    ((), {"conditions": {"a": "age < 3 OR pay >= 20", "b": {"age": (3, 5), "pay": (0, 20)}}}, {"part": ("a", "b")}),
    ((), {"conditions": ["age < 3", "age > 7"]}, {"part": ("age < 3", "age > 7")}),
]  # fmt: skip


@pytest.mark.parametrize(("names", "how", "axes"), DIVISIONS)
def test_all_parts_together_cost_one_price_and_share_no_cell(
    tree: ProtectedTable, ledger: vc.Ledger, names: tuple[str, ...], how: dict[str, object], axes: dict[str, object]
) -> None:
    parts = tree.partition(*names, **how)  # type: ignore[arg-type]
    answers = parts.noisy_count(epsilon=TENTH)
    assert dict(answers.axes) == axes
    assert answers.value.shape == tuple(len(labels) for labels in axes.values())  # type: ignore[arg-type]
    assert spent(ledger) == TENTH
    regions = [private_view(part).region for _, part in parts.items()]
    assert len(regions) == len(parts) == answers.value.size
    assert np.sum([region.mask() for region in regions], axis=0).max() == 1
    exact = [TREE_CUBE.exact_counts[region.mask()].sum() for region in regions]
    assert np.abs(answers.value.ravel() - exact).max() < 500  # noise of scale 10
    assert [len(answer.values) for answer in ledger.history("people").answers] == [1] * len(parts)
    label = next(iter(parts))
    assert parts[label].noisy_count(epsilon=TENTH).value == answers.value.ravel()[0]
    assert spent(ledger) == TENTH
    parts[label].noisy_count(epsilon=TENTH, fresh=True)
    assert spent(ledger) == 2 * TENTH


def test_the_same_parts_in_another_order_are_the_same_partition(tree: ProtectedTable, ledger: vc.Ledger) -> None:
    tree.partition("job:Level 1", bands={"age": [3]})["Care", "0..2"].noisy_count(epsilon=TENTH)
    tree.partition("age", "job:Level 1", bands={"age": [3, 3]})["3..9", "Law"].noisy_count(epsilon=TENTH)
    assert spent(ledger) == TENTH
    words = {"young": "age < 3", "old": "age > 7"}
    tree.partition(conditions=words)["young"].noisy_sum("pay", epsilon=TENTH)
    tree.partition(conditions={"y": {"age": (0, 2)}, "o": "NOT age <= 7"})["o"].noisy_sum("pay", epsilon=TENTH)
    assert spent(ledger) == 2 * TENTH
    tree.partition(bands={"age": [3, 8]})["0..2"].noisy_sum("age", epsilon=TENTH)  # the same cells, said otherwise
    assert spent(ledger) == 3 * TENTH


def test_parts_that_conditions_leave_empty_are_zero_and_cost_nothing(tree: ProtectedTable, ledger: vc.Ledger) -> None:
    answers = tree.where("age < 3").partition(bands={"age": [3]}).noisy_count(epsilon=TENTH)
    assert (answers.low[1], answers.value[1], answers.high[1]) == (0, 0, 0)
    means = tree.where("age < 3").partition(bands={"age": [3]}).noisy_mean("pay", epsilon=TENTH)
    assert np.isnan(means.value).tolist() == [False, True]
    with pytest.raises(QueryError, match="leave no cell in any part"):
        tree.where("age < 3").partition(conditions=["age > 7"]).noisy_count(epsilon=TENTH)
    assert spent(ledger) == 2 * TENTH


def test_groups_divide_inside_parts(tree: ProtectedTable, ledger: vc.Ledger) -> None:
    inner = tree.partition("job:Level 1")["Care"].partition(conditions=["age < 3", "age >= 3"])
    inner.noisy_count(epsilon="2/10")
    tree.partition("job:Level 1")["Law"].noisy_count(epsilon="2/10")
    assert spent(ledger) == Fraction(2, 10)


@pytest.mark.parametrize(
    ("names", "how", "message"),
    [
        ((), {"conditions": ["age < 3", "age < 5"]}, "a row could be in both 'age < 3' and 'age < 5'"),
        ((), {"conditions": {"a": "age < 3", "b": "pay < 10"}}, "a row could be in both 'a' and 'b'"),
        ((), {"conditions": ["age > 9"]}, "no row can meet"),
        ((), {"conditions": ["age < 3", "age < 3"]}, "a label of its own"),
        ((), {"conditions": {1: "age < 3"}}, "a label of its own"),
        ((), {"conditions": []}, "conditions= is a list"),
        ((), {"conditions": "age < 3"}, "conditions= is a list"),
        ((), {"conditions": 3}, "conditions= is a list"),
        ((), {"conditions": [3]}, "a query is a mapping"),
        ((), {"conditions": [f"age = {age}" for age in range(10)] * 11}, "more than the 100"),
        (("age",), {"conditions": ["age < 3"]}, "leave one of them out"),
        ((), {"conditions": ["age < 3"], "bands": {"age": [3]}}, "leave one of them out"),
        ((), {"bands": {"age": []}}, "where their bands begin"),
        ((), {"bands": {"job": [1]}}, "where their bands begin"),
        ((), {"bands": {"age": "3"}}, "where their bands begin"),
        ((), {"bands": {"age": [99]}}, "outside the domain"),
        ((), {"bands": {"pay": [15]}}, "15"),
        ((), {"bands": ["age"]}, "bands= is a mapping"),
        ((), {"bands": {"hieght": [1]}}, "no attribute 'hieght'"),
        (("job", "job:Level 1"), {}, "named twice"),
        (("age:Level 1",), {}, "has no hierarchy"),
        (("job:Level 7",), {}, "has levels 1 to 2"),
        ((), {}, "at least one attribute"),
    ],
)
def test_what_divides_nothing_is_refused(
    tree: ProtectedTable, ledger: vc.Ledger, names: tuple[str, ...], how: dict[str, object], message: str
) -> None:
    with pytest.raises(QueryError, match=message):
        tree.partition(*names, **how)  # type: ignore[arg-type]
    assert spent(ledger) == 0


def test_what_is_out_of_view_does_not_divide(tree: ProtectedTable) -> None:
    narrow = tree.select("age")
    for how in ({"conditions": ["age < 3", "pay < 10"]}, {"bands": {"pay": [10]}}):
        with pytest.raises(QueryError, match="no attribute 'pay'"):
            narrow.partition(**how)  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="no attribute 'job'"):
        narrow.partition("job:Level 1")
    assert list(narrow.partition(conditions={"young": "age < 3"})) == ["young"]


@pytest.mark.parametrize("value", ["Nurse", 1, None, ("Care", "Law"), ()])
def test_a_group_is_named_by_its_label(tree: ProtectedTable, value: object) -> None:
    with pytest.raises(QueryError):
        tree.partition("job:Level 1")[value]
    with pytest.raises(QueryError):
        tree.partition(conditions={"young": "age < 3"})[value]


def test_more_groups_than_can_be_asked_are_refused(ledger: vc.Ledger) -> None:
    schema = vc.Schema([vc.Ordinal("a", 0, 99), vc.Ordinal("b", 0, 99)])
    table = vc.protect(vc.Cube(schema, np.ones(schema.shape, dtype=np.int64)), ledger=ledger, dataset="people")
    with pytest.raises(QueryError, match="at most 1,000"):
        table.partition("a", bands={"b": list(range(50))})


def test_a_forged_group_is_refused(tree: ProtectedTable, ledger: vc.Ledger) -> None:
    care, law = (private_view(tree.partition("job:Level 1")[label]) for label in ("Care", "Law"))
    young = private_view(tree.partition(conditions=["age < 3", "age > 7"])["age < 3"])
    last = PartOf(young.within[0].partition, "[-1]")
    forged = [
        (care, {"within": law.within}),
        (care, {"region": law.region}),
        (young, {"region": care.region}),
        (young, {"within": (PartOf(young.within[0].partition, "[1]"),)}),
        (young, {"within": (PartOf(young.within[0].partition, "[2]"),)}),
        (young, {"within": (PartOf(young.within[0].partition, "[0, 0]"),)}),
        (private_view(tree.partition(conditions=["age < 3", "age > 7"])["age > 7"]), {"within": (last,)}),
        (care, {"within": (PartOf(care.within[0].partition.replace("Level 1", "Level 9"), "[0]"),)}),
    ]
    for start, change in forged:
        with pytest.raises(PrivacyError, match="do not all lie in the part"):
            replace(start, **change)  # type: ignore[arg-type]


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
