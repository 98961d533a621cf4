import math
from datetime import date, datetime
from fractions import Fraction

import numpy as np
import pytest

from veilcube.errors import QueryError, SchemaError
from veilcube.schema import Bins, Calendar, WholeNumbers
from veilcube.schema.divisions import read_date, read_division

AGES = WholeNumbers(17, 90)
INCOME = Bins((0, 10_000, 20_000, 50_000))
RATES = Bins((0, 0.5, 1.5))


class TestWholeNumbers:
    @pytest.mark.parametrize(
        ("value", "before", "after"),
        [
            (17, 0, 1),
            (16, 0, 0),
            (90, 73, 74),
            (91, 74, 74),
            (30.5, 14, 14),
            (-math.inf, 0, 0),
            (math.inf, 74, 74),
            (10**400, 74, 74),
            (-(10**400), 0, 0),
            (np.int32(17), 0, 1),
            (np.float64(17.0), 0, 1),
            (Fraction(61, 2), 14, 14),
        ],
    )
    def test_counts_the_cells_below_and_at_or_below_a_value(self, value: object, before: int, after: int) -> None:
        assert AGES.boundary_before(value) == before
        assert AGES.boundary_after(value) == after
        assert AGES.range_end(value) == after

    @pytest.mark.parametrize("value", ["30", None, True, math.nan, date(2024, 1, 1), [3]])
    def test_refuses_what_is_not_a_number(self, value: object) -> None:
        with pytest.raises(QueryError, match=r"17\.\.90; write a number"):
            AGES.boundary_before(value)
        with pytest.raises(QueryError, match="write a number"):
            AGES.boundary_after(value)

    def test_describes_its_cells(self) -> None:
        assert (AGES.size, AGES.label(0), AGES.label(73), AGES.centre(1)) == (74, "17", "90", 18.0)
        assert AGES.to_dict() == {"low": 17, "high": 90}

    def test_holds_a_single_number(self) -> None:
        assert WholeNumbers(5, 5).size == 1

    def test_refuses_inverted_bounds(self) -> None:
        with pytest.raises(SchemaError, match="low 90 is above high 17; swap them"):
            WholeNumbers(90, 17)

    @pytest.mark.parametrize(("low", "high"), [(0, 2**53), (-(2**53), 0)])
    def test_refuses_bounds_that_floating_point_cannot_tell_apart(self, low: int, high: int) -> None:
        with pytest.raises(SchemaError, match=r"bounds of 2\*\*53"):
            WholeNumbers(low, high)


