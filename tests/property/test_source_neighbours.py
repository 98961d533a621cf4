"""One row more changes one cell by one, or the table is refused: through every source, for rows of any kind.

What breaks this lies before the noise. A reader of CSV that takes quotes anywhere lets one row swallow thousands, and a
library that changes the type of a column because one value does not fit it changes what all other values mean.
"""

import csv
import gzip
import io
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from veilcube.curator import counting
from veilcube.curator.tables import Engine
from veilcube.errors import TableError
from veilcube.schema import Nominal, Ordinal, Schema

Value: TypeAlias = Any
Row: TypeAlias = tuple[Value, ...]
Counts: TypeAlias = np.ndarray

OPEN = {"outside": "other", "missing": "cell"}  # so that odd values are counted and not refused
JOBS = ["1", "007", "true", "No", "a", "a,b", "2024-01-05", "1.50", "0.5", "0", str(2**53 + 1), 'say "x"']
ATTRIBUTES = [
    Ordinal("age", 0, 5, **OPEN),
    Ordinal("clipped", 0, 5, outside="clip", missing="cell"),
    Ordinal("pay", edges=[0, 0.1, 1.5, 10, 1e18], **OPEN),
    Ordinal("day", "2024-01-01", "2024-01-31", **OPEN),
    Ordinal("year", "2020", "2026", unit="year", **OPEN),
    Nominal("job", JOBS, **OPEN),
    Nominal("flag", ["True", "False"], **OPEN),
    Nominal("code", [str(2**53 + 1), "7", "3"], **OPEN),
]

EASTERN, INDIA = timezone(timedelta(hours=-5)), timezone(timedelta(hours=5, minutes=30))
LATE = datetime(2024, 1, 5, 23, 30)
# Columns that one library or another gives a type of their own.
TYPED: list[Sequence[Value]] = [
    [1, 3, 7, 0, -2],
    [1, 3, None, 2**53 + 1],
    [2023, 2024, None, 1999],
    [1.0, 0.1, 2.5, float("nan"), 7.0],
    [float(np.float32(0.1)), 1.5],
    [True, False, True],
    [True, None, False],
    [date(2024, 1, 5), date(2024, 1, 6), date(1999, 1, 1)],
    [datetime(2024, 1, 5), LATE, datetime(2023, 12, 31, 5)],
    [moment.replace(tzinfo=EASTERN) for moment in (LATE, datetime(2024, 1, 31, 22), datetime(2023, 12, 31, 23))],
    [moment.replace(tzinfo=UTC) for moment in (LATE, datetime(2024, 1, 6))],
    [Decimal("1.50"), Decimal("7.00"), Decimal("0.1")],
    [Decimal("0.50"), Decimal("0.0"), Decimal("-0.1")],
    [pd.Timestamp("2024-01-05 23:59:59.999999999"), pd.Timestamp("2024-01-05")],
    [pd.Timestamp("2024-01-31 23:59:59.999999999", tz="UTC"), pd.Timestamp("2024-01-05", tz="UTC")],
    [".5", "0.50", "1.5", ".1", "0"],
    ["1", "7", "007", "a", "7.0", " 1 "],
    ["2024-01-05", "2024-01-05T23:30:00-05:00", "2024-01-05 00:00:00"],
    ["True", "False", "TRUE", "no"],
]
ODD: list[Value] = [
    *(
        None,
        float("nan"),
        float("inf"),
        True,
        False,
        0,
        2**53,
        2**53 + 1,
        2**63 - 1,
        -(2**63),
        2.5,
        -0.0,
        1e300,
        2024.0,
    ),
    *("", "  ", "unknown", "NA", "nan", "inf", "1_000", "1e0", "0E1", "+7", "-0", "0x7", "TRUE", "2024", "2024-01"),
    *('"', 'tall"', '"tall', 'a"b', "5'11\"", "a\nb", "\r", "\n", ",", ";", "\t", "\x00", "é", "\ufeff", "x" * 100_000),
    *(LATE, LATE.replace(tzinfo=INDIA), LATE.replace(tzinfo=UTC), date(2024, 1, 5), datetime(2024, 1, 6)),
    *(Decimal("1.50"), Decimal("1E+20"), Decimal("0.1"), "2024-01-05 23:30:00 -0500", "2024-01-05T23:30:00Z"),
]
RAW_LINES = [
    *('52,"tall', "41,5'11\"", '"', '""', '"""', 'a"b,c"d', '1,"x" ', '1, "x"', '"1","2', "1", "1,2,3", "", ",", "1;2"),
    *('"1\n2",3', '"1","2"\r', "1,2\r3,4", '"a""b",1', "\x00,\x00", '1,"a\r\nb"', "'1','2", "#1,2", "\\,1", '\\"1,2'),
]


