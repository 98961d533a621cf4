"""Tables of many attributes, whose cube nobody can hold, are released by "auto" from their rows."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import veilcube as vc
from veilcube.curator.counting import Source
from veilcube.errors import BudgetExceededError, CapacityError, PrivacyError
from veilcube.operators import GroupedTablesOperator
from veilcube.system import memory

NAMES = [f"a{number}" for number in range(20)]
WIDE = vc.Schema([vc.Ordinal(name, 0, 9) for name in NAMES])
ROWS = 500
PROMISES = {"pure": {"epsilon": 2}, "delta": {"epsilon": 2, "delta": "1e-9"}, "rho": {"rho": "1/2"}}
UNITS = {"rows": {}, "persons": {"person": "id", "max_rows": 3}}


def people() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    kind = rng.integers(0, 3, ROWS)
    columns = {name: (3 * kind + rng.integers(0, 4, ROWS)) % 10 for name in NAMES}
    return pd.DataFrame(columns | {"id": rng.integers(0, 200, ROWS)})


@pytest.fixture
def without_a_cube(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        pytest.fail("the cube was counted")

    monkeypatch.setattr(Source, "count", refuse)
    monkeypatch.setattr(Source, "count_tables", refuse)


def kept_rows(person: str | None = None, max_rows: int | None = None) -> int:
    frame = people()
    return len(frame) if person is None else int(frame.groupby(person).size().clip(upper=max_rows).sum())


@pytest.mark.usefixtures("without_a_cube")
@pytest.mark.parametrize("promise", PROMISES.values(), ids=list(PROMISES))
@pytest.mark.parametrize("unit", UNITS.values(), ids=list(UNITS))
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_a_wide_table_is_released_from_its_rows(
    promise: dict[str, object], unit: dict[str, object], neighbours: str
) -> None:
    release = vc.release(people(), schema=WIDE, neighbours=neighbours, **promise, **unit)
    assert release.plan["strategy"] == {"name": "grouped tables"}
    assert release.privacy.neighbours == neighbours
    first, second = release.record.measurements
    for part in (first, second):
        assert isinstance(part.operator, GroupedTablesOperator)
        assert part.operator.cell_shape == WIDE.shape
    # Every table sums up to all rows that were kept, but for its noise.
    for part in (first, second):
        for times, table in zip(part.operator.multipliers, part.operator.parts(part.values), strict=True):
            deviation = part.noise.stddev * np.sqrt(table.size) / times
            assert abs(table.sum() / times - kept_rows(**unit)) < 7 * deviation


@pytest.mark.usefixtures("without_a_cube")
def test_all_tables_of_a_wide_table_are_counted_exactly_but_for_their_noise() -> None:
    """With a huge epsilon nothing is left of the noise: tables are those that pandas counts."""
    frame = people()
    release = vc.release(frame, epsilon=10**8, schema=WIDE)
    for part in release.record.measurements:
        operator = part.operator
        for number, (table, values) in enumerate(zip(operator.tables, operator.parts(part.values), strict=True)):
            groups = [operator.group_of_values(one)[frame[NAMES[operator.groupings[one].axis]]] for one in table]
            exact = np.zeros(values.shape, dtype=np.int64)
            np.add.at(exact, tuple(groups), 1)
            np.testing.assert_array_equal(values, operator.multipliers[number] * exact)


@pytest.mark.usefixtures("without_a_cube")
@pytest.mark.parametrize("named", ["csv", "parquet"])
def test_files_are_released_as_frames_are(named: str, tmp_path: Path) -> None:
    path = tmp_path / f"people.{named}"
    people().to_csv(path, index=False) if named == "csv" else people().to_parquet(path)
    release = vc.release(str(path), epsilon=10**8, schema=WIDE)
    first = release.record.measurements[0]
    table = next(part for part in first.operator.parts(first.values) if part.size == 10)
    times = round(table.sum() / ROWS)
    assert table.tolist() == (times * np.bincount(people()["a0"], minlength=10)).tolist()


def test_a_cube_that_fits_is_counted_for_the_same_strategy() -> None:
    schema = vc.Schema([vc.Ordinal(name, 0, 9) for name in NAMES[:4]])
    release = vc.release(people(), epsilon=1, schema=schema)
    assert release.plan["strategy"] == {"name": "grouped tables", "full_cells": True}


def rich_table(rows: int) -> pd.DataFrame:
    values = np.random.default_rng(3).integers(0, [4, 3, 2], (rows, 3))
    return pd.DataFrame(values, columns=["a", "b", "c"])


RICH = vc.Schema([vc.Ordinal("a", 0, 3), vc.Ordinal("b", 0, 2), vc.Nominal("c", [0, 1])])


@pytest.mark.parametrize("promise", [{"epsilon": 1}, {"epsilon": 1, "delta": "1e-9"}, {"rho": "1/2"}], ids=str)
def test_full_cells_are_counted_alone_and_answer_like_any_cells(promise: dict[str, object], tmp_path: Path) -> None:
    table = rich_table(40_000)
    release = vc.release(table, schema=RICH, **promise)
    rows, cells = release.record.measurements
    assert rows.values.size == 1
    assert cells.cells is not None
    assert release.count(estimator="least_squares").value == cells.values.sum()
    assert not release.has_model
    exact = np.zeros((4, 3, 2))
    np.add.at(exact, tuple(table.to_numpy().T), 1)
    assert np.abs(release.to_xarray(estimator="least_squares").to_numpy() - exact).max() < 12 * cells.noise.stddev
    release.save(tmp_path / "rich.veil")
    again = vc.open(tmp_path / "rich.veil")
    workload = vc.Workload.random_ranges(RICH, 50, seed=1)
    np.testing.assert_array_equal(again.answer(workload).value, release.answer(workload).value)
    guaranteed = again.answer(workload, interval="guaranteed")
    assert (guaranteed.low <= guaranteed.high).all()


def test_cells_of_few_rows_are_not_counted_alone() -> None:
    release = vc.release(rich_table(10), schema=RICH, epsilon=1)
    assert len(release.record.measurements) == 3
    assert release.has_model


def test_rows_are_drawn_from_full_cells_as_they_are_filled() -> None:
    table = rich_table(40_000)
    release = vc.release(table, schema=RICH, epsilon=5)
    drawn = release.synthesize(30_000)
    assert list(drawn.columns) == ["a", "b", "c"]
    share = drawn.value_counts(["a", "b"], sort=False).to_numpy() / 30_000
    np.testing.assert_allclose(share, 1 / 12, atol=0.01)
    assert abs(len(release.synthesize()) - 40_000) < 100


def test_facts_are_imposed_on_full_cells() -> None:
    release = vc.release(rich_table(40_000), schema=RICH, epsilon=1)
    refined = vc.refine(release, ["COUNT(a = 0) = 10000"])
    assert refined.count(a=0).value == pytest.approx(10_000)


def test_rows_and_cubes_are_measured_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the same table, both ways give the same tables where there is no noise to speak of."""
    schema = vc.Schema([vc.Ordinal(name, 0, 9) for name in NAMES[:4]])
    by_cube = vc.release(people(), epsilon=10**8, schema=schema, person="id", max_rows=2)
    monkeypatch.setattr("veilcube.session.releasing.LARGEST_CUBE_COUNTED", 10)
    monkeypatch.setattr(Source, "count", lambda *_: pytest.fail("the cube was counted"))
    by_rows = vc.release(people(), epsilon=10**8, schema=schema, person="id", max_rows=2)
    for one, other in zip(by_cube.record.measurements, by_rows.record.measurements, strict=True):
        assert one.operator.to_dict() == other.operator.to_dict()
        np.testing.assert_array_equal(one.values, other.values)