class TestBins:
    @pytest.mark.parametrize(
        ("value", "before"), [(-5, 0), (0, 0), (10_000, 1), (20_000, 2), (50_001, 3), (math.inf, 3), (-math.inf, 0)]
    )
    def test_an_edge_or_a_value_beyond_the_ends_has_whole_bins_below_it(self, value: float, before: int) -> None:
        assert INCOME.boundary_before(value) == before

    @pytest.mark.parametrize(("value", "after"), [(-1, 0), (9_999, 1), (19_999.0, 2), (50_000, 3), (math.inf, 3)])
    def test_the_last_whole_number_before_an_inner_edge_ends_its_bin(self, value: float, after: int) -> None:
        assert INCOME.boundary_after(value) == after

    @pytest.mark.parametrize("value", [1, 9_999, 49_999, 50_000])
    def test_before_refuses_a_value_inside_a_bin(self, value: float) -> None:
        with pytest.raises(QueryError, match=rf"^{value} cuts through the bin"):
            INCOME.boundary_before(value)

    @pytest.mark.parametrize("value", [0, 10_000, 9_998, 9_999.5, 20_000])
    def test_after_refuses_a_value_inside_a_bin(self, value: float) -> None:
        with pytest.raises(QueryError, match=rf"^{value} cuts through the bin"):
            INCOME.boundary_after(value)

    def test_the_last_bin_holds_its_upper_edge_so_the_number_before_it_cuts(self) -> None:
        with pytest.raises(QueryError, match=r"49999 cuts through the bin \[20000, 50000\]"):
            INCOME.boundary_after(49_999)

    def test_bins_of_real_numbers_have_no_last_whole_number(self) -> None:
        with pytest.raises(QueryError, match=r"-0\.5 cuts"):
            Bins((-1.0, 0.5, 1.5)).boundary_after(-0.5)

    @pytest.mark.parametrize(("value", "index"), [(5, 0), (15_000, 1), (30_000, 2), (50_000, 2)])
    def test_every_comparison_that_a_refusal_proposes_is_accepted(self, value: int, index: int) -> None:
        with pytest.raises(QueryError) as refused:
            INCOME.boundary_before(value)
        low, high = INCOME.edges[index], INCOME.edges[index + 1]
        assert f"'< {low}' or '>= {low}'" in str(refused.value)
        assert INCOME.boundary_before(low) == index
        if index < INCOME.size - 1:
            assert f"'< {high}' or '>= {high}'" in str(refused.value)
            assert INCOME.boundary_before(high) == index + 1
        else:
            assert f"'<= {high}' or '> {high}'" in str(refused.value)
            assert INCOME.boundary_after(high) == index + 1

    @pytest.mark.parametrize(("value", "end"), [(10_000, 1), (9_999, 1), (50_000, 3), (99_999, 3), (0, 0)])
    def test_an_edge_as_the_end_of_a_range_closes_the_bin_below_it(self, value: int, end: int) -> None:
        assert INCOME.range_end(value) == end

    @pytest.mark.parametrize("value", ["10000", None, True, math.nan])
    def test_refuses_what_is_not_a_number(self, value: object) -> None:
        for boundary in (INCOME.boundary_before, INCOME.boundary_after, INCOME.range_end):
            with pytest.raises(QueryError, match=r"0\.\.50000; write a number"):
                boundary(value)

    def test_describes_its_cells(self) -> None:
        assert [RATES.label(0), RATES.label(1)] == ["[0, 0.5)", "[0.5, 1.5]"]
        assert (RATES.size, RATES.centre(1), RATES.domain()) == (2, 1.0, "0..1.5")
        assert RATES.to_dict() == {"edges": [0, 0.5, 1.5]}

    @pytest.mark.parametrize(
        ("edges", "problem"),
        [
            ((), "at least two"),
            ((1,), "at least two"),
            ((1, 1), "increase strictly"),
            ((2, 1), "increase strictly"),
            ((0, math.inf), "finite"),
            ((math.nan, 1), "finite"),
            ((0, 10**400), "finite"),
        ],
    )
    def test_refuses_edges_that_bound_no_bins(self, edges: tuple[float, ...], problem: str) -> None:
        with pytest.raises(SchemaError, match=problem):
            Bins(edges)


class TestReadDate:
    @pytest.mark.parametrize(
        ("text", "first", "last"),
        [
            ("2024-03-15", date(2024, 3, 15), date(2024, 3, 15)),
            (" 2024-3-5 ", date(2024, 3, 5), date(2024, 3, 5)),
            ("2024-02", date(2024, 2, 1), date(2024, 2, 29)),
            ("2023-02", date(2023, 2, 1), date(2023, 2, 28)),
            ("1900-02", date(1900, 2, 1), date(1900, 2, 28)),
            ("2000-02", date(2000, 2, 1), date(2000, 2, 29)),
            ("2024-12", date(2024, 12, 1), date(2024, 12, 31)),
            ("9999", date(9999, 1, 1), date(9999, 12, 31)),
            (date(2024, 3, 15), date(2024, 3, 15), date(2024, 3, 15)),
            (datetime(2024, 3, 15), date(2024, 3, 15), date(2024, 3, 15)),
        ],
    )
    def test_a_date_means_its_first_to_its_last_day(self, text: object, first: date, last: date) -> None:
        assert read_date(text) == (first, last)

    @pytest.mark.parametrize("text", ["2023-02-29", "2024-13", "2024-00", "2024-03-00", "0000", "2024-04-31"])
    def test_refuses_a_day_that_does_not_exist(self, text: str) -> None:
        with pytest.raises(QueryError, match=f"'{text}' is not a day of the calendar"):
            read_date(text)

    @pytest.mark.parametrize("text", ["", "24-03-15", "2024/03/15", "2024-03-15T00:00:00", "today", 2024, None, 3.5])
    def test_refuses_what_is_not_written_as_a_date(self, text: object) -> None:
        with pytest.raises(QueryError, match="in the form '2024-03-15'"):
            read_date(text)

    def test_refuses_a_time_of_day_because_no_cell_ends_there(self) -> None:
        with pytest.raises(QueryError, match="a time of day cuts through a day"):
            read_date(datetime(2024, 3, 15, 12))