def csv_text(rows: Sequence[Row], names: Sequence[str], end: str = "\n") -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator=end)
    writer.writerow(names)
    writer.writerows([["" if pd.isna(value) else value for value in row] for row in rows])
    return text.getvalue()


def as_csv(rows: Sequence[Row], names: Sequence[str], folder: Path) -> str:
    (folder / "t.csv").write_text(csv_text(rows, names), encoding="utf-8", newline="")
    return str(folder / "t.csv")


def as_gzip(rows: Sequence[Row], names: Sequence[str], folder: Path) -> str:
    (folder / "t.csv.gz").write_bytes(gzip.compress(csv_text(rows, names, "\r\n").encode(), 1))
    return str(folder / "t.csv.gz")


def as_glob(rows: Sequence[Row], names: Sequence[str], folder: Path) -> str:
    """Write most rows to one CSV file and the last one, which may be the odd one, to a Parquet file beside it."""
    apart = folder / "two files"  # no file of another source is in there
    apart.mkdir(exist_ok=True)
    as_csv(rows[:-1], names, apart)
    as_parquet(rows[-1:], names, apart)
    return str(apart / "t.*")


def arrow_array(values: Sequence[Value]) -> pa.Array:
    """Give a column the narrowest type that holds all its values, as writers of typed files do, and else text."""
    kinds = {type(value) for value in values if value is not None}
    zones = {getattr(value, "tzinfo", None) for value in values if isinstance(value, datetime)}
    try:
        if len(kinds) <= 1 and len(zones) <= 1:
            return pa.array(values)
        if kinds <= {int, float}:
            return pa.array([None if value is None else float(value) for value in values])
        if kinds == {date, datetime} and zones == {None}:
            return pa.array(np.array(values, dtype="datetime64[us]"))
    except (pa.ArrowInvalid, OverflowError):
        pass
    return pa.array([None if pd.isna(value) else str(value) for value in values], pa.string())


def as_arrow(rows: Sequence[Row], names: Sequence[str], folder: Path) -> pa.Table:
    return pa.table({name: arrow_array([row[place] for row in rows]) for place, name in enumerate(names)})


def as_parquet(rows: Sequence[Row], names: Sequence[str], folder: Path) -> str:
    pq.write_table(as_arrow(rows, names, folder), folder / "t.parquet")
    return str(folder / "t.parquet")


def as_pandas(rows: Sequence[Row], names: Sequence[str], folder: Path) -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series([row[place] for row in rows]) for place, name in enumerate(names)})


def as_polars(rows: Sequence[Row], names: Sequence[str], folder: Path) -> pl.DataFrame:
    return pl.from_arrow(as_arrow(rows, names, folder))


def as_relation(rows: Sequence[Row], names: Sequence[str], folder: Path) -> duckdb.DuckDBPyRelation:
    return duckdb.from_arrow(as_arrow(rows, names, folder))


def as_database(rows: Sequence[Row], names: Sequence[str], folder: Path) -> str:
    (folder / "t.db").unlink(missing_ok=True)
    with duckdb.connect(folder / "t.db") as database:
        database.register("given", as_arrow(rows, names, folder))
        database.execute("CREATE TABLE people AS SELECT * FROM given")
    return f"duckdb:///{folder}/t.db"


