"""Functions of distributive queries that fail on the private table: paid for, and told in a sentence without counts."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import veilcube as vc
from veilcube.curator.protected.table import ProtectedTable, private_view
from veilcube.errors import PrivacyError, QueryError, VeilcubeError

SCHEMA = vc.Schema([vc.Ordinal("age", 0, 9), vc.Nominal("sex", ["F", "M"])])
COUNTS = np.random.default_rng(3).integers(400, 500, SCHEMA.shape)
# Made-up tables have far fewer rows, so the functions below fail on the private one alone.
MANY = 2000
Part = Callable[[np.ndarray, np.ndarray], object]


@pytest.fixture
def table(tmp_path: Path) -> ProtectedTable:
    cube = vc.Cube(SCHEMA, COUNTS)
    return vc.protect(cube, ledger=f"sqlite:///{tmp_path}/budget.db", dataset="people", epsilon=1000)


def tells(rows: np.ndarray) -> int:
    if rows.sum() > MANY:
        raise RuntimeError(f"the counts are {rows.tolist()}")
    return int(rows.sum())


def leaves(rows: np.ndarray) -> int:
    if rows.sum() > MANY:
        raise SystemExit(f"the counts are {rows.tolist()}")
    return int(rows.sum())


@pytest.mark.parametrize(
    ("part", "output"),
    [
        (lambda _, rows: tells(rows), "unlimited"),
        (lambda _, rows: leaves(rows), "unlimited"),
        (lambda _, rows: rows.sum() / 2 if rows.sum() > MANY else int(rows.sum()), "unlimited"),
        (lambda _, rows: 10**70 if rows.sum() > MANY else int(rows.sum()), "unlimited"),
        (lambda _, rows: [-tells(rows), 0], [0, 1]),
        (lambda _, rows: [0] * (3 if rows.sum() > MANY else 2), [0, 1]),
        (lambda _, rows: [0, 2**62 if rows.sum() > MANY else 0], [0, 1]),
        (lambda _, rows: [0, -(2**63) if rows.sum() > MANY else 0], [0, 1]),
        (lambda _, rows: np.array([0, 2**64 - 1 if rows.sum() > MANY else 0], np.uint64), [0, 1]),
    ],
)
def test_a_failure_on_exact_rows_is_constant_and_paid_for(table: ProtectedTable, part: Part, output: object) -> None:
    merge = max if output != "unlimited" else lambda a, b: a + b
    query = vc.DistributiveQuery(part, merge, 1, output)  # type: ignore[arg-type]
    with pytest.raises(QueryError) as refusal:
        table.distributive(query, "age", by=["sex"], epsilon=2)
    assert str(refusal.value).startswith("the part of the distributive query failed on the table")
    assert not any(str(count) in str(refusal.value) for count in COUNTS.ravel())
    assert refusal.value.__cause__ is None
    assert refusal.value.__context__ is None
    assert table.budget.spent == 2


def test_functions_see_no_exact_rows_before_the_charge(table: ProtectedTable) -> None:
    spent: list[int] = []

    def part(_: np.ndarray, rows: np.ndarray) -> int:
        if rows.sum() > MANY:
            spent.append(int(table.budget.spent))
        return int(rows.sum())

    table.distributive(vc.DistributiveQuery(part, lambda a, b: a + b, 1), "age", epsilon=3)
    assert spent == [3]


def test_an_interrupt_stops_the_program_and_carries_nothing(table: ProtectedTable) -> None:
    def part(_: np.ndarray, rows: np.ndarray) -> int:
        if rows.sum() > MANY:
            raise KeyboardInterrupt(rows.tolist())
        return int(rows.sum())

    with pytest.raises(KeyboardInterrupt) as stop:
        table.distributive(vc.DistributiveQuery(part, lambda a, b: a + b, 1), "age", epsilon=1)
    assert stop.value.args == ()
    assert stop.value.__context__ is None


@pytest.mark.parametrize("rows", [9_223_372, 9_223_373])
def test_a_sum_beyond_64_bits_does_not_wrap_around(tmp_path: Path, rows: int) -> None:
    low = 10**12
    cube = vc.Cube(vc.Schema([vc.Ordinal("x", low, low + 3)]), np.array([0, 0, 0, rows]))
    table = vc.protect(cube, ledger=f"sqlite:///{tmp_path}/budget.db", dataset="d", epsilon=1)
    found = table.distributive(vc.DistributiveQuery.sum(0, low + 3), "x", epsilon=1)
    assert abs(found.value - rows * (low + 3)) < 100 * low


@pytest.mark.parametrize(
    "ask",
    [
        lambda t: t.distributive(vc.DistributiveQuery(lambda _, rows: 10**70, max, 1), "age", epsilon=1),
        lambda t: t.distributive(vc.DistributiveQuery(lambda _, rows: [2**62, 0], max, 1, [0, 1]), "age", epsilon=1),
        lambda t: t.distributive(vc.DistributiveQuery.max(range(10)), "age", epsilon="1/1" + "0" * 30),
    ],
)
def test_what_can_be_refused_beforehand_costs_nothing(
    table: ProtectedTable, ask: Callable[[ProtectedTable], object]
) -> None:
    with pytest.raises((QueryError, PrivacyError)):
        ask(table)
    assert table.budget.spent == 0


def test_large_results_leave_the_ledger_readable(table: ProtectedTable) -> None:
    far = vc.DistributiveQuery(lambda _, rows: 2**119, max, 1)
    assert abs(table.distributive(far, "age", by=["sex"], epsilon=1).value - 2**119) < 10**4
    assert len(private_view(table).desk.ledger.history("people").answers) == 1


def test_a_ledger_keeps_no_answer_that_it_could_not_read_back(table: ProtectedTable) -> None:
    table.distributive(vc.DistributiveQuery.count(), "age", epsilon=1)
    ledger = private_view(table).desk.ledger
    (kept,) = ledger.history("people").answers
    receipt = ledger.charge("people", kept.statement, purpose="long")
    for value in (10**59, -(10**59), 10**5000):
        with pytest.raises(VeilcubeError, match="less than 60 digits"):
            ledger.keep(receipt, SCHEMA, kept.key, kept.question, [value], None)
    ledger.keep(receipt, SCHEMA, kept.key, kept.question, [10**59 - 1, 1 - 10**59], None)
    assert ledger.history("people").answers[-1].values == (10**59 - 1, 1 - 10**59)
