"""Counting against a plain Python counter: every attribute kind, every policy, every kind of column, every source."""

import csv
import gzip
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from veilcube.curator.counting import count
from veilcube.errors import TableError
from veilcube.schema import Attribute, Bins, Calendar, Nominal, Ordinal, Schema, WholeNumbers

BLANKS = " \t\n\r\v\f"


class RefusedError(Exception):
    pass


class Unreadable:
    """A value that is there but is neither a number nor a date."""


# ---- the brute-force counter: slow, obvious, and written without looking at the fast one --------------------------


def brute_force(schema: Schema, rows: list[tuple[object, ...]]) -> np.ndarray:
    counts = np.zeros(schema.shape, dtype=np.int64)
    for row in rows:
        counts[tuple(cell_of(attribute, value) for attribute, value in zip(schema, row, strict=True))] += 1
    return counts


def cell_of(attribute: Attribute, value: object) -> int:
    value = value.strip(BLANKS) if isinstance(value, str) else value
    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        return refuse_unless(attribute.missing_cell)
    if isinstance(attribute, Nominal):
        return (
            attribute.values.index(str(value))
            if str(value) in attribute.values
            else refuse_unless(attribute.other_cell)
        )
    assert isinstance(attribute, Ordinal)
    division = attribute.division
    number = date_number(division, value) if isinstance(division, Calendar) else plain_number(value)
    if number is None:
        return refuse_unless(attribute.missing_cell)
    if isinstance(number, Unreadable):
        return refuse_unless(attribute.other_cell)
    cell = exact_cell(division, number)
    if cell is not None:
        return cell
    return clipped_cell(division, number) if attribute.outside == "clip" else refuse_unless(attribute.other_cell)


def refuse_unless(cell: int | None) -> int:
    if cell is None:
        raise RefusedError
    return cell


def plain_number(value: object) -> float | Unreadable | None:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (ValueError, OverflowError):
        return Unreadable()
    return None if math.isnan(number) else number


def date_number(calendar: Calendar, value: object) -> float | Unreadable:
    if isinstance(value, int):
        return value
    if isinstance(value, str):
        pieces = value.split(" ")[0].split("-")
        if len(pieces) < {"year": 1, "month": 2, "day": 3}[calendar.unit]:
            return Unreadable()
        try:
            value = date(*(int(piece) for piece in (*pieces, "1", "1")[:3]))
        except ValueError:
            return Unreadable()
    assert isinstance(value, date)
    return calendar.number_of(value)


def exact_cell(division: object, number: float) -> int | None:
    if isinstance(division, Bins):
        inside = [k for k in range(division.size) if division.edges[k] <= number < division.edges[k + 1]]
        return inside[0] if inside else division.size - 1 if number == division.edges[-1] else None
    low, high = ends_of(division)
    return int(number) - low if low <= number <= high and number == math.floor(number) else None


def clipped_cell(division: object, number: float) -> int:
    if isinstance(division, Bins):
        return 0 if number < division.edges[0] else division.size - 1
    low, high = ends_of(division)
    return high - low if number > high else 0 if number < low else math.floor(number) - low


def ends_of(division: object) -> tuple[int, int]:
    if isinstance(division, WholeNumbers):
        return division.low, division.high
    assert isinstance(division, Calendar)
    return division.first_number, division.number_of(division.high)


# ---- random schemas and columns: hypothesis gives the seed, so that every choice is as likely as its neighbours ------

Pool = tuple[pa.DataType, list[object]]

