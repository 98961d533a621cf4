"""Tables in PostgreSQL are counted there, in one statement, as our own reader counts the same rows."""

from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import pytest

import veilcube as vc
from support.declared_tables import DeclaredTable, generated
from veilcube.curator import check_table, draft_schema
from veilcube.curator.counting import Source
from veilcube.errors import TableError, VeilcubeError


def put(server: str, table: DeclaredTable, name: str = "visits") -> str:
    """Make a table in the database, and return its URL."""
    with psycopg.connect(server, autocommit=True) as connection:
        columns = ", ".join(f'"{column}" {declared}' for column, declared in table.declared.items())
        connection.execute(f"DROP TABLE IF EXISTS {name}")
        connection.execute(f"CREATE TABLE {name} ({columns})")
        with connection.cursor().copy(f"COPY {name} FROM STDIN") as copy:
            for row in table.values:
                copy.write_row(row)
    return f"{server}&table={name}"


def made(server: str, *commands: str) -> str:
    """Carry out commands that make the table ``t``, and return its URL."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS t CASCADE")
        for command in commands:
            connection.execute(command)
    return f"{server}&table=t"


def outcome(action: Callable[[], Any]) -> list[list[int]] | str:
    """Return all counts, or the beginning of the refusal, which names the column."""
    try:
        counted = action()
    except TableError as refusal:
        return str(refusal).partition("' ")[0]
    arrays = [counted.exact_counts] if isinstance(counted, vc.Cube) else counted.exact_tables
    return [array.reshape(-1).tolist() for array in arrays]


PROMISES: dict[str, Mapping[str, Any]] = {
    "rows": {},
    "persons": {"person": "Who", "max_rows": 3},
    "one row of a person": {"person": "Who", "max_rows": 1},
}


def counted(source: object, table: DeclaredTable, promise: Mapping[str, Any]) -> list[list[int]] | str:
    return outcome(lambda: vc.count(source, table.schema, **promise))


def tables_of(source: object, table: DeclaredTable) -> list[list[int]] | str:
    return outcome(
        lambda: Source.read(source, table.schema, "Who", 2, None).count_tables([(0,), (1, 3), (0, 2, 3), ()])
    )


def compare(server: str, seed: int, rows: int) -> set[str]:
    """Compare all ways of counting one generated table; return which ended in cubes, and which in refusals."""
    table = generated(seed, rows)
    url, found = put(server, table), set()
    promises = dict(PROMISES)
    if table.groups:
        promises["groups"] = {"person": "Who", "max_rows": 4, "max_groups": table.groups}
    for promise in promises.values():
        here, there = (counted(source, table, promise) for source in (table.rows, url))
        assert here == there, (seed, promise)
        found.add("refused" if isinstance(here, str) else "counted")
    here, there = (tables_of(source, table) for source in (table.rows, url))
    assert here == there, seed
    return found


@pytest.mark.parametrize("seed", range(20))
def test_cubes_are_those_of_our_own_reader_to_the_bit(server: str, seed: int) -> None:
    compare(server, seed, 300)


@pytest.mark.slow
def test_cubes_are_those_of_our_own_reader_on_many_more_tables(server: str) -> None:
    found = [compare(server, seed, 2000) for seed in range(100, 180)]
    assert sum("counted" in one for one in found) > 20
    assert sum("refused" in one for one in found) > 10


@pytest.mark.parametrize("seed", [4, 6, 9])
def test_one_row_more_or_less_moves_one_cell_by_one(server: str, seed: int) -> None:
    table = generated(seed, 60)
    url = put(server, table)
    try:
        whole = vc.count(url, table.schema).exact_counts
    except TableError:
        pytest.fail("choose a seed whose table is counted")
    for place in range(0, 60, 12):
        fewer = f"SELECT * FROM visits WHERE ctid <> (SELECT ctid FROM visits LIMIT 1 OFFSET {place})"
        change = whole - vc.count(server, table.schema, table=fewer).exact_counts
        assert sorted(change[change != 0].tolist()) == [1]


def test_rows_of_persons_and_lists_of_rows_are_those_of_our_own_reader(server: str) -> None:
    table = generated(4, 300)
    here, there = (Source.read(source, table.schema, "Who", 2, None) for source in (table.rows, put(server, table)))
    assert here.count_persons()._persons == there.count_persons()._persons
    listed = [sorted(zip(*(column.tolist() for column in one.list_rows()._rows), strict=True)) for one in (here, there)]
    assert listed[0] == listed[1]
    assert here.count().exact_persons._persons == there.count().exact_persons._persons  # type: ignore[union-attr]


class TestWhatAValueMeans:
    def test_collations_that_take_letters_for_equal_do_not_count(self, server: str) -> None:
        url = made(
            server,
            "DROP COLLATION IF EXISTS vague",
            "CREATE COLLATION vague (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
            "CREATE TABLE t (who TEXT COLLATE vague, x TEXT COLLATE vague, y INT)",
            "INSERT INTO t VALUES ('ann', 'a', 0), ('Ann', 'A', 1), ('ANN', 'b', 2)",
        )
        schema = vc.Schema([vc.Nominal("x", ["a", "A"], outside="other")])
        assert vc.count(url, schema).exact_counts.tolist() == [1, 1, 1]
        assert vc.count(url, schema, person="who", max_rows=1).exact_counts.sum() == 3

    def test_dates_beyond_every_calendar_are_outside(self, server: str) -> None:
        url = made(
            server,
            "CREATE TABLE t (d DATE, m TIMESTAMP, z TIMESTAMPTZ)",
            "INSERT INTO t VALUES ('infinity', 'infinity', 'infinity'), ('-infinity', '-infinity', '-infinity'), "
            "('0044-03-15 BC', '0044-03-15 BC', '0044-03-15 BC'), ('20000-01-01', '20000-01-01', '20000-01-01'), "
            "('2020-05-01', '2020-05-01 23:59:59.999999', '2020-05-02 01:30+02')",
        )
        for column in "dmz":
            for unit in ("day", "month", "year"):
                schema = vc.Schema([vc.Ordinal(column, "2020", "2021", unit=unit, outside="clip")])
                counts = vc.count(url, schema).exact_counts
                assert (counts[0], counts[-1]) == (3 if unit == "year" else 2, 2)
                assert counts.sum() == 5
        days = vc.count(url, vc.Schema([vc.Ordinal("z", "2020-05-01", "2020-05-01", outside="other")])).exact_counts
        assert days.tolist() == [1, 4]
        named = vc.count(url, vc.Schema([vc.Nominal("d", ["2020-05-01", "0044-03-15"], outside="other")])).exact_counts
        assert named.tolist() == [1, 0, 4]

    def test_decimals_without_bounds_are_the_nearest_floats(self, server: str) -> None:
        url = made(
            server,
            "CREATE TABLE t (x NUMERIC)",
            "INSERT INTO t VALUES ('NaN'), ('Infinity'), ('-Infinity'), (1e400), (-1e400), (1e-400), (0.1), "
            "(0.09999999999999999999999), (1), (1.00000000000000000000001), (NULL)",
        )
        whole = vc.count(url, vc.Schema([vc.Ordinal("x", 0, 1, outside="clip", missing="cell")])).exact_counts
        assert whole.tolist() == [5, 4, 2]
        bins = vc.count(
            url, vc.Schema([vc.Ordinal("x", edges=[0, 0.1, 1], outside="other", missing="cell")])
        ).exact_counts
        assert bins.tolist() == [1, 4, 4, 2]

    def test_other_types_are_texts_or_refused_by_their_declaration(self, server: str) -> None:
        url = made(
            server,
            "DROP TYPE IF EXISTS mood CASCADE",
            "CREATE TYPE mood AS ENUM ('glad', 'sad')",
            "DROP DOMAIN IF EXISTS years CASCADE",
            "CREATE DOMAIN years AS INT CHECK (VALUE > 0)",
            "CREATE TABLE t (feels mood, age years, doc JSON, span INTERVAL, list INT[], at TIME, raw BYTEA, "
            "note TEXT)",
            "INSERT INTO t (feels, age) VALUES ('sad', 3), ('glad', 4)",
        )
        assert vc.count(url, vc.Schema([vc.Nominal("feels", ["sad", "glad"])])).exact_counts.tolist() == [1, 1]
        assert vc.count(url, vc.Schema([vc.Ordinal("age", 3, 4)])).exact_counts.tolist() == [1, 1]
        for column in ("doc", "span", "list", "at", "raw"):
            with pytest.raises(TableError, match=f"the column '{column}' has the type"):
                vc.count(url, vc.Schema([vc.Nominal(column, ["a"])]))
        with pytest.raises(TableError, match="'note' has the type text, but 'note' needs numbers"):
            vc.count(url, vc.Schema([vc.Ordinal("note", 0, 1)]))
        with pytest.raises(TableError, match="'at' that names the person has the type time"):
            vc.count(url, vc.Schema([vc.Ordinal("age", 3, 4)]), person="at", max_rows=1)

    def test_settings_of_the_role_change_nothing(self, server: str) -> None:
        url = made(
            server,
            "CREATE TABLE t (d DATE, z TIMESTAMPTZ, x TEXT)",
            "INSERT INTO t VALUES ('2020-02-01', '2020-02-01 00:30+00', 'back\\slash')",
            "ALTER ROLE curator SET datestyle = 'German'",
            "ALTER ROLE curator SET timezone = 'America/New_York'",
            "ALTER ROLE curator SET standard_conforming_strings = off",
            "ALTER ROLE curator SET client_encoding = 'LATIN1'",
        )
        try:
            schema = vc.Schema(
                [
                    vc.Nominal("d", ["2020-02-01"]),
                    vc.Ordinal("z", "2020-02-01", "2020-02-02"),
                    vc.Nominal("x", ["back\\slash", "č"]),
                ]
            )
            assert vc.count(url, schema).exact_counts.reshape(-1).tolist() == [1, 0, 0, 0]
        finally:
            made(server, "ALTER ROLE curator RESET ALL")


class TestTheStatement:
    def test_it_is_one_and_its_transaction_reads_one_state_only(self, server: str, tmp_path: Path) -> None:
        logs = "ALTER ROLE curator SET log_statement = 'all'"
        url = made(server, "CREATE TABLE t (x INT)", "INSERT INTO t VALUES (0), (1)", logs)
        folder = Path(server.partition("host=")[2])
        before = (folder / "log").stat().st_size
        try:
            vc.count(url, vc.Schema([vc.Ordinal("x", 0, 1)]))
        finally:
            made(server, "ALTER ROLE curator RESET ALL")
        logged = (folder / "log").read_text()[before:]
        assert "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY" in logged
        assert logged.count("COPY (WITH given AS") == 1
        counted = logged[: logged.index("COPY (WITH given AS")]
        assert "LIMIT 0" in counted

    def test_a_select_that_writes_is_refused_and_changes_nothing(self, server: str) -> None:
        made(server, "CREATE TABLE t (x INT)", "INSERT INTO t VALUES (0), (1)")
        schema = vc.Schema([vc.Ordinal("x", 0, 1)])
        hidden = "WITH gone AS (DELETE FROM t RETURNING x) SELECT x FROM gone"
        for text in (hidden, "SELECT 1 AS x; DELETE FROM t", "DELETE FROM t"):
            with pytest.raises(TableError):
                vc.count(server, schema, table=text)
        assert vc.count(server, schema, table="SELECT x FROM t -- all of it").exact_counts.tolist() == [1, 1]

    def test_views_schemas_and_odd_names_are_found(self, server: str) -> None:
        made(
            server,
            "DROP SCHEMA IF EXISTS clinic CASCADE",
            "CREATE SCHEMA clinic",
            'CREATE TABLE clinic."Odd ""name" ("the % {x}" INT)',
            'INSERT INTO clinic."Odd ""name" VALUES (1)',
            'CREATE VIEW clinic.seen AS SELECT "the % {x}" AS x FROM clinic."Odd ""name"',
        )
        odd = vc.Schema([vc.Ordinal("the % {x}", 0, 1)])
        assert vc.count(server, odd, table='clinic.Odd "name').exact_counts.tolist() == [0, 1]
        assert vc.count(server, vc.Schema([vc.Ordinal("x", 0, 1)]), table="clinic.seen").exact_counts.tolist() == [0, 1]


class TestRefusals:
    SCHEMA = vc.Schema([vc.Ordinal("x", 0, 1)])

    def refusal(self, source: str, **more: Any) -> str:
        with pytest.raises(VeilcubeError) as caught:
            vc.count(source, self.SCHEMA, **more)
        told = str(caught.value)
        assert "sesame" not in told
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None
        return told

    def test_what_is_not_there_is_named_without_the_url(self, server: str) -> None:
        with_password = server.replace("curator@", "curator:sesame@")
        assert "lacks such a table" in self.refusal(with_password, table="nosuch")
        assert "the database's name" in self.refusal(with_password.replace("/postgres?", "/nosuch?"), table="t")
        assert "no connection to PostgreSQL" in self.refusal("postgresql://me:sesame@127.0.0.1:9/db?table=t")
        assert "no connection to PostgreSQL" in self.refusal("postgresql://me:sesame@nowhere.invalid/db?table=t")
        assert "cannot be read" in self.refusal("postgresql://me:sesame@host:port/db?table=t")
        assert "needs ?table=name" in self.refusal(with_password)
        assert "name two tables" in self.refusal(with_password + "&table=a", table="b")
        assert "without a driver" in self.refusal("postgresql+pg8000://me:sesame@host/db?table=t")
        made(server, "CREATE TABLE t (y INT)")
        assert "has no column 'x'" in self.refusal(with_password, table="t")

    def test_rights_and_limits_are_told(self, server: str) -> None:
        made(
            server, "CREATE TABLE t (x INT)", "DROP ROLE IF EXISTS guest", "CREATE ROLE guest LOGIN",
        )  # fmt: skip
        assert "may not read" in self.refusal(server.replace("curator@", "guest:sesame@"), table="t")
        slow = "SELECT 1 AS x FROM (SELECT pg_sleep(20)) AS late"
        options = "&options=-c%20statement_timeout%3D100"
        assert "cancelled the statement" in self.refusal(server + options, table=slow)

    def test_values_in_errors_of_the_server_stay_there(self, server: str) -> None:
        made(server, "CREATE TABLE t (x TEXT)", "INSERT INTO t VALUES ('sesame')")
        assert "SQLSTATE 22P02" in self.refusal(server, table="SELECT CAST(x AS INT) AS x FROM t")

    def test_a_server_that_stops_in_the_middle_leaves_no_cube(self, server: str) -> None:
        ending = "CASE WHEN pg_terminate_backend(pg_backend_pid()) THEN 1 ELSE 0 END"
        text = f"SELECT {ending} AS x FROM generate_series(1, 1000)"
        assert "count again" in self.refusal(server, table=text)

    def test_policies_refuse_in_the_words_of_our_own_reader(self, server: str) -> None:
        url = made(server, "CREATE TABLE t (who TEXT, x INT)", "INSERT INTO t VALUES ('a', 5), (' ', 1)")
        assert self.refusal(url) == self.refusal_here(pa.table({"x": [5, 1]}))
        fits = vc.Schema([vc.Ordinal("x", 0, 9)])
        with pytest.raises(TableError, match="'who' that names the person has missing values"):
            vc.count(url, fits, person="who", max_rows=1)

    def refusal_here(self, table: pa.Table) -> str:
        with pytest.raises(TableError) as caught:
            vc.count(table, self.SCHEMA)
        return str(caught.value)


def test_releases_protected_tables_checks_and_drafts_take_urls(server: str, tmp_path: Path) -> None:
    url = made(
        server,
        "CREATE TABLE t (who INT, day DATE, x INT, pay NUMERIC, doc JSON)",
        "INSERT INTO t SELECT i / 3, DATE '2020-01-01' + i % 9, i % 4, i FROM generate_series(1, 90) AS i",
    )
    schema = vc.Schema([vc.Ordinal("x", 0, 3), vc.Ordinal("day", date(2020, 1, 1), date(2020, 1, 9))])
    release = vc.release(url, schema=schema, epsilon=10**6, strategy="identity")
    assert release.count("x = 1").value == 23
    table = vc.protect(url, schema, ledger=tmp_path / "b.db", dataset="t", epsilon=10**6)
    assert abs(table.where("x = 1").noisy_count(epsilon=10**5).value - 23) < 0.5
    huge = vc.Schema([vc.Ordinal("x", 0, 10**5), vc.Ordinal("pay", edges=list(range(1000)))])
    wide = vc.protect(url, huge, ledger=tmp_path / "c.db", dataset="t", epsilon=10**6)
    assert abs(wide.where("x = 1").noisy_count(epsilon=10**5).value - 23) < 0.5
    problems = check_table(url, vc.Schema([vc.Ordinal("x", 0, 2), vc.Ordinal("doc", 0, 1), vc.Ordinal("nope", 0, 1)]))
    assert [problem.attribute for problem in problems] == ["x", "doc", "nope"]
    assert problems[0].exact_rows == 22
    draft = draft_schema(url)
    assert 'name = "day"    # DATE' in draft
    assert "# A column of type JSON cannot be an attribute" in draft
    assert np.all(vc.count(url, schema).exact_counts >= 0)
