"""What a value means depends on the value and the schema, never on the type that its column happens to have."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pytest

from veilcube.curator.counting import count
from veilcube.errors import TableError
from veilcube.schema import Attribute, Nominal, Ordinal, Schema

OPEN = {"outside": "other", "missing": "cell"}
NEW_YORK = timezone(timedelta(hours=-5))


def moved_by(attribute: Attribute, values: list[object], odd: object) -> int:
    """Count a pandas column without and with one odd value, and return by how much all counts differ together."""
    before, after = (
        count(pd.DataFrame({attribute.column: pd.Series(rows)}), Schema([attribute])).exact_counts
        for rows in (values, [*values, odd])
    )
    return int(np.abs(after - before).sum())


@pytest.mark.parametrize("odd", [None, "unknown", 7, 2.5, date(2024, 1, 5)])
@pytest.mark.parametrize(
    "attribute",
    [Nominal("x", ["yes", "no"], **OPEN), Nominal("x", ["True", "False"], **OPEN), Ordinal("x", 0, 1, **OPEN)],
)
def test_booleans_stay_what_they_are_beside_one_other_value(attribute: Attribute, odd: object) -> None:
    assert moved_by(attribute, [True] * 1_000 + [False] * 500, odd) == 1


@pytest.mark.parametrize("odd", [None, "unknown", 7, True, date(2024, 1, 5), datetime(2024, 1, 5, tzinfo=UTC)])
@pytest.mark.parametrize(
    "attribute", [Ordinal("x", "2024-01-01", "2024-01-31", **OPEN), Nominal("x", ["2024-01-05"], **OPEN)]
)
@pytest.mark.parametrize("zone", [None, UTC, NEW_YORK])
def test_instants_count_the_same_day_beside_one_other_value(
    attribute: Attribute, odd: object, zone: timezone | None
) -> None:
    late = [datetime(2024, 1, 5, 23, 30, tzinfo=zone), datetime(2024, 1, 5, tzinfo=zone)]
    assert moved_by(attribute, late * 100, odd) == 1


def test_an_instant_is_a_day_in_utc_in_every_source(tmp_path: Path) -> None:
    moment = datetime(2024, 1, 5, 23, 30, tzinfo=NEW_YORK)
    schema = Schema([Ordinal("x", "2024-01-05", "2024-01-06")])
    spellings = ["2024-01-05T23:30:00-05:00", "2024-01-05 23:30-05", "2024-01-05 23:30:00 -0500", "2024-01-06T04:30Z"]
    (tmp_path / "t.csv").write_text("\n".join(["x", *spellings, "2024-01-06"]))
    assert count(tmp_path / "t.csv", schema).exact_counts.tolist() == [0, 5]
    for values in ([moment], ["2024-01-05 23:30:00-05:00"]):
        assert count(pa.table({"x": values}), schema).exact_counts.tolist() == [0, 1]
        assert count(pd.DataFrame({"x": pd.Series(values, dtype=object)}), schema).exact_counts.tolist() == [0, 1]


def test_numbers_and_their_texts_are_one_nominal_value() -> None:
    attribute = Nominal("x", ["007", "1.50", "3"], **OPEN)
    for values in ([7, 3], ["007", "3"], [7.0, 3.0], [Decimal("7.00"), Decimal("3.00")], ["+7", "3."], ["7.0", "03"]):
        assert count(pa.table({"x": values}), Schema([attribute])).exact_counts.tolist() == [1, 0, 1, 0, 0]
    for values in ([1.5], ["1.5"], [Decimal("1.500")], ["01.50"]):
        assert count(pa.table({"x": values}), Schema([attribute])).exact_counts.tolist() == [0, 1, 0, 0, 0]
    for values in (["7e0"], ["0x7"], ["7_"], [7.5], ["0.7"]):
        assert count(pa.table({"x": values}), Schema([attribute])).exact_counts.tolist() == [0, 0, 0, 1, 0]


def test_listed_spellings_of_one_number_stay_apart() -> None:
    schema = Schema([Nominal("x", ["7", "007"], **OPEN)])
    assert count(pa.table({"x": ["7", "007", "07"]}), schema).exact_counts.tolist() == [2, 1, 0, 0]
    assert count(pa.table({"x": [7]}), schema).exact_counts.tolist() == [1, 0, 0, 0]


@pytest.mark.parametrize("others", [[], [Decimal("1.5")], [Decimal("-12.25")], ["unknown"], [0.25]])
def test_decimals_below_one_stay_what_they_are_beside_larger_ones(others: list[object], tmp_path: Path) -> None:
    schema = Schema([Nominal("x", ["0", "0.5", "-0.25", "1.5"], **OPEN)])
    values = [Decimal("0.5"), Decimal("0.0"), Decimal("-0.25")]
    expected = count(pd.DataFrame({"x": pd.Series(values, dtype=object)}), schema).exact_counts
    assert expected.tolist()[:3] == [1, 1, 1]
    numbers = [value for value in others if isinstance(value, Decimal)]
    for source in (
        pd.DataFrame({"x": pd.Series([*values, *others], dtype=object)}),
        pa.table({"x": [*values, *numbers]}),
        pa.table({"x": ["." + str(abs(value))[2:] if value > 0 else str(value) for value in values]}),
    ):
        found = count(source, schema).exact_counts
        assert found.tolist()[:3] == [1, 1, 1]


@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
def test_the_last_nanosecond_of_a_day_belongs_to_it_in_every_column(zone: str | None) -> None:
    days = Ordinal("x", "1960-01-01", "2024-01-31", **OPEN)
    moments = [
        pd.Timestamp(f"{day} 23:59:59.999999999", tz="UTC" if zone else None) for day in ("2024-01-01", "1960-01-02")
    ]
    typed = pd.Series(moments if zone is None else [moment.tz_convert(zone) for moment in moments])
    assert "ns" in str(typed.dtype)
    found = [
        count(pd.DataFrame({"x": column}), Schema([days])).exact_counts
        for column in (typed, pd.Series([*typed, "unknown"]))
    ]
    assert np.flatnonzero(found[0]).tolist() == [1, (date(2024, 1, 1) - date(1960, 1, 1)).days]
    assert np.abs(found[1] - found[0]).sum() == 1


def test_a_nanosecond_past_midnight_is_no_day_in_any_column() -> None:
    moments = [pd.Timestamp("2024-01-05 00:00:00.000000001"), pd.Timestamp("2024-01-05")]
    assert moved_by(Nominal("x", ["2024-01-05"], **OPEN), moments, "unknown") == 1


class Sex(str, Enum):  # noqa: UP042  the older way, whose members write themselves in other words
    FEMALE = "F"


class Level(int, Enum):
    LOW = 3


class Share(float, Enum):
    HALF = 0.5


@pytest.mark.parametrize(
    ("attribute", "member"),
    [
        (Nominal("x", ["F", "M"], **OPEN), Sex.FEMALE),
        (Nominal("x", ["3", "M"], **OPEN), Level.LOW),
        (Ordinal("x", 0, 5, **OPEN), Level.LOW),
        (Ordinal("x", edges=[0, 0.4, 1], **OPEN), Share.HALF),
    ],
)
def test_members_of_enumerations_are_their_values_beside_one_other_value(attribute: Attribute, member: Enum) -> None:
    assert moved_by(attribute, [member] * 100, date(2024, 1, 5)) == 1


class TestDigitsThatALibraryHasLost:
    CODES = Nominal("x", [str(2**53 + 1), "3"], **OPEN)

    def test_codes_above_the_floats_are_counted_as_whole_numbers_and_as_text(self) -> None:
        for values in ([2**53 + 1, 2**53], [str(2**53 + 1), str(2**53)], [f"{2**53 + 1}.0", "unknown"]):
            assert count(pa.table({"x": values}), Schema([self.CODES])).exact_counts.tolist() == [1, 0, 1, 0]

    def test_and_refused_as_floats(self) -> None:
        with pytest.raises(TableError, match="have lost digits"):
            count(pd.DataFrame({"x": [2**53 + 1, None]}), Schema([self.CODES]))

    def test_also_among_objects_where_they_may_be_persons(self) -> None:
        for who in ([1e16, 10**16, "z"], [2.0**53, "z"]):
            frame = pd.DataFrame({"x": "3", "who": pd.Series(who, dtype=object)})
            with pytest.raises(TableError, match="have lost digits"):
                count(frame, Schema([self.CODES]), person="who", max_rows=1)

    def test_but_floats_beside_small_codes_are_only_outside(self) -> None:
        schema = Schema([Nominal("x", ["3"], **OPEN)])
        assert count(pa.table({"x": [1e17, 3.0, float("inf")]}), schema).exact_counts.tolist() == [1, 2, 0]

    def test_single_precision_is_taken_for_the_number_it_is(self) -> None:
        schema = Schema([Nominal("x", ["0.1"], **OPEN)])
        for values in (np.array([0.1], np.float32), np.array([0.1], np.float32).astype(np.float64)):
            assert count(pa.table({"x": values}), schema).exact_counts.tolist() == [0, 1, 0]


class TestGuessedTypes:
    """Where a library guesses types from rows, one row changes what all others mean before we see them."""

    AGE = Schema([Ordinal("x", "2024-01-01", "2024-12-31", **OPEN)])

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        path = tmp_path / "t.csv"
        path.write_text("x\n05/12/2024\n06/12/2024\n")
        return path

    def test_are_refused_in_relations_on_csv_files(self, path: Path) -> None:
        for relation in (
            duckdb.read_csv(str(path)),
            duckdb.sql(f"SELECT x FROM '{path}' WHERE x IS NOT NULL"),
            duckdb.read_csv(str(path)).aggregate("x"),
        ):
            with pytest.raises(TableError, match="guessed from rows"):
                count(relation, self.AGE)

    def test_are_refused_in_databases_with_views_on_csv_files(self, path: Path, tmp_path: Path) -> None:
        with duckdb.connect(tmp_path / "t.db") as database:
            database.execute(f"CREATE VIEW v AS SELECT * FROM '{path}'")
        with pytest.raises(TableError, match="guessed from rows"):
            count(f"duckdb:///{tmp_path}/t.db", self.AGE, table="v")

    def test_are_refused_in_lazy_frames_and_datasets_of_csv_files(self, path: Path) -> None:
        datasets = ds.dataset(path, format="csv"), ds.dataset([ds.dataset(path, format="csv")])
        for source in (pl.scan_csv(path), *datasets, pyarrow.csv.open_csv(path)):
            with pytest.raises(TableError, match="guessed from rows"):
                count(source, self.AGE)

    def test_are_refused_in_relations_on_pandas_objects(self) -> None:
        frame = pd.DataFrame({"x": pd.Series(["2024-01-05", date(2024, 1, 5)], dtype=object)})
        with pytest.raises(TableError, match="guessed from rows"):
            count(duckdb.from_df(frame), self.AGE)

    def test_declared_types_are_counted(self, path: Path) -> None:
        relation = duckdb.sql("SELECT * FROM (VALUES (DATE '2024-01-05')) AS t(x)")
        assert count(relation, self.AGE).exact_counts.sum() == 1
        assert count(pl.LazyFrame({"x": [date(2024, 1, 5)]}), self.AGE).exact_counts.sum() == 1


def test_objects_that_are_no_values_are_refused() -> None:
    for odd in (b"a", (1, 2), {"a": 1}, object(), 1j):
        frame = pd.DataFrame({"x": pd.Series(["a", odd], dtype=object)})
        with pytest.raises(TableError):
            count(frame, Schema([Nominal("x", ["a"], **OPEN)]))