INTEGERS: Pool = (pa.int64(), list(range(-9, 10)))
SMALL_INTEGERS: Pool = (pa.int8(), list(range(-9, 10)))
FLOATS: Pool = (
    pa.float64(),
    [-9.0, -1.5, -1.0, -0.0, 0.0, 0.5, 1.0, 2.0, 2.5, 3.0, 7.0, math.inf, -math.inf, math.nan],
)
NUMBER_TEXTS: Pool = (
    pa.string(),
    ["-9", "-1", "0", " 1", "1.0 ", "2.5", "3e0", "\t2", "7", "", "  ", "x", "1-2", "nan", "inf"],
)
READABLE_NUMBER_TEXTS: Pool = (
    pa.string(),
    ["-9", "-1", "0", " 1", "1.0 ", "2.5", "3e0", "\t2", "7", "", "nan", "-inf"],
)
DATES: Pool = (pa.date32(), [date(2023, 11, 1) + timedelta(days=11 * step) for step in range(44)])
TIMES: Pool = (pa.timestamp("us"), [datetime(2023, 11, 1, 23, 59) + timedelta(days=11 * step) for step in range(44)])
READABLE_DATE_TEXTS: Pool = (
    pa.string(),
    ["2024-02-29", " 2024-03-01", "2024-1-5", "2024-07-01 10:20:30", "2030-01-01", ""],
)
DATE_TEXTS: Pool = (
    pa.string(),
    ["2024-02-29", "2023-02-29", "2024-03", "2024", "2030", "", "soon", "2024-06-31", "20240301"],
)
YEARS: Pool = (pa.int32(), list(range(2022, 2027)))
NAMES: Pool = (pa.string(), ["a", "b ", " c", "d", "", " ", "A", "it's"])
CODES: Pool = (pa.int64(), list(range(5)))


def whole_numbers(random: Random, name: str) -> tuple[Attribute, Pool]:
    low = random.randint(-10, 4)
    attribute = Ordinal(name, low, low + random.randint(0, 14), **policies(random))
    return attribute, random.choice([INTEGERS, SMALL_INTEGERS, FLOATS, NUMBER_TEXTS, READABLE_NUMBER_TEXTS])


def bins(random: Random, name: str) -> tuple[Attribute, Pool]:
    edges = sorted(random.sample([-10, -1.5, -1, 0, 0.25, 1, 2, 2.5, 7, 100, 1e9], random.randint(2, 7)))
    return Ordinal(name, edges=edges, **policies(random)), random.choice(
        [INTEGERS, FLOATS, NUMBER_TEXTS, READABLE_NUMBER_TEXTS]
    )


def calendars(random: Random, name: str) -> tuple[Attribute, Pool]:
    unit = random.choice(["day", "month", "year"])
    low = date(2023, 12, 1) + timedelta(days=random.randint(0, 200))
    attribute = Ordinal(name, low, low + timedelta(days=random.randint(0, 300)), unit=unit, **policies(random))
    return attribute, random.choice([DATES, TIMES, DATE_TEXTS, READABLE_DATE_TEXTS] + [YEARS] * (unit == "year"))


def nominals(random: Random, name: str) -> tuple[Attribute, Pool]:
    values = random.sample(["a", "b", "c", "it's", "0", "1", "2"], random.randint(1, 7))
    attribute = Nominal(name, values, **(policies(random) | {"outside": random.choice(["other"] * 7 + ["reject"])}))
    return attribute, random.choice([NAMES, CODES])


def policies(random: Random) -> dict[str, Any]:
    """Choose where stray values go; refusals are the least telling outcome, so they are the rarest."""
    return {
        "outside": random.choice(["other", "clip"] * 4 + ["reject"]),
        "missing": random.choice(["cell"] * 7 + ["reject"]),
    }


def random_table(random: Random) -> tuple[Schema, pa.Table]:
    kinds = random.choices([whole_numbers, bins, calendars, nominals], k=random.randint(1, 3))
    chosen = [kind(random, f"attribute {place}") for place, kind in enumerate(kinds)]
    rows = random.choice([0, 1, 30, 30, 30, 30])
    arrays = {
        attribute.column: pa.array(random.choices([*pool, None], k=rows), kind) for attribute, (kind, pool) in chosen
    }
    return Schema([attribute for attribute, _ in chosen]), pa.table(arrays)