SOURCES: dict[str, Callable[[Sequence[Row], Sequence[str], Path], object]] = {
    "csv": as_csv,
    "gzip": as_gzip,
    "glob": as_glob,
    "parquet": as_parquet,
    "pandas": as_pandas,
    "polars": as_polars,
    "arrow": as_arrow,
    "duckdb": as_relation,
    "database": as_database,
}

QUICK, FULL, ROWS_ADDED_TO_EACH_TABLE = 160, 10_000, 20
PERSON, MAX_ROWS = "who", 2
NEW_PEOPLE = ["zed", "0E1", "1_000", 99, 99.5, 2**60, 'x"y', "x\ny", "0099x", date(2024, 1, 5), "é" * 1000]
PEOPLE: list[Sequence[Value]] = [[1, 2, 1000], ["ann", "bob", "0E2", "1000"], [1.0, 2.0, 0.0], ["007", "1.0", "0"]]


@pytest.fixture(scope="module", autouse=True)
def _one_engine() -> Iterator[None]:
    """Keep one engine for all counts, for to start one takes longer than to count a few rows."""
    with Engine() as engine, pytest.MonkeyPatch.context() as patched:

        @contextmanager
        def kept() -> Iterator[Engine]:
            yield engine

        patched.setattr(counting, "Engine", kept)
        yield


class Case:
    """A random table, and rows to add to it."""

    def __init__(self, random: random.Random) -> None:
        self.schema = Schema(random.sample(ATTRIBUTES, 2))
        self.names = [attribute.name for attribute in self.schema]
        columns = [random.choice(TYPED) for _ in self.names]
        self.rows = [tuple(map(random.choice, columns)) for _ in range(random.randint(2, 6))]
        self._columns, self._random = columns, random

    def odd_row(self) -> Row:
        """Return a row with one odd value or more; the others are like those of the table."""
        odd = [self._random.random() < 0.6 for _ in self.names]
        odd[self._random.randrange(len(odd))] = True
        return tuple(
            self._random.choice(ODD if is_odd else column) for is_odd, column in zip(odd, self._columns, strict=True)
        )

    def inserted(self, row: Row) -> list[Row]:
        place = self._random.randint(0, len(self.rows))
        return [*self.rows[:place], row, *self.rows[place:]]


def counted(source: object, schema: Schema, **options: Any) -> Counts | None:
    """Count a table, or return None if it is refused."""
    try:
        return counting.count(source, schema, **options).exact_counts
    except TableError:
        return None


def require_neighbours(before: Counts | None, after: Counts | None, most: int, told: object) -> bool:
    """Fail if more than ``most`` counts of one differ; tell whether both tables were counted."""
    if before is None or after is None:
        return False
    difference = after - before
    assert difference.min() >= 0, told
    assert difference.sum() <= most, told
    return True