@pytest.mark.usefixtures("without_a_cube")
def test_a_ready_plan_of_a_wide_table_is_carried_out_from_its_rows() -> None:
    plan = vc.plan(WIDE, "1/2", neighbours="replace")
    release = vc.release(people(), plan=plan, schema=WIDE)
    assert release.privacy.epsilon == plan.epsilon
    assert [part.noise for part in release.record.measurements] == [law for _, law in plan.parts]


def test_a_wide_release_is_charged_once_and_refused_beyond_the_budget(tmp_path: Path) -> None:
    ledger = vc.Ledger(tmp_path / "budget.db")
    ledger.create("people", 1)
    vc.release(people(), epsilon="3/4", schema=WIDE, ledger=ledger, dataset="people")
    with pytest.raises(BudgetExceededError):
        vc.release(people(), epsilon="1/2", schema=WIDE, ledger=ledger, dataset="people")
    (charge,) = ledger.history("people")
    assert str(charge.epsilon) == "3/4"


def test_what_does_not_fit_is_refused_before_it_is_charged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = vc.Ledger(tmp_path / "budget.db")
    ledger.create("people", 1)
    many = vc.Schema([vc.Ordinal(f"a{number}", 0, 999) for number in range(60)])
    rows = pd.DataFrame({f"a{number}": [1, 2, 3] for number in range(60)})
    monkeypatch.setattr(memory, "_machine_memory", lambda: 2**29)
    with pytest.raises(CapacityError, match="memory"):
        vc.release(rows, epsilon=1, schema=many, ledger=ledger, dataset="people")
    assert ledger.history("people") == []


@pytest.mark.parametrize("epsilon", ["1/1000", 1, 10**6, 10**9])
def test_no_epsilon_stops_what_was_paid_for(epsilon: object) -> None:
    """Where noise is next to nothing, what is chosen by it was once divided by nothing, after the charge."""
    for sizes in ((4, 4, 4), (3, 1, 5), (1, 1, 1), (40, 30), (7,)):
        schema = vc.Schema([vc.Ordinal(f"a{axis}", 1, size) for axis, size in enumerate(sizes)])
        for rows in (0, 10**6):
            cube = vc.Cube(schema, np.full(sizes, rows))
            for neighbours in ("add-remove", "replace"):
                vc.release(cube, epsilon, "grouped tables", neighbours)


def test_a_fault_while_rows_are_measured_shows_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def fault(_: object, rows: list[np.ndarray]) -> Callable[[], None]:
        raise RuntimeError(f"rows are {rows[0][:5].tolist()}")

    monkeypatch.setattr(GroupedTablesOperator, "apply_to_rows", fault)
    with pytest.raises(PrivacyError, match="RuntimeError") as stop:
        vc.release(people(), epsilon=1, schema=WIDE)
    assert "rows are" not in str(stop.value)
    assert stop.value.__cause__ is None