counted_tables = st.integers(0, 2**64).map(lambda seed: random_table(Random(seed)))


def outcome(action: Callable[[], np.ndarray]) -> list[int] | str:
    try:
        return [int(number) for number in action().ravel()]
    except (RefusedError, TableError):
        return "refused"


def expected(schema: Schema, table: pa.Table) -> list[int] | str:
    columns = [table.column(attribute.column).to_pylist() for attribute in schema]
    return outcome(lambda: brute_force(schema, list(zip(*columns, strict=True))))


# ---- the properties -----------------------------------------------------------------------------------------------


@settings(max_examples=80, deadline=None, derandomize=True)
@given(counted_tables)
def test_counts_or_refuses_exactly_as_the_brute_force_counter(case: tuple[Schema, pa.Table]) -> None:
    schema, table = case
    assert outcome(lambda: count(table, schema).exact_counts) == expected(schema, table)


@pytest.mark.slow
@settings(max_examples=600, deadline=None)
@given(counted_tables)
def test_counts_as_the_brute_force_counter_on_many_fresh_tables(case: tuple[Schema, pa.Table]) -> None:
    schema, table = case
    assert outcome(lambda: count(table, schema).exact_counts) == expected(schema, table)


@settings(max_examples=6, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(counted_tables)
def test_every_source_gives_the_same_cube(case: tuple[Schema, pa.Table]) -> None:
    compare_sources(*case)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(counted_tables)
def test_every_source_gives_the_same_cube_on_many_fresh_tables(case: tuple[Schema, pa.Table]) -> None:
    compare_sources(*case)


def compare_sources(schema: Schema, table: pa.Table) -> None:
    with TemporaryDirectory() as folder, every_source(table, Path(folder)) as sources:
        found = {
            kind: outcome(lambda source=source, name=name: count(source, schema, table=name).exact_counts)
            for kind, (source, name) in sources.items()
        }
    assert found == dict.fromkeys(found, expected(schema, table))


@contextmanager
def every_source(table: pa.Table, folder: Path) -> Iterator[dict[str, tuple[object, str | None]]]:
    pq.write_table(table, folder / "whole.parquet")
    half = table.num_rows // 2
    pq.write_table(table.slice(0, half), folder / "half1.parquet")
    # The other half has its columns in another order.
    pq.write_table(table.slice(half).select(table.column_names[::-1]), folder / "half2.parquet")
    write_csv(table.slice(half), folder / "half2.csv")
    write_csv(table, folder / "whole.csv")
    (folder / "whole.csv.gz").write_bytes(gzip.compress((folder / "whole.csv").read_bytes()))
    with duckdb.connect(folder / "tables.db") as database:
        database.register("given", table)
        database.execute("CREATE TABLE people AS SELECT * FROM given")
    with duckdb.connect(":memory:") as connection:
        frame = pl.from_arrow(table)
        yield {
            "parquet": (folder / "whole.parquet", None),
            "parquet glob": (str(folder / "half*.parquet"), None),
            "csv": (str(folder / "whole.csv"), None),
            "csv.gz": ([folder / "whole.csv.gz"], None),
            "mixed list": ([folder / "half1.parquet", folder / "half2.csv"], None),
            "pandas": (table.to_pandas(), None),
            "polars": (frame, None),
            "polars lazy": (frame.lazy(), None),
            "arrow reader": (table.to_reader(2), None),
            "arrow dataset": (pads.dataset(folder / "whole.parquet"), None),
            "duckdb relation": (connection.from_arrow(table), None),
            "duckdb table": (f"duckdb:///{folder}/tables.db", "people"),
            "duckdb select": (f"duckdb:///{folder}/tables.db", "SELECT * FROM people"),
        }


def write_csv(table: pa.Table, path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table.column_names)
        writer.writerows(zip(*(column.to_pylist() for column in table.columns), strict=True))
