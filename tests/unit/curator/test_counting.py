"""Counting: policies, refusals that never quote the table, progress, and where values of each type go."""

import traceback
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from veilcube.curator import counting, streaming
from veilcube.curator.counting import count
from veilcube.curator.placing import BinIndex, CellRule
from veilcube.errors import CapacityError, SchemaError, TableError, VeilcubeError
from veilcube.privacy import PrivacyUnit
from veilcube.schema import Attribute, Bins, Nominal, Ordinal, Schema

CANARY = "CANARY7741"


def counts_of(attribute: Attribute, values: object, kind: pa.DataType | None = None) -> list[int]:
    column = values if isinstance(values, pa.Array) else pa.array(values, kind)
    return count(pa.table({attribute.column: column}), Schema([attribute])).exact_counts.tolist()


def refusal_of(action: Callable[[], object], kind: type[VeilcubeError] = TableError) -> str:
    """Return the message, after checking that neither it nor anything chained to it holds the canary."""
    with pytest.raises(kind) as caught:
        action()
    error = caught.value
    assert error.__cause__ is None
    assert error.__context__ is None
    assert CANARY not in "".join(traceback.format_exception(error))
    message = str(error)
    assert message
    assert "\n" not in message
    assert not message.endswith(".")
    return message


class TestWhereValuesGo:
    def test_whole_numbers_fall_into_their_own_cells(self) -> None:
        assert counts_of(Ordinal("age", 17, 20), [17, 20, 20]) == [1, 0, 0, 2]

    def test_bins_are_half_open_and_the_last_is_closed(self) -> None:
        assert counts_of(Ordinal("x", edges=[0, 10, 20]), [0, 9.999, 10, 19, 20]) == [2, 3]

    def test_many_uneven_bins_agree_with_a_search(self) -> None:
        rng = np.random.default_rng(5)
        edges = np.unique(
            np.concatenate([np.logspace(-8, 8, 300), -np.logspace(-8, 8, 40), [0.1, 0.2, 0.30000000000000004]])
        )
        values = np.concatenate(
            [edges, np.nextafter(edges[1:], -np.inf), np.nextafter(edges[:-1], np.inf), rng.choice(edges, 999)]
        )
        found = counts_of(Ordinal("x", edges=edges.tolist()), values)
        bins = np.minimum(np.searchsorted(edges, values, side="right") - 1, edges.size - 2)
        assert found == np.bincount(bins, minlength=edges.size - 1).tolist()

    def test_bins_over_the_whole_line_of_floats_are_found(self) -> None:
        edges = [-1.7e308, -1e308, 0.0, 5e-324, 1e308, 1.7e308]
        assert counts_of(Ordinal("x", edges=edges), [-1.6e308, -5.0, 0.0, 5e-324, 1.0, 1.7e308]) == [1, 1, 1, 2, 1]
        assert BinIndex.of(Bins((0.0, 5e-324))).hints.size > 0

    def test_clip_moves_values_to_the_nearest_end_and_rounds_fractions_down(self) -> None:
        attribute = Ordinal("age", 0, 3, outside="clip")
        assert counts_of(attribute, [-5.0, -0.5, 1.9, 3.5, float("inf"), float("-inf")]) == [3, 1, 0, 2]

    def test_a_fraction_is_outside_whole_numbers_unless_clipped(self) -> None:
        assert counts_of(Ordinal("age", 0, 3, outside="other"), [1.0, 1.5]) == [0, 1, 0, 0, 1]

    def test_missing_values_have_the_last_cell(self) -> None:
        attribute = Ordinal("age", 0, 1, outside="other", missing="cell")
        assert counts_of(attribute, [0, None, 7, None]) == [1, 0, 1, 2]

    def test_nan_in_a_float_column_is_missing(self) -> None:
        assert counts_of(Ordinal("age", 0, 1, missing="cell"), pa.array([0.0, float("nan"), None])) == [1, 0, 2]

    def test_text_that_says_nan_or_nothing_is_missing(self) -> None:
        assert counts_of(Ordinal("age", 0, 1, missing="cell"), ["1", "NaN", " nan", "", " \t"]) == [0, 1, 4]

    def test_text_that_is_no_number_is_outside(self) -> None:
        assert counts_of(Ordinal("age", 0, 1, outside="other"), ["1", "?", "x1"]) == [0, 1, 2]

    def test_wide_number_types_are_read(self) -> None:
        attribute = Ordinal("age", 0, 2, outside="clip")
        assert counts_of(attribute, [1, 2**64 - 1], pa.uint64()) == [0, 1, 1]
        assert counts_of(attribute, [Decimal("1.00"), Decimal("2.75")], pa.decimal128(5, 2)) == [0, 1, 1]
        assert counts_of(attribute, [True, False, True]) == [1, 2, 0]
        assert counts_of(attribute, [-(2**62), 2**62]) == [1, 0, 1]

    def test_nominal_text_is_matched_without_surrounding_blanks(self) -> None:
        assert counts_of(Nominal("sex", ["F", " M "]), ["F", " F", "M\t", "M"]) == [2, 2]

    def test_nominal_values_match_integers_whole_floats_and_decimals_by_their_text(self) -> None:
        attribute = Nominal("code", ["1", "2", "2.5"], missing="cell")
        assert counts_of(attribute, [1, 2, 2, None], pa.int16()) == [1, 2, 0, 1]
        assert counts_of(attribute, [1.0, 2.5, float("nan")]) == [1, 0, 1, 1]
        assert counts_of(attribute, [Decimal("1.0"), Decimal("2.5")], pa.decimal128(5, 1)) == [1, 0, 1, 0]
        assert counts_of(Nominal("x", [2**60]), [2**60]) == [1]

    def test_nominal_values_match_booleans_in_any_case(self) -> None:
        assert counts_of(Nominal("smoker", [True, False]), [True, True, False]) == [2, 1]
        assert counts_of(Nominal("smoker", ["no", "true"], outside="other"), [True, False]) == [0, 1, 1]

    def test_nominal_values_match_booleans_written_as_text_in_any_case(self) -> None:
        texts = ["true", "TRUE", " True", "False", "FALSE", "yes"]
        assert counts_of(Nominal("smoker", [True, False], outside="other"), texts) == [3, 2, 1]
        assert counts_of(Nominal("smoker", ["True", "true"], outside="other"), ["True", "true", "TRUE"]) == [1, 1, 1]

    def test_nominal_values_match_whole_floats_written_as_text(self) -> None:
        assert counts_of(Nominal("code", ["1", "2"], outside="other"), ["1", "1.0", " 2.00", "2.5"]) == [2, 1, 1]
        assert counts_of(Nominal("version", ["1", "1.0"]), ["1", "1.0", "1.0"]) == [1, 2]

    def test_nominal_values_match_whole_floats_among_objects(self) -> None:
        values = [1.0, np.float32(2), Decimal("2.0"), 2, 2.5, None, float("inf")]
        frame = pd.DataFrame({"code": pd.Series(values, dtype=object)})
        schema = Schema([Nominal("code", ["1", "2", "2.5"], outside="other", missing="cell")])
        assert count(frame, schema).exact_counts.tolist() == [1, 3, 1, 1, 1]

    def test_nominal_values_match_dates_by_their_text(self) -> None:
        assert counts_of(Nominal("day", ["2024-01-01"], outside="other"), [date(2024, 1, 1), date(2024, 1, 2)]) == [
            1,
            1,
        ]

    def test_nominal_values_may_hold_quotes_and_other_scripts(self) -> None:
        assert counts_of(Nominal("x", ["it's", '"q"', "Ψ", "a;b"]), ["Ψ", "it's", '"q"', "Ψ"]) == [1, 1, 2, 0]

    def test_dictionaries_and_empty_types_are_read(self) -> None:
        attribute = Nominal("sex", ["F", "M"], missing="cell")
        assert counts_of(attribute, pa.array(["M", None, "F", "M"]).dictionary_encode()) == [1, 2, 1]
        assert counts_of(attribute, pa.nulls(3)) == [0, 0, 3]

    def test_time_zones_count_by_their_day_in_utc(self) -> None:
        instants = pa.array([datetime(2024, 1, 31, 23, 59, tzinfo=UTC), datetime(2024, 2, 1, tzinfo=UTC)])
        attribute = Ordinal("t", "2024-01", "2024-02", unit="month")
        assert counts_of(attribute, instants.cast(pa.timestamp("ns", "Asia/Tokyo"))) == [1, 1]

    def test_years_may_be_numbers(self) -> None:
        attribute = Ordinal("born", "1990", "1992", unit="year", outside="clip", missing="cell")
        assert counts_of(attribute, [1990, 1992, 2024], pa.int16()) == [1, 0, 2, 0]
        assert counts_of(attribute, [1990.0, float("nan"), 1e300, float("-inf")]) == [2, 0, 1, 1]

    def test_infinite_dates_lie_beyond_the_calendar(self) -> None:
        ends = pa.array([2**31 - 1, -(2**31 - 1), 0], pa.int32()).cast(pa.date32())
        for unit in ("day", "month", "year"):
            attribute = Ordinal("t", "1970-01-01", "1970-01-01", unit=unit, outside="other")
            assert counts_of(attribute, ends) == [1, 2]

    def test_two_attributes_may_read_one_column(self) -> None:
        schema = Schema([Ordinal("exact", 0, 3, column="x"), Ordinal("coarse", edges=[0, 2, 3], column="x")])
        assert count(pa.table({"x": [0, 1, 3]}), schema).exact_counts.tolist() == [[1, 0], [1, 0], [0, 0], [0, 1]]

    def test_columns_whose_names_differ_in_case_only_stay_apart(self) -> None:
        schema = Schema([Ordinal("a", 0, 1), Ordinal("upper", 0, 1, column="A")])
        table = pa.table({"A": [1, 1], "a": [0, 0]})
        assert count(table, schema).exact_counts.tolist() == [[0, 2], [0, 0]]
        assert count(table.to_pandas(), schema).exact_counts.tolist() == [[0, 2], [0, 0]]

    def test_names_that_look_like_sql_are_only_names(self, tmp_path: Path) -> None:
        name = 'x" FROM t; DROP TABLE t; --'
        table = pa.table({name: [0, 1]})
        pq.write_table(table, tmp_path / "it's [1].parquet")
        schema = Schema([Ordinal(name, 0, 1)])
        assert count(tmp_path / "it's [1].parquet", schema).exact_counts.tolist() == [1, 1]

    def test_batches_with_offsets_are_read_from_the_right_row(self) -> None:
        rule = CellRule(Ordinal("x", 0, 9, missing="cell"))
        cells = np.zeros(5, dtype=np.int64)
        rule.fold(pa.array([9, 9, 9, None, 1, None, 3, 4], pa.int64()).slice(3), cells)
        assert cells.tolist() == [10, 1, 10, 3, 4]

    def test_a_table_of_many_batches_is_counted_whole(self) -> None:
        values = np.arange(200_001) % 7
        assert counts_of(Ordinal("x", 0, 6), values) == np.bincount(values).tolist()

    def test_objects_in_pandas_are_compared_as_text(self) -> None:
        frame = pd.DataFrame({"x": pd.Series([1, "2", 2.0, None, date(2024, 1, 1)], dtype="object")})
        schema = Schema([Nominal("x", ["1", "2", "2024-01-01"], missing="cell")])
        assert count(frame, schema).exact_counts.tolist() == [1, 2, 1, 1]

    def test_pandas_categories_are_read(self) -> None:
        frame = pd.DataFrame({"x": pd.Categorical(["b", "a", None, "b"]), "y": pd.Categorical([1, "1", 2, None])})
        schema = Schema([Nominal("x", ["a", "b"], missing="cell"), Nominal("y", ["1", "2"], missing="cell")])
        assert count(frame, schema).exact_counts.tolist() == [[1, 0, 0], [1, 0, 1], [0, 1, 0]]

    def test_the_cube_is_read_only_and_tells_nothing(self) -> None:
        cube = count(pa.table({"x": [1, 1, 1]}), Schema([Ordinal("x", 0, 1)]))
        assert cube.unit == PrivacyUnit.row()
        assert not cube.exact_counts.flags.writeable
        assert "3" not in repr(cube).replace("Cube(x (2): 2 cells", "")


