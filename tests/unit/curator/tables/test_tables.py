"""Sources: what each looks like when it is broken, and that no broken source lets a private value out."""

import gzip
import os
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from veilcube.curator.counting import count
from veilcube.curator.tables import Engine
from veilcube.errors import TableError
from veilcube.schema import Nominal, Ordinal, Schema

CANARY = "CANARY7741"
SCHEMA = Schema([Ordinal("age", 0, 99), Nominal("sex", ["F", "M"])])
ROWS = "age,sex\n30,F\n31,M\n31,M\n"


def refusal_of(action: Callable[[], object]) -> str:
    with pytest.raises(TableError) as caught:
        action()
    error = caught.value
    assert error.__cause__ is None
    assert error.__context__ is None
    assert CANARY not in "".join(traceback.format_exception(error))
    assert "\n" not in str(error)
    return str(error)


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def total(source: object, schema: Schema = SCHEMA, **extra: str) -> int:
    return int(count(source, schema, **extra).exact_counts.sum())


class TestPaths:
    def test_a_missing_file_is_named(self, tmp_path: Path) -> None:
        for name in ("none.csv", "none.parquet"):
            assert f"there is no file {tmp_path / name}" in refusal_of(lambda name=name: total(tmp_path / name))

    def test_a_glob_without_matches_is_named(self, tmp_path: Path) -> None:
        assert "no file matches" in refusal_of(lambda: total(str(tmp_path / "*.csv")))

    def test_an_empty_list_and_a_list_of_other_things_are_refused(self) -> None:
        assert "at least one" in refusal_of(lambda: total([]))
        assert "paths" in refusal_of(lambda: total([{"age": CANARY}]))

    def test_a_folder_is_refused_with_an_example(self, tmp_path: Path) -> None:
        assert "*.parquet" in refusal_of(lambda: total(tmp_path))

    @pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.csv.gz"])
    def test_an_empty_file_is_refused(self, tmp_path: Path, name: str) -> None:
        assert "is empty" in refusal_of(lambda: total(written(tmp_path / name, "")))

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
    def test_a_file_without_permission_is_refused(self, tmp_path: Path) -> None:
        path = written(tmp_path / "t.csv", ROWS)
        path.chmod(0)
        assert "permission" in refusal_of(lambda: total(path))

    def test_an_unknown_kind_of_file_is_refused(self, tmp_path: Path) -> None:
        message = refusal_of(lambda: total(written(tmp_path / "t.xlsx", CANARY)))
        assert "neither CSV nor Parquet" in message

    def test_wildcards_in_a_file_name_are_taken_as_they_stand(self, tmp_path: Path) -> None:
        written(tmp_path / "t1.csv", ROWS * 1 + "9,F\n" * 50)
        assert total(written(tmp_path / "t[1].csv", ROWS)) == 3
        assert total(written(tmp_path / "what?*.csv", ROWS)) == 3

    def test_a_file_that_two_patterns_match_is_counted_once(self, tmp_path: Path) -> None:
        path = written(tmp_path / "t.csv", ROWS)
        assert total([path, str(tmp_path / "*.csv")]) == 3

    def test_a_file_under_several_names_is_counted_once(self, tmp_path: Path) -> None:
        path = written(tmp_path / "t.csv", ROWS)
        (tmp_path / "folder").mkdir()
        (tmp_path / "symbolic.csv").symlink_to(path)
        (tmp_path / "hard.csv").hardlink_to(path)
        assert total([path, str(tmp_path / "folder" / ".." / "t.csv"), os.path.relpath(path)]) == 3
        assert total([path, tmp_path / "symbolic.csv"]) == 3
        assert total([tmp_path / "hard.csv", path]) == 3
        assert total(str(tmp_path / "*.csv")) == 3

    def test_equal_files_are_counted_each(self, tmp_path: Path) -> None:
        assert total([written(tmp_path / name, ROWS) for name in ("a.csv", "b.csv")]) == 6

    @pytest.mark.parametrize("path", ["a" * 5000, "a" * 5000 + "*", "duckdb:///" + "a" * 5000])
    def test_a_path_that_the_machine_cannot_look_up_is_refused(self, path: str) -> None:
        assert len(refusal_of(lambda: total(path, **({"table": "t"} if "://" in path else {})))) < 6000

    def test_files_of_both_kinds_are_counted_together(self, tmp_path: Path) -> None:
        pq.write_table(pa.table({"sex": ["F"], "age": [1.0], "more": [0]}), tmp_path / "a.parquet")
        pq.write_table(pa.table({"age": [2], "sex": ["M"]}), tmp_path / "b.parquet")
        written(tmp_path / "c.csv", "sex;age\nF;3\n")
        written(tmp_path / "d.csv", ROWS)
        assert total(str(tmp_path / "*")) == 6

    def test_a_fraction_in_one_of_several_files_is_not_rounded_away(self, tmp_path: Path) -> None:
        pq.write_table(pa.table({"age": [1], "sex": ["F"]}), tmp_path / "a.parquet")
        pq.write_table(pa.table({"age": [1.5], "sex": ["F"]}), tmp_path / "b.parquet")
        assert "outside" in refusal_of(lambda: total(str(tmp_path / "*.parquet")))

    def test_a_column_missing_from_one_of_several_files_is_found(self, tmp_path: Path) -> None:
        pq.write_table(pa.table({"age": [1], "sex": ["F"]}), tmp_path / "a.parquet")
        pq.write_table(pa.table({"age": [1]}), tmp_path / "b.parquet")
        assert "b.parquet has no column 'sex'" in refusal_of(lambda: total(str(tmp_path / "*.parquet")))


