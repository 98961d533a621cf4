"""The person cap: at most ``max_rows`` rows of each person, chosen from this person's rows alone."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from random import Random

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

from veilcube.curator.counting import count
from veilcube.curator.tables import engine
from veilcube.errors import PrivacyError, TableError
from veilcube.privacy import PrivacyUnit
from veilcube.schema import Nominal, Ordinal, Schema

SCHEMA = Schema(
    [
        Ordinal("x", 0, 3, outside="other", missing="cell"),
        Ordinal("y", edges=[-1, 0, 1, 5], outside="clip", missing="cell"),
        Nominal("z", ["a", "b"], outside="other", missing="cell"),
    ]
)

Row = tuple[str, int | None, float | None, str | None]

rows_of_people = st.lists(
    st.tuples(
        st.sampled_from(["ann", "bob", "cyd", "dan"]),
        st.none() | st.integers(0, 5),
        st.none() | st.sampled_from([-0.0, 0.0, 0.5, 2.0, float("nan")]),
        st.none() | st.sampled_from(["a", "b", "b ", "c"]),
    ),
    max_size=24,
)


def table_of(rows: Sequence[Row]) -> pa.Table:
    kinds = {"who": pa.string(), "x": pa.int64(), "y": pa.float64(), "z": pa.string()}
    columns = zip(*rows, strict=True) if rows else [[]] * len(kinds)
    return pa.table(
        {name: pa.array(list(column), kind) for (name, kind), column in zip(kinds.items(), columns, strict=True)}
    )


def capped(source: object, max_rows: int, schema: Schema = SCHEMA) -> np.ndarray:
    return count(source, schema, person="who", max_rows=max_rows).exact_counts


def check_that_nobody_else_is_touched(rows: list[Row], max_rows: int) -> None:
    everyone = capped(table_of(rows), max_rows)
    gone = rows[0][0] if rows else "ann"
    others = capped(table_of([row for row in rows if row[0] != gone]), max_rows)
    alone = capped(table_of([row for row in rows if row[0] == gone]), max_rows)
    assert np.array_equal(everyone - others, alone)
    assert alone.sum() == min(max_rows, sum(row[0] == gone for row in rows))


def check_that_order_does_not_matter(rows: list[Row], max_rows: int, random: Random) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)
    assert np.array_equal(capped(table_of(rows), max_rows), capped(table_of(shuffled), max_rows))


class TestPrivacy:
    @settings(max_examples=12, deadline=None, derandomize=True)
    @given(rows_of_people, st.integers(1, 4))
    def test_removing_a_person_takes_away_at_most_max_rows_and_touches_nobody_else(
        self, rows: list[Row], max_rows: int
    ) -> None:
        check_that_nobody_else_is_touched(rows, max_rows)

    @pytest.mark.slow
    @settings(max_examples=200, deadline=None)
    @given(rows_of_people, st.integers(1, 4))
    def test_removing_a_person_from_many_fresh_tables_touches_nobody_else(self, rows: list[Row], max_rows: int) -> None:
        check_that_nobody_else_is_touched(rows, max_rows)

    @settings(max_examples=12, deadline=None, derandomize=True)
    @given(rows_of_people, st.integers(1, 3), st.randoms(use_true_random=False))
    def test_the_order_of_rows_does_not_matter(self, rows: list[Row], max_rows: int, random: Random) -> None:
        check_that_order_does_not_matter(rows, max_rows, random)

    @pytest.mark.slow
    @settings(max_examples=200, deadline=None)
    @given(rows_of_people, st.integers(1, 3), st.randoms(use_true_random=False))
    def test_the_order_of_rows_does_not_matter_on_many_fresh_tables(
        self, rows: list[Row], max_rows: int, random: Random
    ) -> None:
        check_that_order_does_not_matter(rows, max_rows, random)

    def test_the_choice_is_the_documented_digest_on_every_machine(self) -> None:
        rng = np.random.default_rng(3)
        people, ages = rng.integers(0, 40, 600), rng.integers(0, 10, 600)
        by_person: dict[int, list[int]] = defaultdict(list)
        for person, age in zip(people.tolist(), ages.tolist(), strict=True):
            by_person[person].append(age)
        expected: Counter[int] = Counter()
        for person, own in by_person.items():
            running: Counter[int] = Counter()
            digested = []
            for age in own:
                running[age] += 1
                text = "\x1f".join([str(person), str(age), str(running[age])])
                digested.append((hashlib.sha256(text.encode()).hexdigest(), age))
            expected.update(age for _, age in sorted(digested)[:4])
        found = capped(pa.table({"who": people, "age": ages}), 4, Schema([Ordinal("age", 0, 9)]))
        assert found.tolist() == [expected[age] for age in range(10)]

    def test_every_row_of_a_person_has_the_same_chance(self) -> None:
        people = np.repeat(np.arange(6000), 3)
        values = np.tile([0, 0, 1], 6000)
        kept = capped(pa.table({"who": people, "x": values}), 1, Schema([Ordinal("x", 0, 1)]))
        # One of three equal chances: 2000 expected with a standard deviation of 37; equal chances for values give 3000.
        assert kept.sum() == 6000
        assert abs(int(kept[1]) - 2000) < 150

    def test_zeros_of_either_sign_are_one_value(self) -> None:
        schema = Schema([Ordinal("y", edges=[-1, 0, 1, 5])])
        for size in (3, 5, 8):
            signs = [0.0, -0.0] * size
            tables = [pa.table({"who": [1] * (3 * size), "y": zeros + [2.0] * size}) for zeros in (signs, signs[::-1])]
            assert capped(tables[0], size, schema).tolist() == capped(tables[1], size, schema).tolist()


class TestKeptRows:
    def test_no_more_than_max_rows_of_each_person_are_counted(self) -> None:
        table = pa.table({"who": [1] * 5 + [2] * 2, "x": [0, 1, 2, 3, 3, 0, 0]})
        schema = Schema([Ordinal("x", 0, 3)])
        assert [int(capped(table, most, schema).sum()) for most in (1, 2, 3, 5, 99)] == [2, 4, 5, 7, 7]
        assert capped(table, 99, schema).tolist() == count(table, schema).exact_counts.tolist()

    def test_the_cube_speaks_of_persons(self) -> None:
        cube = count(table_of([("ann", 1, 1.0, "a")]), SCHEMA, person="who", max_rows=3)
        assert cube.unit == PrivacyUnit.person("who", 3)

    def test_every_source_keeps_the_same_rows(self, tmp_path: Path) -> None:
        rng = np.random.default_rng(8)
        size = 400
        rows = [
            (f"p{who}", int(x), float(y), "ab"[z])
            for who, x, y, z in zip(
                rng.integers(0, 50, size),
                rng.integers(0, 5, size),
                rng.integers(-2, 9, size) / 2,
                rng.integers(0, 2, size),
                strict=True,
            )
        ]
        table = table_of(rows)
        expected = capped(table, 3)
        pq.write_table(table.slice(0, 150), tmp_path / "a.parquet")
        pq.write_table(table.slice(150), tmp_path / "b.parquet")
        table.slice(150).to_pandas().to_csv(tmp_path / "c.csv", index=False)
        table.to_pandas().to_csv(tmp_path / "whole.csv", index=False)
        sources: list[object] = [
            str(tmp_path / "*.parquet"),
            [tmp_path / "c.csv", tmp_path / "a.parquet"],
            tmp_path / "whole.csv",
            table.to_pandas(),
            pl.from_arrow(table).lazy(),
            duckdb.from_arrow(table),
        ]
        for source in sources:
            assert np.array_equal(capped(source, 3), expected)

    def test_identities_are_compared_without_surrounding_blanks(self) -> None:
        table = pa.table({"who": ["ann", " ann", "ann\t", "Ann"], "x": [0, 1, 2, 3]})
        assert capped(table, 1, Schema([Ordinal("x", 0, 3)])).sum() == 2

    def test_identities_may_be_floats_without_a_fraction(self) -> None:
        schema = Schema([Ordinal("x", 0, 9)])
        values = list(range(10))
        whole = capped(pa.table({"who": [1, 2] * 5, "x": values}), 2, schema)
        assert np.array_equal(capped(pa.table({"who": [1.0, 2.0] * 5, "x": values}), 2, schema), whole)

    def test_large_tables_give_the_same_choice_on_disk_as_in_memory(self, monkeypatch: pytest.MonkeyPatch) -> None:
        rng = np.random.default_rng(2)
        table = pa.table({"who": rng.integers(0, 40_000, 400_000), "x": rng.integers(0, 50, 400_000)})
        schema = Schema([Ordinal("x", 0, 49)])
        expected = capped(table, 3, schema)
        monkeypatch.setattr(engine, "MEMORY_LIMIT", "40MB")
        assert np.array_equal(capped(table, 3, schema), expected)


X = Schema([Ordinal("x", 0, 9)])


def rows_kept(*parts: pa.Array, folder: Path) -> int:
    """Count Parquet files, one for each array of persons, with one row kept of each person."""
    for place, who in enumerate(parts):
        pq.write_table(pa.table({"who": who, "x": np.zeros(len(who), dtype=np.int64)}), folder / f"{place}.parquet")
    return int(capped(str(folder / "*.parquet"), 1, X).sum())


class TestOnePersonWrittenInSeveralWays:
    def test_in_csv_files(self, tmp_path: Path) -> None:
        (tmp_path / "a.csv").write_text("who,x\n7,0\n7,1\n7.0,2\n007,3\n")
        (tmp_path / "b.csv").write_text("who,x\n+7,0\n 7 ,1\n7.,2\n007.00,4\n")
        assert capped(str(tmp_path / "*.csv"), 1, X).sum() == 1

    def test_in_parquet_and_csv_files(self, tmp_path: Path) -> None:
        pq.write_table(pa.table({"who": [7], "x": [0]}), tmp_path / "a.parquet")
        pq.write_table(pa.table({"who": pa.array([7], pa.decimal128(9, 2)), "x": [0]}), tmp_path / "b.parquet")
        (tmp_path / "a.csv").write_text("who,x\n7.0,0\n")
        assert capped(str(tmp_path / "*.*"), 1, X).sum() == 1

    def test_among_objects(self) -> None:
        who = pd.Series([7, 7.0, "7", "7.0", np.int8(7), np.float32(7), Decimal("7.00")], dtype=object)
        assert capped(pd.DataFrame({"who": who, "x": 0}), 1, X).sum() == 1

    @pytest.mark.parametrize("number", [0, -7, 10**15, 2**53 - 1])
    def test_as_integer_float_and_text(self, tmp_path: Path, number: int) -> None:
        texts = [str(number), f"{number}.0", f"0{number}".replace("0-", "-0")]
        assert rows_kept(pa.array([number]), pa.array([float(number)]), pa.array(texts), folder=tmp_path) == 1

    def test_as_zero_with_either_sign(self, tmp_path: Path) -> None:
        assert rows_kept(pa.array([0]), pa.array([-0.0]), pa.array(["-0", "000", "-0.0"]), folder=tmp_path) == 1

    def test_as_a_number_with_decimals(self, tmp_path: Path) -> None:
        decimals = pa.array([Decimal("7.5")], pa.decimal128(9, 2))
        assert rows_kept(pa.array([7.5]), pa.array(["7.50", "07.5"]), decimals, folder=tmp_path) == 1

    def test_but_different_numbers_and_words_stay_apart(self, tmp_path: Path) -> None:
        names = ["0E1", "0E2", "1_000", "1000", "7e0", "nan", "0x7"]
        long = ["1" * 60, "1" * 59 + "2", str(2**62), str(2**62 + 1)]
        texts = ["7", "-7", "70", "7.5", "8", "a7", "007a", "inf", *names, *long]
        assert rows_kept(pa.array(texts), folder=tmp_path) == len(texts)

    def test_and_ids_that_became_floats_and_lost_digits_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(TableError, match="have lost digits"):
            rows_kept(pa.array([2.0**53]), folder=tmp_path)


class TestRefusals:
    @pytest.mark.parametrize("missing", [None, "", "  "])
    def test_a_row_without_a_person_is_refused(self, missing: str | None) -> None:
        table = pa.table({"who": ["ann", missing], "x": [0, 1]})
        with pytest.raises(TableError, match="'who' that names the person has missing values"):
            capped(table, 1, Schema([Ordinal("x", 0, 1)]))

    def test_a_person_that_is_nan_is_refused(self) -> None:
        frame = pd.DataFrame({"who": [1.0, float("nan")], "x": [0, 1]})
        with pytest.raises(TableError, match="missing values"):
            capped(frame, 1, Schema([Ordinal("x", 0, 1)]))

    def test_a_missing_person_column_is_named(self) -> None:
        with pytest.raises(TableError, match="no column 'who'; it has x"):
            capped(pa.table({"x": [0]}), 1, Schema([Ordinal("x", 0, 1)]))

    def test_a_person_column_of_a_nested_type_is_refused(self) -> None:
        with pytest.raises(TableError, match="column of text or numbers"):
            capped(pa.table({"who": [["ann"]], "x": [0]}), 1, Schema([Ordinal("x", 0, 1)]))

    @pytest.mark.parametrize(
        ("person", "max_rows"), [("who", None), (None, 3), ("who", 0), ("who", -1), ("who", 1.5), ("who", True)]
    )
    def test_person_and_max_rows_go_together(self, person: str | None, max_rows: object) -> None:
        with pytest.raises(PrivacyError):
            count(pa.table({"who": [1], "x": [0]}), Schema([Ordinal("x", 0, 1)]), person=person, max_rows=max_rows)  # type: ignore[arg-type]