class TestCalendar:
    def test_days_run_over_a_leap_day(self) -> None:
        days = Calendar.between("2024-02-28", "2024-03-01", "day")
        assert [days.label(cell) for cell in range(days.size)] == ["2024-02-28", "2024-02-29", "2024-03-01"]

    def test_a_year_without_a_leap_day_has_one_day_less(self) -> None:
        assert Calendar.between("2023", "2023", "day").size == 365
        assert Calendar.between("2024", "2024", "day").size == 366
        assert Calendar.between("1900", "1900", "day").size == 365
        assert Calendar.between("2000", "2000", "day").size == 366

    def test_months_run_over_the_end_of_a_year(self) -> None:
        months = Calendar.between("2023-11", "2024-02", "month")
        assert [months.label(cell) for cell in range(months.size)] == ["2023-11", "2023-12", "2024-01", "2024-02"]
        assert [months.first_day(cell) for cell in (0, 3)] == [date(2023, 11, 1), date(2024, 2, 1)]
        assert [months.last_day(cell) for cell in (1, 3)] == [date(2023, 12, 31), date(2024, 2, 29)]

    def test_years_are_labelled_by_their_number(self) -> None:
        years = Calendar.between(date(1999, 6, 1), "2001", "year")
        assert [years.label(cell) for cell in range(years.size)] == ["1999", "2000", "2001"]

    def test_reaches_the_ends_of_the_calendar(self) -> None:
        whole = Calendar.between("0001", "9999", "month")
        assert (whole.size, whole.label(whole.size - 1)) == (9999 * 12, "9999-12")
        assert whole.boundary_after("9999-12-31") == whole.size
        assert whole.boundary_before("0001-01-01") == 0

    def test_bounds_grow_to_whole_units(self) -> None:
        months = Calendar.between("2024-03-15", "2024-05-02", "month")
        assert (months.low, months.high) == (date(2024, 3, 1), date(2024, 5, 31))
        assert months.domain() == "2024-03-01..2024-05-31"
        years = Calendar(date(2024, 3, 15), date(2025, 1, 1), "year")
        assert (years.low, years.high) == (date(2024, 1, 1), date(2025, 12, 31))

    @pytest.mark.parametrize(
        ("value", "before", "after"),
        [
            ("2023", 0, 12),
            ("2023-01", 0, 1),
            ("2024-02", 13, 14),
            ("2022", 0, 0),
            ("2025-06-15", 24, 24),
            ("2022-06-15", 0, 0),
        ],
    )
    def test_a_partial_date_stands_for_all_its_days(self, value: str, before: int, after: int) -> None:
        months = Calendar.between("2023", "2024", "month")
        assert months.boundary_before(value) == before
        assert months.boundary_after(value) == after
        assert months.range_end(value) == after

    @pytest.mark.parametrize("value", ["2023-01-02", "2023-06-15", "2024-12-31", date(2024, 12, 2)])
    def test_before_refuses_a_day_inside_a_unit_the_first_and_last_included(self, value: object) -> None:
        with pytest.raises(QueryError, match="cuts through a month; the cells are whole months"):
            Calendar.between("2023", "2024", "month").boundary_before(value)

    @pytest.mark.parametrize("value", ["2023-01-01", "2023-01-30", "2024-02-28", "2024-12-30"])
    def test_after_refuses_a_day_inside_a_unit_the_first_and_last_included(self, value: str) -> None:
        with pytest.raises(QueryError, match="cuts through a month"):
            Calendar.between("2023", "2024", "month").boundary_after(value)

    def test_a_month_cuts_through_a_year(self) -> None:
        years = Calendar.between("2020", "2024", "year")
        with pytest.raises(QueryError, match="2022-06 cuts through a year; the cells are whole years"):
            years.boundary_before("2022-06")
        assert years.boundary_before("2022-01") == 2
        assert years.boundary_after("2022-12") == 3

    def test_every_day_is_a_cell_of_a_calendar_of_days(self) -> None:
        days = Calendar.between("2024-01-01", "2024-12-31", "day")
        assert days.boundary_before("2024-02-29") == 59
        assert days.boundary_after("2024-02") == 60

    def test_has_no_centres(self) -> None:
        with pytest.raises(QueryError, match="dates have no sum or mean"):
            Calendar.between("2023", "2024", "month").centre(0)

    def test_is_rebuilt_from_its_plain_data(self) -> None:
        months = Calendar.between("2023-11", "2024-02", "month")
        assert months.to_dict() == {"low": "2023-11-01", "high": "2024-02-29", "unit": "month"}
        assert Calendar.between(**months.to_dict()) == months

    def test_refuses_inverted_bounds(self) -> None:
        with pytest.raises(SchemaError, match="low 2024-01-01 is after high 2023-12-31; swap them"):
            Calendar.between("2024", "2023", "day")

    def test_refuses_a_unit_it_does_not_know(self) -> None:
        with pytest.raises(SchemaError, match="unit 'week' is not known; use 'day', 'month' or 'year'"):
            Calendar.between("2023", "2024", "week")

    def test_refuses_a_bound_that_is_no_date(self) -> None:
        with pytest.raises(SchemaError, match="a date must be written as text"):
            Calendar.between(2023, 2024, "year")