class TestCsv:
    @pytest.mark.parametrize(
        "content",
        [
            ROWS,
            ROWS.rstrip("\n"),
            ROWS.replace(",", ";"),
            ROWS.replace(",", "\t"),
            ROWS.replace(",", "|"),
            ROWS.replace("\n", "\r\n"),
            "\ufeff" + ROWS,
            "age, sex\n30, F\n31, M\n31, M\n",
            '"age","sex"\n"30","F"\n 31 ,"M"\n31,M\n',
            'note,sex,age\n"a,b",F,30\n"line\nbreak",M,31\n"say ""hi""",M,31\n',
            "age,sex\n30,F\n\n31,M\n\n31,M\n\n",
        ],
    )
    def test_common_dialects_give_the_same_counts(self, tmp_path: Path, content: str) -> None:
        found = count(written(tmp_path / "t.csv", content), SCHEMA).exact_counts
        assert (found[30, 0], found[31, 1], found.sum()) == (1, 2, 3)

    def test_gzip_is_recognised_by_content(self, tmp_path: Path) -> None:
        assert total(written(tmp_path / "t.csv.gz", gzip.compress(ROWS.encode()))) == 3
        assert total(written(tmp_path / "t.csv", gzip.compress(ROWS.encode()))) == 3

    def test_a_header_without_rows_gives_a_cube_of_zeros(self, tmp_path: Path) -> None:
        assert total(written(tmp_path / "t.csv", "age,sex\n")) == 0
        assert total(written(tmp_path / "u.csv", "age,sex")) == 0

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (f"age,sex\n1,F\n1,F,{CANARY}\n", "more or fewer fields"),
            (f"age,sex\n1,F\n{CANARY}\n", "more or fewer fields"),
            (f'age,sex\n1,"F{CANARY}\n', "line 2 of the file"),
            (f"age,sex\n1,{CANARY}é\n".encode("latin-1"), "UTF-8"),
            (f"âge,sex\n1,{CANARY}\n".encode("latin-1"), "UTF-8"),
            (f"age,sex\n1,{CANARY}\n".encode("utf-16"), "UTF-8"),
            (f"\nage,sex\n1,{CANARY}\n", "blank"),
            (gzip.compress(f"age,sex\n1,{CANARY}\n".encode() * 999)[:-9], "CSV"),
            (b"\x1f\x8b" + CANARY.encode(), "CSV"),
        ],
    )
    def test_malformed_files_are_refused_without_their_content(
        self, tmp_path: Path, content: str | bytes, words: str
    ) -> None:
        message = refusal_of(lambda: total(written(tmp_path / "t.csv", content)))
        assert words in message
        assert "t.csv" in message

    def test_a_missing_column_is_named_with_those_that_exist(self, tmp_path: Path) -> None:
        message = refusal_of(lambda: total(written(tmp_path / "t.csv", f"age,gender\n1,{CANARY}\n")))
        assert "no column 'sex'; it has age, gender" in message

    def test_a_first_line_that_may_be_a_row_is_never_shown(self, tmp_path: Path) -> None:
        message = refusal_of(lambda: total(written(tmp_path / "t.csv", f"39,{CANARY}\n50,F\n")))
        assert "header" in message

    def test_a_column_that_appears_twice_is_refused_only_if_wanted(self, tmp_path: Path) -> None:
        assert "twice" in refusal_of(lambda: total(written(tmp_path / "t.csv", "age,age,sex\n1,1,F\n")))
        assert total(written(tmp_path / "u.csv", "x,x,age,sex\n1,1,1,F\n")) == 1

    def test_rows_do_not_change_how_a_file_is_cut(self, tmp_path: Path) -> None:
        rows = "".join("a;b;c|d,F\n" for _ in range(500))
        schema = Schema([Nominal("note", ["a;b;c|d"]), Nominal("sex", ["F"])])
        assert total(written(tmp_path / "t.csv", "note,sex\n" + rows), schema) == 500


