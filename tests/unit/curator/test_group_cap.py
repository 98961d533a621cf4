"""Caps on groups: rows of at most so many values of an attribute, chosen from a person's own rows alone."""

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import veilcube as vc
from veilcube.errors import PlanError, PrivacyError, QueryError, TableError
from veilcube.privacy import PrivacyUnit

SCHEMA = vc.Schema(
    [
        vc.Nominal("district", ["N", "E", "S", "W"], outside="other", missing="cell"),
        vc.Nominal("care", ["in", "out"]),
        vc.Ordinal("x", 0, 2),
    ]
)
DISTRICTS = ["N", "E", "S", "W", "elsewhere", None]

Row = tuple[str, str | None, str, int]
rows_of_people = st.lists(
    st.tuples(
        st.sampled_from(["ann", "bob", "cyd"]),
        st.sampled_from(DISTRICTS),
        st.sampled_from(["in", "out"]),
        st.integers(0, 2),
    ),
    max_size=20,
)


def table_of(rows: Sequence[Row]) -> pa.Table:
    kinds = {"who": pa.string(), "district": pa.string(), "care": pa.string(), "x": pa.int64()}
    columns = zip(*rows, strict=True) if rows else [[]] * len(kinds)
    return pa.table(
        {name: pa.array(list(column), kind) for (name, kind), column in zip(kinds.items(), columns, strict=True)}
    )


def capped(rows: Sequence[Row], max_rows: int, max_groups: dict[str, int]) -> np.ndarray:
    return vc.count(table_of(rows), SCHEMA, person="who", max_rows=max_rows, max_groups=max_groups).exact_counts


@settings(max_examples=15, deadline=None, derandomize=True)
@given(rows_of_people, st.integers(1, 4), st.integers(1, 3), st.integers(1, 2), st.randoms(use_true_random=False))
def test_a_person_keeps_few_groups_and_touches_nobody_else(
    rows: list[Row], max_rows: int, districts: int, cares: int, random: Random
) -> None:
    groups = {"district": districts, "care": cares}
    everyone = capped(rows, max_rows, groups)
    shuffled = random.sample(rows, len(rows))
    assert np.array_equal(everyone, capped(shuffled, max_rows, groups))
    for person in ("ann", "bob", "cyd"):
        alone = capped([row for row in rows if row[0] == person], max_rows, groups)
        others = capped([row for row in rows if row[0] != person], max_rows, groups)
        assert np.array_equal(everyone - others, alone)
        assert alone.sum() <= max_rows
        assert np.count_nonzero(alone.sum(axis=(1, 2))) <= districts
        assert np.count_nonzero(alone.sum(axis=(0, 2))) <= cares


def test_no_small_table_changes_by_more_than_the_rows_of_a_person() -> None:
    """Every table of up to two rows of a person, beside one of up to one row of another."""
    cells = list(product(["N", None], ["in", "out"]))
    dearest = 0
    for max_rows in (1, 2):
        for other in ([], [("bob", "N", "in", 0)]):
            for one, two in product(cells, cells):
                person = [("ann", *one, 0), ("ann", *two, 0)]
                groups = {"district": 1}
                change = np.abs(capped([*other, *person], max_rows, groups) - capped(other, max_rows, groups)).sum()
                assert change <= max_rows
                dearest = max(dearest, int(change))
    assert dearest == 2  # both rows may have one district: the cap on groups makes no noise smaller


def test_the_choice_is_the_documented_digest_on_every_machine() -> None:
    rng = np.random.default_rng(3)
    rows = [
        (f"p{who}", "NESW"[district], "in", 0)
        for who, district in zip(rng.integers(0, 60, 400), rng.integers(0, 4, 400), strict=True)
    ]
    held: dict[str, set[int]] = defaultdict(set)
    for who, district, _, _ in rows:
        held[who].add("NESW".index(district))

    def digest(who: str, group: int) -> str:
        return hashlib.sha256("\x1f".join(["group", who, "0", str(group)]).encode()).hexdigest()

    kept = {who: sorted(groups, key=lambda group, who=who: digest(who, group))[:2] for who, groups in held.items()}  # type: ignore[misc]
    expected = [sum("NESW".index(d) == group and group in kept[who] for who, d, _, _ in rows) for group in range(4)]
    assert capped(rows, 99, {"district": 2}).sum(axis=(1, 2))[:4].tolist() == expected