def check_rows(name: str, neighbours: int, folder: Path) -> None:
    random_source, write = random.Random(f"{name} {neighbours}"), SOURCES[name]
    options = {"table": "people"} if name == "database" else {}
    compared = 0
    for _ in range(neighbours // ROWS_ADDED_TO_EACH_TABLE):
        case = Case(random_source)
        before = counted(write(case.rows, case.names, folder), case.schema, **options)
        for _ in range(ROWS_ADDED_TO_EACH_TABLE):
            row = case.odd_row()
            after = counted(write(case.inserted(row), case.names, folder), case.schema, **options)
            compared += require_neighbours(before, after, 1, (case.schema, case.rows, row))
    assert compared > neighbours / 10


@pytest.mark.parametrize("name", SOURCES)
def test_one_row_more_changes_one_cell_by_one(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "database":
        monkeypatch.setattr(counting, "Engine", Engine)
    check_rows(name, QUICK, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", [name for name in SOURCES if name != "database"])
def test_ten_thousand_rows_more_change_one_cell_each(name: str, tmp_path: Path) -> None:
    check_rows(name, FULL, tmp_path)


def check_lines(neighbours: int, folder: Path) -> None:
    random_source = random.Random(neighbours)
    compared = 0
    for _ in range(neighbours // ROWS_ADDED_TO_EACH_TABLE):
        case = Case(random_source)
        rows = [case.odd_row() if random_source.random() < 0.3 else row for row in case.rows]
        end = random_source.choice(["\n", "\r\n", "\r"])
        header = csv_text([], case.names, end)
        records = [csv_text([row], case.names, end).removeprefix(header) for row in rows]
        if random_source.random() < 0.3:  # which strict readers refuse, and others read somehow
            records[-1] = random_source.choice(RAW_LINES) + end
        path = folder / "t.csv"
        path.write_text(header + "".join(records), encoding="utf-8", newline="")
        before = counted(path, case.schema)
        for _ in range(ROWS_ADDED_TO_EACH_TABLE):
            line = random_source.choice(RAW_LINES) + end
            if end == "\r" and "\r" in line.strip():
                continue  # two lines more
            place = random_source.randint(0, len(records))
            path.write_text(header + "".join([*records[:place], line, *records[place:]]), encoding="utf-8", newline="")
            compared += require_neighbours(before, counted(path, case.schema), 1, (rows, line, end))
    assert compared > neighbours / 10


def test_one_line_more_of_a_csv_file_changes_one_cell_by_one(tmp_path: Path) -> None:
    check_lines(10 * QUICK, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_ten_thousand_lines_more_of_csv_files_change_one_cell_each(tmp_path: Path) -> None:
    check_lines(FULL, tmp_path)


def check_persons(neighbours: int, folder: Path) -> None:
    """Add a person with one to three rows, of whom two are counted, to tables of many types."""
    random_source = random.Random(neighbours)
    compared = 0
    for step in range(neighbours // ROWS_ADDED_TO_EACH_TABLE):
        case, people = Case(random_source), random_source.choice(PEOPLE)
        write = list(SOURCES.values())[step % (len(SOURCES) - 1)]
        names, options = [*case.names, PERSON], {"person": PERSON, "max_rows": MAX_ROWS}
        rows = [(*row, random_source.choice(people)) for row in case.rows * 2]
        before = counted(write(rows, names, folder), case.schema, **options)
        for _ in range(ROWS_ADDED_TO_EACH_TABLE):
            somebody = random_source.choice(NEW_PEOPLE)
            added = [(*case.odd_row(), somebody) for _ in range(random_source.randint(1, 3))]
            shuffled = random_source.sample([*rows, *added], len(rows) + len(added))
            after = counted(write(shuffled, names, folder), case.schema, **options)
            compared += require_neighbours(before, after, MAX_ROWS, (case.schema, rows, added))
    assert compared > neighbours / 10


def test_one_person_more_changes_as_many_counts_as_rows_are_kept(tmp_path: Path) -> None:
    check_persons(2 * QUICK, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_ten_thousand_persons_more_change_as_many_counts_as_rows_are_kept(tmp_path: Path) -> None:
    check_persons(FULL, tmp_path)


def check_wide_tables(neighbours: int, folder: Path) -> None:
    """Count into small tables of one and two attributes: each of them changes in one cell by one."""
    random_source = random.Random(neighbours)
    tables = [(0,), (1,), (0, 1)]

    def tally(source: object, schema: Schema) -> list[Counts] | None:
        try:
            counts = counting.Source.read(source, schema, None, None, None).count_tables(tables)._counts
        except TableError:
            return None
        first, second = schema.shape
        return np.split(counts, [first, first + second])

    for step in range(neighbours // ROWS_ADDED_TO_EACH_TABLE):
        case, write = Case(random_source), list(SOURCES.values())[step % (len(SOURCES) - 1)]
        before = tally(write(case.rows, case.names, folder), case.schema)
        for _ in range(ROWS_ADDED_TO_EACH_TABLE):
            row = case.odd_row()
            after = tally(write(case.inserted(row), case.names, folder), case.schema)
            for one, other in zip(before or [], after or [], strict=False):
                require_neighbours(one, other, 1, (case.schema, case.rows, row))


def test_one_row_more_changes_one_cell_of_each_small_table(tmp_path: Path) -> None:
    check_wide_tables(2 * QUICK, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_ten_thousand_rows_more_change_one_cell_of_each_small_table(tmp_path: Path) -> None:
    check_wide_tables(FULL, tmp_path)
