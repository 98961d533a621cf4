"""SQL read as regions against two judges: a real database, and SQL's logic applied row by row."""

from collections.abc import Iterator

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from support.conditions import (
    OUTSIDE,
    Case,
    bins,
    calendar,
    cases,
    count_in,
    flat_values,
    grouped_values,
    literal,
    whole_numbers,
)
from veilcube.query.sql import read_sql

ORDINARY = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect(config={"threads": 1})
    yield connection
    connection.close()


def _fill(database: duckdb.DuckDBPyConnection, case: Case) -> None:
    columns = ", ".join(f"{column.name} {column.sql_type}" for column in case.columns)
    rows = ", ".join(f"({', '.join(literal(value) for value in row)})" for row in case.rows)
    database.execute(f"CREATE OR REPLACE TABLE people ({columns})")
    database.execute(f"INSERT INTO people VALUES {rows}")


@given(case=cases([whole_numbers, bins, calendar, flat_values], outside=["reject"]))
@settings(ORDINARY, max_examples=70)
def test_a_region_counts_the_rows_that_a_database_counts(database: duckdb.DuckDBPyConnection, case: Case) -> None:
    _fill(database, case)
    statement = f"SELECT COUNT(*) FROM people WHERE {case.condition.sql()}"
    (expected,) = database.execute(statement).fetchone()
    assert count_in(read_sql(case.schema, statement).region, case) == expected


@given(case=cases([whole_numbers, bins, calendar, flat_values, grouped_values], outside=["reject", "other"]))
@settings(ORDINARY, max_examples=70)
def test_groups_and_values_outside_the_schema_follow_three_valued_logic(case: Case) -> None:
    expected = sum(case.condition.judge(row) is True for row in case.rows)
    assert count_in(read_sql(case.schema, case.condition.sql()).region, case) == expected


@given(case=cases([whole_numbers, bins, calendar, flat_values], outside=["reject"]))
@settings(ORDINARY, max_examples=15)
def test_the_row_by_row_judge_agrees_with_the_database(database: duckdb.DuckDBPyConnection, case: Case) -> None:
    _fill(database, case)
    (expected,) = database.execute(f"SELECT COUNT(*) FROM people WHERE {case.condition.sql()}").fetchone()
    assert sum(case.condition.judge(row) is True for row in case.rows) == expected


@given(case=cases([whole_numbers, bins, flat_values, grouped_values], outside=["reject", "other"]))
@settings(ORDINARY, max_examples=25)
def test_a_condition_and_its_negation_share_no_cell_and_leave_only_the_unknown(case: Case) -> None:
    text = case.condition.sql()
    true = read_sql(case.schema, text).region
    false = read_sql(case.schema, f"NOT ({text})").region
    assert true.intersect(false).cells == 0
    unknown = sum(case.condition.judge(row) is None for row in case.rows)
    assert count_in(true, case) + count_in(false, case) + unknown == len(case.rows)
    if not any(value is None or value == OUTSIDE for row in case.rows for value in row) and "NULL" not in text:
        assert unknown == 0


@given(case=cases([whole_numbers, flat_values], outside=["reject"]))
@settings(ORDINARY, max_examples=15)
def test_the_groups_of_a_marginal_are_those_of_the_database(database: duckdb.DuckDBPyConnection, case: Case) -> None:
    _fill(database, case)
    column = case.columns[0]
    statement = f"SELECT {column.name}, COUNT(*) FROM people WHERE {case.condition.sql()} GROUP BY {column.name}"
    expected = {column.cell(value): count for value, count in database.execute(statement).fetchall()}
    query = read_sql(case.schema, statement)
    assert query.group_by == (column.attribute.name,)
    counts = np.zeros(column.attribute.size, dtype=np.int64)
    for row in case.rows:
        counts[column.cell(row[0])] += count_in(query.region, Case(case.columns, (row,), case.condition))
    assert {cell: count for cell, count in enumerate(counts) if count} == expected


@pytest.mark.slow
@given(case=cases([whole_numbers, bins, calendar, flat_values], outside=["reject"]))
@settings(ORDINARY, max_examples=1000)
def test_a_region_counts_what_a_database_counts_over_thousands_of_conditions(
    database: duckdb.DuckDBPyConnection, case: Case
) -> None:
    _fill(database, case)
    (expected,) = database.execute(f"SELECT COUNT(*) FROM people WHERE {case.condition.sql()}").fetchone()
    assert count_in(read_sql(case.schema, case.condition.sql()).region, case) == expected


@pytest.mark.slow
@given(case=cases([whole_numbers, bins, calendar, flat_values, grouped_values], outside=["reject", "other"]))
@settings(ORDINARY, max_examples=1000)
def test_three_valued_logic_over_thousands_of_conditions(case: Case) -> None:
    expected = sum(case.condition.judge(row) is True for row in case.rows)
    assert count_in(read_sql(case.schema, case.condition.sql()).region, case) == expected