class TestReadDivision:
    def test_whole_numbers_from_two_bounds(self) -> None:
        assert read_division(17, 90, None, None) == AGES
        assert read_division(np.int64(17), np.uint8(90), None, None) == AGES

    def test_numpy_bounds_become_plain_numbers(self) -> None:
        division = read_division(np.int64(17), np.int16(90), None, None)
        assert {type(bound) for bound in division.to_dict().values()} == {int}

    def test_bins_from_edges(self) -> None:
        assert read_division(None, None, [0, 10_000, 20_000, 50_000], None) == INCOME
        assert read_division(None, None, np.array([0, 0.5, 1.5]), None) == RATES

    def test_an_edge_has_one_spelling(self) -> None:
        division = read_division(None, None, [np.float64(-0.0), 10.0, np.int8(20), 2**60, 1e300], None)
        assert repr(division.to_dict()["edges"]) == f"[0, 10, 20, {float(2**60)}, 1e+300]"

    def test_a_calendar_from_dates_of_days_unless_said_otherwise(self) -> None:
        assert read_division("2023", "2024", None, "month") == Calendar.between("2023", "2024", "month")
        assert read_division(date(2023, 1, 1), "2024", None, None) == Calendar.between("2023", "2024", "day")

    @pytest.mark.parametrize(
        ("low", "high", "edges", "unit", "problem"),
        [
            (0, None, [0, 1], None, "either low and high, or edges, not both"),
            (None, 1, [0, 1], None, "not both"),
            (None, None, [0, 1], "day", "not both"),
            (None, None, None, None, "take them from public knowledge"),
            (0, None, None, None, "needs low and high"),
            (None, 5, None, None, "needs low and high"),
            (0.5, 2.5, None, None, "whole numbers or dates"),
            (0, "2024", None, None, "whole numbers or dates"),
            (False, True, None, None, "whole numbers or dates"),
            (0, True, None, None, "whole numbers or dates"),
            ("17", "90", None, None, "a date must be written"),
            (None, None, "01", None, "edges must be a list of numbers"),
            (None, None, 5, None, "edges must be a list of numbers"),
            (None, None, ["0", "1"], None, "every edge must be a finite number"),
            (None, None, [False, True], None, "every edge must be a finite number"),
            (None, None, [0, math.nan], None, "every edge must be a finite number"),
            (None, None, [0, math.inf], None, "every edge must be a finite number"),
            (None, None, [0, 10**400], None, "every edge must be a finite number"),
        ],
    )
    def test_refuses_arguments_that_describe_no_line(
        self, low: object, high: object, edges: object, unit: object, problem: str
    ) -> None:
        with pytest.raises(SchemaError, match=problem):
            read_division(low, high, edges, unit)