class TestRefusals:
    @pytest.mark.parametrize(
        ("attribute", "values", "words"),
        [
            (Ordinal("age", 17, 90), [20, 7741], ["'age'", "17..90", "outside='clip'", "outside='other'"]),
            (Ordinal("age", 17, 90), ["20", CANARY], ["'age'", "17..90", "outside='other'"]),
            (Ordinal("age", 17, 90, outside="clip"), ["20", CANARY], ["cannot be read", "outside='other'"]),
            (Ordinal("pay", edges=[0, 1.5]), [77.41], ["'pay'", "0..1.5"]),
            (Ordinal("t", "2024", "2024"), ["2024-02-01", CANARY], ["'t'", "2024-01-01..2024-12-31"]),
            (Ordinal("t", "2024", "2024", outside="clip"), [CANARY], ["cannot be read"]),
            (Nominal("sex", ["F", "M"]), ["F", CANARY], ["'sex'", "'F', 'M'", "outside='other'"]),
            (Nominal("sex", ["F"]), ["F", None], ["missing values", "'sex'", "missing='cell'"]),
            (Ordinal("age", 1, 2), [1, None], ["missing values", "missing='cell'"]),
            (Ordinal("pay", edges=[1, 2]), [1.0, None], ["missing values", "missing='cell'"]),
            (Ordinal("age", 1, 2), [1.0, None], ["missing values", "missing='cell'"]),
        ],
    )
    def test_a_refused_value_is_explained_by_public_facts_only(
        self, attribute: Attribute, values: list[object], words: list[str]
    ) -> None:
        message = refusal_of(lambda: counts_of(attribute, values))
        assert all(word in message for word in words)
        assert "7741" not in message

    def test_only_the_first_of_many_values_are_listed(self) -> None:
        message = refusal_of(lambda: counts_of(Nominal("job", list(range(1000, 2000))), ["x"]))
        assert "'1007', ..." in message

    @pytest.mark.parametrize(
        ("attribute", "column"),
        [
            (Ordinal("x", 0, 1), pa.array([date(2024, 1, 1)])),
            (Ordinal("x", "2024", "2024"), pa.array([20240101])),
            (Ordinal("x", "2024", "2024"), pa.array([1.5])),
            (Ordinal("x", "2024", "2024", unit="year"), pa.array([True])),
            (Nominal("x", ["a"]), pa.array([["a"]])),
            (Nominal("x", ["a"]), pa.array([{"b": CANARY}])),
            (Nominal("x", ["a"]), pa.array([CANARY.encode()])),
        ],
    )
    def test_a_column_of_the_wrong_type_is_refused_with_what_is_needed(
        self, attribute: Attribute, column: pa.Array
    ) -> None:
        message = refusal_of(lambda: counts_of(attribute, column))
        assert "'x' has the type" in message
        assert "needs" in message

    def test_a_type_that_the_engine_cannot_hold_is_refused(self) -> None:
        refusal_of(lambda: counts_of(Ordinal("x", 0, 1), pa.array([1], pa.decimal256(50, 2))))

    def test_values_that_are_empty_or_differ_in_blanks_are_refused(self) -> None:
        message = refusal_of(lambda: counts_of(Nominal("x", ["a", " "]), ["a"]), SchemaError)
        assert "missing='cell'" in message
        refusal_of(lambda: counts_of(Nominal("x", ["a", "a "]), ["a"]), SchemaError)

    def test_a_cube_too_large_for_memory_is_refused_with_its_size(self) -> None:
        schema = Schema([Ordinal(name, 0, 99_999) for name in "abcd"])
        message = refusal_of(lambda: count("no such file.csv", schema), CapacityError)
        assert "745,058,059,692.4 GiB" in message
        assert "coarser bins" in message

    def test_running_out_of_memory_says_so(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def exhausted(*_: object) -> None:
            raise MemoryError(CANARY)

        monkeypatch.setattr(streaming, "normalised", lambda *_: "1")
        monkeypatch.setattr("duckdb.DuckDBPyRelation.to_arrow_reader", exhausted)
        assert "memory" in refusal_of(lambda: counts_of(Ordinal("x", 0, 1), [1]), CapacityError)


class TestProgress:
    def test_parquet_reports_growing_fractions_and_ends_at_one(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(counting, "SECONDS_BETWEEN_REPORTS", 0.0)
        pq.write_table(pa.table({"x": np.zeros(200_000, dtype=np.int64)}), tmp_path / "t.parquet")
        seen: list[float | None] = []
        count(tmp_path / "t.parquet", Schema([Ordinal("x", 0, 1)]), progress=seen.append)
        fractions = [fraction for fraction in seen if fraction is not None]
        assert fractions == seen
        assert fractions == sorted(fractions)
        assert len(fractions) > 2
        assert 0 < fractions[0] < 1
        assert fractions[-1] == 1

    def test_fractions_are_whole_percent_and_hide_the_number_of_rows(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(counting, "SECONDS_BETWEEN_REPORTS", 0.0)
        seen: dict[int, list[float | None]] = {200_000: [], 200_001: []}
        for rows, reports in seen.items():
            pq.write_table(pa.table({"x": np.zeros(rows, dtype=np.int64)}), tmp_path / "t.parquet")
            count(tmp_path / "t.parquet", Schema([Ordinal("x", 0, 1)]), progress=reports.append)
        assert all(fraction == round(fraction or 0, 2) for reports in seen.values() for fraction in reports)
        assert seen[200_000] == seen[200_001]

    def test_other_sources_report_without_a_fraction(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(counting, "SECONDS_BETWEEN_REPORTS", 0.0)
        seen: list[float | None] = []
        count(pa.table({"x": [0, 1]}), Schema([Ordinal("x", 0, 1)]), progress=seen.append)
        assert seen == [None, 1.0]

    def test_reports_are_rare(self) -> None:
        seen: list[float | None] = []
        count(pa.table({"x": [0, 1]}), Schema([Ordinal("x", 0, 1)]), progress=seen.append)
        assert len(seen) <= 2