def test_every_group_of_a_person_has_the_same_chance_however_many_rows_it_has() -> None:
    people = 3000
    table = pa.table(
        {
            "who": np.repeat(np.arange(people), 6),
            "district": ["N", "N", "N", "N", "E", "S"] * people,
            "care": ["in"] * 6 * people,
            "x": [0] * 6 * people,
        }
    )
    kept = vc.count(table, SCHEMA, person="who", max_rows=1, max_groups={"district": 1}).exact_counts.sum(axis=(1, 2))
    # One of three groups: 1000 expected with a standard deviation of 26; by rows N would have 2000.
    assert kept.sum() == people
    assert all(abs(int(count) - people / 3) < 110 for count in kept[:3])


def test_a_release_says_its_groups_and_a_file_keeps_them(tmp_path: Path) -> None:
    rows = [(f"p{number % 9}", DISTRICTS[number % 6], "in", number % 3) for number in range(90)]
    plan = vc.plan(SCHEMA, 1, "identity", person="who", max_rows=3)
    made = vc.release(
        table_of(rows), schema=SCHEMA, person="who", max_rows=3, max_groups={"Care": 1, "District": 2}, plan=plan
    )
    made.save(tmp_path / "a.veil")
    unit = vc.open(tmp_path / "a.veil").privacy.unit
    assert unit == PrivacyUnit("person", "who", 3, (("care", 1), ("district", 2)))
    assert made.counted is not None
    assert "of at most 1 value of 'care' and 2 values of 'district'" in made.counted
    assert made.record.measurements[0].noise == plan.noise
    assert PrivacyUnit.from_dict(unit.to_dict()) == unit
    with pytest.raises(PlanError, match="the plan protects"):
        vc.release(table_of(rows), schema=SCHEMA, person="who", max_rows=2, max_groups={"care": 1}, plan=plan)


@pytest.mark.parametrize(
    ("groups", "kind", "said"),
    [
        ({"x": 1}, PrivacyError, "'x' is an ordinal one"),
        ({"distric": 1}, QueryError, "no attribute 'distric'"),
        ({"district": 0}, PrivacyError, "whole number from 1"),
        ({"district": True}, PrivacyError, "whole number from 1"),
        ({"district": 1, "District": 2}, PrivacyError, "names an attribute twice"),
        ([("district", 1)], PrivacyError, "is a mapping"),
        ("district=1", PrivacyError, "is a mapping"),
        ({1: 1}, PrivacyError, "an attribute of max_groups"),
        ({f"a{number}": 1 for number in range(40)}, PrivacyError, "at most 32 attributes"),
    ],
)
def test_groups_that_cannot_be_are_refused(groups: object, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        vc.count(table_of([]), SCHEMA, person="who", max_rows=1, max_groups=groups)  # type: ignore[arg-type]


def test_groups_need_a_person_and_do_not_go_with_a_measured_cap_or_a_protected_table(tmp_path: Path) -> None:
    table = table_of([("ann", "N", "in", 0)])
    with pytest.raises(PrivacyError, match="go together"):
        vc.count(table, SCHEMA, max_groups={"district": 1})
    with pytest.raises(PrivacyError, match="leave out one of the two"):
        vc.release(table, 1, schema=SCHEMA, person="who", max_rows=1, max_groups={"district": 1}, measure_cap=1)
    cube = vc.count(table, SCHEMA, person="who", max_rows=1, max_groups={"district": 1})
    with pytest.raises(PrivacyError, match="leave out one of the two"):
        vc.release(cube, 1, measure_cap=1)
    with pytest.raises(TableError, match="brings its own"):
        vc.release(cube, 1, max_groups={"district": 1})
    with pytest.raises(TableError, match="no caps on groups"):
        vc.protect(cube, ledger=tmp_path / "b.db", dataset="a", epsilon=1)
    with pytest.raises(PrivacyError, match="name the person"):
        PrivacyUnit(max_groups=(("district", 1),))