class TestParquet:
    def test_no_rows_give_a_cube_of_zeros(self, tmp_path: Path) -> None:
        pq.write_table(
            pa.table({"age": pa.array([], pa.int8()), "sex": pa.array([], pa.string())}), tmp_path / "t.parquet"
        )
        assert total(tmp_path / "t.parquet") == 0

    def test_a_file_is_recognised_by_its_content(self, tmp_path: Path) -> None:
        pq.write_table(pa.table({"age": [1], "sex": ["F"]}), tmp_path / "t.part0")
        assert total(tmp_path / "t.part0") == 1

    def test_corrupt_and_truncated_files_are_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "t.parquet"
        pq.write_table(pa.table({"age": [1] * 9999, "sex": [CANARY] * 9999}), path, use_dictionary=False)
        whole = path.read_bytes()
        for broken in (b"PAR1" + CANARY.encode(), whole[: len(whole) // 2], whole[:-5], whole[4:]):
            assert "Parquet" in refusal_of(lambda broken=broken: total(written(path, broken)))

    def test_a_damaged_page_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "t.parquet"
        pq.write_table(pa.table({"age": np.arange(9999) % 99, "sex": ["F"] * 9999}), path)
        content = bytearray(path.read_bytes())
        content[4:400] = bytes(396)
        assert "damaged" in refusal_of(lambda: total(written(path, bytes(content))))

    def test_a_missing_column_is_named_with_those_that_exist(self, tmp_path: Path) -> None:
        pq.write_table(pa.table({"age": [1], "Sex": [CANARY]}), tmp_path / "t.parquet")
        assert "no column 'sex'; did you mean 'Sex'? it has age, Sex" in refusal_of(
            lambda: total(tmp_path / "t.parquet")
        )

    def test_columns_whose_names_differ_in_case_only_stay_apart(self, tmp_path: Path) -> None:
        pq.write_table(pa.table({"AGE": [7], "age": [5], "sex": ["F"]}), tmp_path / "t.parquet")
        assert count(tmp_path / "t.parquet", SCHEMA).exact_counts[5, 0] == 1

    def test_nan_is_missing_although_statistics_leave_it_out(self, tmp_path: Path) -> None:
        pq.write_table(pa.table({"x": [1.0, float("nan")]}), tmp_path / "t.parquet")
        for attribute in (Ordinal("x", 0, 1, missing="cell"), Ordinal("x", edges=[0, 1, 2], missing="cell")):
            assert count(tmp_path / "t.parquet", Schema([attribute])).exact_counts.tolist() == [0, 1, 1]


class TestFrames:
    def test_missing_columns_are_named(self) -> None:
        for source in (pd.DataFrame({"age": [1]}), pl.DataFrame({"age": [1]}), pl.LazyFrame({"age": [1]})):
            assert "no column 'sex'; it has age" in refusal_of(lambda source=source: total(source))

    def test_very_many_columns_are_not_all_listed(self) -> None:
        message = refusal_of(lambda: total(pa.table({f"c{k}": [0] for k in range(500)})))
        assert len(message) < 400

    def test_a_repeated_column_is_refused(self) -> None:
        frame = pd.DataFrame([[1, 2, "F"]], columns=["age", "age", "sex"])
        assert "twice" in refusal_of(lambda: total(frame))
        assert "twice" in refusal_of(lambda: total(pa.table([[1], [2], ["F"]], names=["age", "age", "sex"])))

    def test_frames_without_rows_give_a_cube_of_zeros(self) -> None:
        frame = pd.DataFrame({"age": pd.Series([], dtype="int64"), "sex": pd.Series([], dtype="object")})
        assert total(frame) == 0
        assert total(pl.DataFrame(schema={"age": pl.Int8, "sex": pl.String})) == 0
        assert total(pl.LazyFrame(schema={"age": pl.Int8, "sex": pl.Categorical})) == 0
        assert total(pa.schema([("age", pa.int8()), ("sex", pa.string())]).empty_table()) == 0

    def test_polars_categories_and_enumerations_are_read(self) -> None:
        for kind in (pl.Categorical, pl.Enum(["M", "F"])):
            frame = pl.DataFrame({"age": [1, 2], "sex": ["F", "M"]}, schema_overrides={"sex": kind})
            assert count(frame, SCHEMA).exact_counts[[1, 2], [0, 1]].tolist() == [1, 1]
            assert count(frame.lazy(), SCHEMA).exact_counts[[1, 2], [0, 1]].tolist() == [1, 1]

    def test_a_lazy_frame_is_read_in_batches(self) -> None:
        frame = pl.LazyFrame({"age": np.arange(150_000) % 100}).with_columns(sex=pl.lit("F"))
        assert count(frame, SCHEMA).exact_counts[:, 0].tolist() == [1500] * 100

    def test_a_stream_that_fails_half_way_is_refused(self) -> None:
        layout = pa.schema([("age", pa.int64()), ("sex", pa.string())])

        def batches() -> Iterator[pa.RecordBatch]:
            yield pa.record_batch([[1], ["F"]], schema=layout)
            raise ValueError(CANARY)

        assert "cannot be read" in refusal_of(lambda: total(pa.RecordBatchReader.from_batches(layout, batches())))

    def test_a_lazy_frame_that_fails_is_refused(self) -> None:
        frame = pl.LazyFrame({"age": [CANARY], "sex": ["F"]}).with_columns(pl.col("age").cast(pl.Int64))
        assert "cannot be read" in refusal_of(lambda: total(frame))

    def test_a_relation_that_fails_is_refused(self) -> None:
        with duckdb.connect() as connection:
            relation = connection.sql(f"SELECT CAST(x AS INTEGER) AS age, 'F' AS sex FROM (VALUES ('{CANARY}')) v(x)")
            assert "cannot be read" in refusal_of(lambda: total(relation))

    def test_a_relation_keeps_its_connection_usable(self) -> None:
        with duckdb.connect() as connection:
            connection.execute("CREATE TABLE t AS SELECT range % 100 AS age, 'F' AS sex FROM range(200000)")
            assert total(connection.table("t")) == 200_000
            assert connection.execute("SELECT count(*) FROM t").fetchone() == (200_000,)

    @pytest.mark.parametrize("source", [7, {"age": [1]}, None, np.zeros((2, 2)), object()])
    def test_other_sources_are_refused_with_what_is_supported(self, source: object) -> None:
        assert "pandas or polars frame" in refusal_of(lambda: total(source))

    def test_spark_frames_are_refused_with_a_way_out(self) -> None:
        spark = type("DataFrame", (), {"__module__": "pyspark.sql.dataframe"})
        assert "Parquet" in refusal_of(lambda: total(spark()))


class TestDatabases:
    @pytest.fixture
    def url(self, tmp_path: Path) -> str:
        with duckdb.connect(tmp_path / "it's.db") as database:
            database.execute("CREATE TABLE people AS SELECT 30 AS age, 'F' AS sex FROM range(5)")
            database.execute("CREATE SCHEMA clinic; CREATE VIEW clinic.visits AS SELECT * FROM main.people LIMIT 2")
        return f"duckdb:///{tmp_path}/it's.db"

    @pytest.mark.parametrize("column", ["listed", "held"])
    def test_a_nested_type_is_refused_without_the_values_that_it_declares(self, tmp_path: Path, column: str) -> None:
        with duckdb.connect(tmp_path / "nested.db") as database:
            database.execute(f"CREATE TYPE kind AS ENUM ('{CANARY}')")
            database.execute("CREATE TABLE people (age INTEGER, listed kind[], held STRUCT(a kind))")
        url = f"duckdb:///{tmp_path}/nested.db"
        assert "has the type" in refusal_of(lambda: total(url, Schema([Nominal(column, ["a"])]), table="people"))
        ages = Schema([Ordinal("age", 0, 99)])
        assert "has the type" in refusal_of(lambda: count(url, ages, person=column, max_rows=1, table="people"))

    def test_tables_views_and_selects_are_counted(self, url: str) -> None:
        assert total(url, table="people") == 5
        assert total(url, table="clinic.visits") == 2
        assert total(url, table="  select * from people limit 3") == 3
        assert total(url, table="WITH p AS (FROM people) SELECT age + 1 AS age, sex FROM p;") == 5

    def test_a_url_needs_a_table_and_a_table_needs_a_url(self, url: str) -> None:
        assert "table=" in refusal_of(lambda: total(url))
        assert "database URL" in refusal_of(lambda: total(pa.table({"age": [1], "sex": ["F"]}), table="people"))

    def test_other_databases_are_refused_with_a_way_out(self) -> None:
        for url in ("mysql://me:secret@host/db", "sqlite:///x.db", "s3://bucket/x.parquet"):
            message = refusal_of(lambda url=url: total(url, table="t"))
            assert "not supported" in message
            assert "Parquet" in message
            assert "secret" not in message

    def test_what_is_not_a_database_is_refused(self, tmp_path: Path) -> None:
        assert "no file" in refusal_of(lambda: total(f"duckdb:///{tmp_path}/none.db", table="t"))
        path = written(tmp_path / "x.db", CANARY * 9999)
        assert "cannot be opened" in refusal_of(lambda: total(f"duckdb:///{path}", table="t"))

    @pytest.mark.parametrize(
        "text", ["DROP TABLE people", "SELECT 1; DROP TABLE people", "SELECT FROM WHERE", "nothing", ""]
    )
    def test_what_is_not_a_select_or_a_table_is_refused_and_changes_nothing(self, url: str, text: str) -> None:
        assert "table" in refusal_of(lambda: total(url, table=text))
        assert total(url, table="people") == 5

    def test_a_select_that_fails_on_a_row_is_refused(self, url: str) -> None:
        sql = f"SELECT CAST('{CANARY}' || age AS INTEGER) AS age, sex FROM people"
        assert "could not deliver" in refusal_of(lambda: total(url, table=sql))

    def test_missing_columns_are_named(self, url: str) -> None:
        assert "no column 'sex'; it has age" in refusal_of(lambda: total(url, table="SELECT age FROM people"))


class TestEngine:
    def test_it_leaves_no_folder_behind_even_after_a_failure(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        total(pa.table({"age": [1], "sex": ["F"]}))
        refusal_of(lambda: total(pa.table({"age": [1], "sex": ["X"]})))
        assert list(tmp_path.iterdir()) == []

    def test_its_folder_belongs_to_its_owner_alone(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        with Engine():
            (folder,) = tmp_path.iterdir()
            assert folder.stat().st_mode & 0o077 == 0

    def test_it_sees_no_variables_of_the_caller(self) -> None:
        secret = pa.table({"x": [1]})
        with Engine() as engine, pytest.raises(duckdb.Error):
            engine.query("SELECT * FROM secret")
        assert secret.num_rows == 1

    def test_it_loads_nothing_from_a_network(self) -> None:
        with Engine() as engine:
            settings = dict(engine.query("SELECT name, value FROM duckdb_settings()").fetchall())
        assert settings["autoinstall_known_extensions"] == "false"
        assert settings["autoload_known_extensions"] == "false"

    def test_codes_of_an_enumeration_are_positions(self) -> None:
        values = tuple(f"value {k}" for k in range(5000, 0, -1))
        with Engine() as engine:
            kind = engine.enumerate_values(values)
            (found,) = engine.query(
                f"SELECT list(enum_code(CAST('value ' || k AS {kind})) ORDER BY k) FROM range(1, 5001) t(k)"
            ).fetchall()
        assert found[0] == list(range(4999, -1, -1))
