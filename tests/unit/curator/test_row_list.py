"""Rows that are listed where a cube would be too large: the same rows as are counted, and as silent."""

import copy
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import veilcube as vc
from veilcube.curator.counting import Source
from veilcube.curator.cube import RowList
from veilcube.errors import PlanError, PrivacyError, TableError
from veilcube.operators import IdentityOperator
from veilcube.planner.grouped.design import first_tables
from veilcube.planner.wavelet import Wavelet
from veilcube.privacy import PrivacyUnit
from veilcube.privacy.unit import LARGEST_TABLE

SCHEMA = vc.Schema(
    [
        vc.Ordinal("age", 17, 90, missing="cell"),
        vc.Nominal("job", hierarchy={"Care": ["Nurse", "Aide"], "Law": ["Judge"]}),
        vc.Ordinal("hour", 0, 23),
    ]
)


def people(rows: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    ages = pd.Series(rng.integers(17, 91, rows), dtype="Int64")
    ages[rng.random(rows) < 0.1] = pd.NA
    return pd.DataFrame(
        {
            "id": rng.integers(0, max(rows // 4, 1), rows),
            "hour": rng.integers(0, 24, rows),
            "job": rng.choice(["Nurse", "Aide", "Judge"], rows),
            "age": ages,
        }
    )


def source_of(data: object, person: str | None = None, max_rows: int | None = None) -> Source:
    return Source.read(data, SCHEMA, person, max_rows, None)


def counted(listed: RowList) -> NDArray[np.int64]:
    """Return the cube of listed rows, by hand."""
    found = np.zeros(listed.schema.shape, dtype=np.int64)
    np.add.at(found, tuple(column.astype(np.int64) for column in listed._rows), 1)
    return found


@pytest.mark.parametrize("rows", [0, 1, 700])
@pytest.mark.parametrize("unit", [(), ("id", 1), ("id", 3)], ids=["rows", "one each", "three each"])
@pytest.mark.parametrize("kind", ["pandas", "csv", "parquet", "files"])
def test_the_rows_that_are_listed_are_those_that_are_counted(
    kind: str, unit: tuple[str, int], rows: int, tmp_path: Path
) -> None:
    frame = people(rows)
    data: object = frame
    if kind == "csv":
        frame.to_csv(tmp_path / "people.csv", index=False)
        data = str(tmp_path / "people.csv")
    elif kind == "parquet":
        frame.to_parquet(tmp_path / "people.parquet")
        data = str(tmp_path / "people.parquet")
    elif kind == "files":
        for number, part in enumerate((frame[::2], frame[1::2])):
            part.to_parquet(tmp_path / f"{number}.parquet")
        data = str(tmp_path / "*.parquet")
    source = source_of(data, *unit)
    listed, cube = source.list_rows(), source.count()
    assert (listed.schema, listed.unit) == (cube.schema, cube.unit)
    assert listed.exact_rows == cube.exact_rows
    np.testing.assert_array_equal(counted(listed), cube.exact_counts)
    for operator in (first_tables(SCHEMA), IdentityOperator(SCHEMA.shape, SCHEMA.names)):
        np.testing.assert_array_equal(listed.measured_by(operator), cube.measured_by(operator))


def test_more_rows_than_a_batch_are_all_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veilcube.curator.streaming.ROWS_PER_BATCH", 64)
    source = source_of(people(5000))
    np.testing.assert_array_equal(counted(source.list_rows()), source.count().exact_counts)


@pytest.mark.parametrize(
    ("size", "kind"), [(256, np.uint8), (257, np.uint16), (65_536, np.uint16), (65_537, np.uint32)]
)
def test_cells_are_kept_in_as_few_bytes_as_they_need(size: int, kind: type[np.integer]) -> None:
    schema = vc.Schema([vc.Ordinal("a", 0, size - 1)])
    listed = Source.read(pd.DataFrame({"a": [0, size - 1]}), schema, None, None, None).list_rows()
    (column,) = listed._rows
    assert column.dtype == kind
    assert column.tolist() == [0, size - 1]


def test_progress_is_told_in_whole_percents() -> None:
    told: list[float | None] = []
    source_of(people(100)).list_rows(told.append)
    assert told[-1] == 1.0


@pytest.mark.parametrize(
    ("column", "value", "problem"), [("hour", 24, "hour"), ("job", "Pilot", "job"), ("id", None, "missing values")]
)
def test_a_row_that_fits_no_cell_is_refused_and_not_shown(column: str, value: object, problem: str) -> None:
    frame = people(50).astype({"id": "Int64"})
    frame[column] = frame[column].astype(object)
    frame.loc[7, column] = value
    source = source_of(frame, "id", 2) if column == "id" else source_of(frame)
    refusals = []
    for read in (source.list_rows, source.count):
        with pytest.raises(TableError, match=problem) as refusal:
            read()
        refusals.append(str(refusal.value))
    assert refusals[0] == refusals[1]
    assert "Pilot" not in refusals[0]


def listed_rows(rows: int = 734_219) -> RowList:
    columns = [np.full(rows, 61, dtype=np.uint8), np.zeros(rows, dtype=np.uint8), np.full(rows, 19, dtype=np.uint8)]
    return RowList(SCHEMA, columns, PrivacyUnit.row())


def test_its_words_tell_no_row_and_not_how_many_there_are() -> None:
    listed = listed_rows()
    for shown in (repr(listed), str(listed), f"{listed}"):
        assert shown == "RowList(3 attributes, rows not shown)"


def test_it_cannot_be_copied_or_pickled() -> None:
    listed = listed_rows(5)
    for way in (pickle.dumps, copy.copy, copy.deepcopy, lambda value: value.__reduce_ex__(2)):
        with pytest.raises(PrivacyError, match="cannot be copied or pickled"):
            way(listed)


def test_its_rows_cannot_be_changed() -> None:
    listed = listed_rows(5)
    with pytest.raises(ValueError, match="read-only"):
        listed._rows[0][0] = 1


def test_a_list_above_the_bound_is_refused_in_one_sentence() -> None:
    endless = np.broadcast_to(np.zeros(1, dtype=np.uint8), (LARGEST_TABLE + 1,))
    with pytest.raises(TableError, match=r"at most 2\*\*36 rows"):
        RowList(SCHEMA, [endless] * 3, PrivacyUnit.row())


def test_what_needs_the_cube_does_not_measure_rows() -> None:
    with pytest.raises(PlanError, match="not its rows"):
        listed_rows(5).measured_by(Wavelet().operator(SCHEMA))
