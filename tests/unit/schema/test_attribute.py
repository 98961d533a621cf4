from datetime import date

import numpy as np
import pytest

from veilcube.errors import QueryError, SchemaError
from veilcube.schema import Attribute, Nominal, Ordinal
from veilcube.schema.attribute import read_attribute

AGE = Ordinal("age", 17, 90)
JOB = Nominal("job", hierarchy={"Care": ["Nurse", "Aide"], "Office": {"Law": ["Judge"], "IT": ["Dev", "Ops"]}})


class TestCells:
    @pytest.mark.parametrize(
        ("outside", "missing", "size", "other", "absent"),
        [
            ("reject", "reject", 3, None, None),
            ("other", "reject", 4, 3, None),
            ("reject", "cell", 4, None, 3),
            ("other", "cell", 5, 3, 4),
        ],
    )
    @pytest.mark.parametrize("kind", ["ordinal", "nominal"])
    def test_stray_cells_follow_the_regular_ones(
        self, kind: str, outside: str, missing: str, size: int, other: int | None, absent: int | None
    ) -> None:
        facts = {"low": 1, "high": 3} if kind == "ordinal" else {"values": ["1", "2", "3"]}
        attribute = read_attribute({"name": "a", "kind": kind, "outside": outside, "missing": missing, **facts})
        assert (attribute.regular_size, attribute.size) == (3, size)
        assert (attribute.other_cell, attribute.missing_cell) == (other, absent)
        labels = ["1", "2", "3"] + ["(other)"] * (other is not None) + ["(missing)"] * (absent is not None)
        assert attribute.labels() == labels

    def test_clipping_adds_no_cell(self) -> None:
        assert Ordinal("age", 17, 90, outside="clip").size == 74

    def test_a_mask_covers_the_whole_axis(self) -> None:
        mask = Ordinal("a", 0, 2, missing="cell").mask(1, 3)
        assert mask.tolist() == [False, True, True, False]
        assert AGE.mask(5, 5).sum() == 0

    def test_the_repr_says_how_many_cells(self) -> None:
        assert repr(AGE) == "Ordinal('age', 74 cells)"
        assert repr(Nominal("sex", ["F", "M"], missing="cell")) == "Nominal('sex', 3 cells)"

    def test_is_read_from_the_column_of_its_name_unless_said_otherwise(self) -> None:
        assert AGE.column == "age"
        assert Ordinal("age", 17, 90, column="AGE_YEARS").column == "AGE_YEARS"

    def test_keeps_its_policies(self) -> None:
        attribute = Ordinal("age", 17, 90, outside="clip", missing="cell")
        assert (attribute.outside, attribute.missing) == ("clip", "cell")

    def test_the_common_base_describes_no_cells(self) -> None:
        base = Attribute("a", None, "reject", "reject", ("reject",))
        for ask in (base.labels, base.to_dict, lambda: base.cells_of(1), lambda: base.size):
            base.kind = "none"
            with pytest.raises(NotImplementedError):
                ask()
        with pytest.raises(NotImplementedError):
            base._regular_label(0)


class TestOrdinal:
    @pytest.mark.parametrize(("value", "cells"), [(17, (0, 1)), (90, (73, 74)), (np.int64(18), (1, 2)), (18.0, (1, 2))])
    def test_a_value_means_its_cell(self, value: float, cells: tuple[int, int]) -> None:
        assert AGE.cells_of(value) == cells

    @pytest.mark.parametrize("value", [16, 91, 30.5])
    def test_refuses_a_value_without_a_cell(self, value: float) -> None:
        with pytest.raises(QueryError, match=rf"'age' has no cell for {value}; its domain is 17\.\.90"):
            AGE.cells_of(value)

    def test_names_itself_when_a_comparison_is_refused(self) -> None:
        with pytest.raises(QueryError, match="attribute 'age': a value of the wrong type"):
            AGE.before("thirty")
        with pytest.raises(QueryError, match="attribute 'income': 5 cuts through the bin"):
            Ordinal("income", edges=[0, 10]).cells_between(0, 5)

    @pytest.mark.parametrize(
        ("low", "high", "cells"),
        [
            (30, 39, (13, 23)),
            (None, 17, (0, 1)),
            (90, None, (73, 74)),
            (None, None, (0, 74)),
            (-5, 500, (0, 74)),
            (np.int16(30), np.float32(39), (13, 23)),
        ],
    )
    def test_a_range_is_inclusive_and_may_be_open(self, low: object, high: object, cells: tuple[int, int]) -> None:
        assert AGE.cells_between(low, high) == cells

    @pytest.mark.parametrize(("low", "high"), [(39, 30), (91, 99), (0, 16), (30.2, 30.8)])
    def test_refuses_an_empty_range(self, low: float, high: float) -> None:
        with pytest.raises(QueryError, match=r"on 'age' is inverted or outside the domain 17\.\.90; write \(low, high"):
            AGE.cells_between(low, high)

    def test_a_range_over_bins_takes_edges(self) -> None:
        income = Ordinal("income", edges=[0, 10_000, 20_000, 50_000])
        assert income.cells_between(0, 20_000) == (0, 2)
        assert income.cells_between(10_000, 19_999) == (1, 2)
        assert income.cells_between(10_000, None) == (1, 3)

    def test_a_bin_is_never_one_value_unless_it_holds_one_whole_number(self) -> None:
        grades = Ordinal("grade", edges=[0, 1, 5, 10])
        assert grades.cells_of(0) == (0, 1)
        with pytest.raises(QueryError, match=r"1 cuts through the bin \[1, 5\)"):
            grades.cells_of(1)
        with pytest.raises(QueryError, match=r"10 cuts through the bin \[5, 10\]"):
            grades.cells_of(10)

    def test_dates_are_read_from_texts_and_dates(self) -> None:
        admitted = Ordinal("admitted", "2023", "2024", unit="month")
        assert admitted.is_date
        assert admitted.division.to_dict()["unit"] == "month"
        assert not AGE.is_date
        assert admitted.cells_of("2024-02") == (13, 14)
        assert admitted.cells_between(date(2023, 2, 1), "2023-04") == (1, 4)
        assert (admitted.before("2024"), admitted.after("2023-12-31")) == (12, 12)

    def test_centres_stand_for_the_regular_cells(self) -> None:
        assert Ordinal("a", 1, 3, outside="other", missing="cell").centres().tolist() == [1.0, 2.0, 3.0]
        assert Ordinal("b", edges=[0, 10, 30]).centres().tolist() == [5.0, 20.0]

    @pytest.mark.parametrize(
        ("arguments", "problem"),
        [
            ({}, "attribute 'a': an ordinal attribute needs low and high, or edges"),
            ({"low": 5, "high": 1}, "attribute 'a': low 5 is above high 1"),
            ({"edges": [1, 0]}, "attribute 'a': edges must increase strictly"),
            ({"low": 0, "high": 1, "outside": "drop"}, "outside='drop' is not allowed for 'a'; use one of reject, cl"),
            ({"low": 0, "high": 1, "missing": "drop"}, "missing='drop' is not allowed for 'a'; use 'reject' or 'cel"),
            ({"low": 0, "high": 1, "column": 5}, "the column of 'a' must be a name"),
            ({"low": 0, "high": 1, "column": ""}, "the column of 'a' must be a name"),
        ],
    )
    def test_refuses_settings_that_make_no_sense(self, arguments: dict[str, object], problem: str) -> None:
        with pytest.raises(SchemaError, match=problem):
            Ordinal("a", **arguments)

    @pytest.mark.parametrize("name", ["", "  ", None, 5])
    def test_needs_a_name(self, name: object) -> None:
        with pytest.raises(SchemaError, match="needs a name that is not empty"):
            Ordinal(name, 0, 1)


class TestNominal:
    @pytest.mark.parametrize(
        ("value", "cells"), [("Nurse", (0, 1)), ("Care", (0, 2)), ("Office", (2, 5)), ("IT", (3, 5)), ("Ops", (4, 5))]
    )
    def test_a_value_or_a_group_means_its_run_of_cells(self, value: str, cells: tuple[int, int]) -> None:
        assert JOB.cells_of(value) == cells

    def test_values_are_matched_as_text(self) -> None:
        codes = Nominal("code", [1, 2, 3])
        assert codes.cells_of(2) == codes.cells_of("2") == codes.cells_of(np.int64(2)) == (1, 2)

    def test_refuses_an_unknown_value_and_lists_some_known_ones(self) -> None:
        with pytest.raises(QueryError, match="'job' has no value or group 'Pilot'; it has 'Care', 'Office', 'Law'"):
            JOB.cells_of("Pilot")
        with pytest.raises(QueryError, match=r"'h', \.\.\.$"):
            Nominal("a", list("abcdefghij")).cells_of("z")
        with pytest.raises(QueryError, match=r"'b'$"):
            Nominal("a", ["a", "b"]).cells_of("z")

    def test_many_values_beside_a_hierarchy_take_no_time(self) -> None:
        values = [f"v{i}" for i in range(50_000)]
        assert Nominal("a", values, hierarchy={"G": values}).regular_size == 50_000

    def test_takes_values_beside_a_hierarchy_that_holds_them_all(self) -> None:
        both = Nominal("a", ["y", "x"], hierarchy={"G": ["x", "y"]})
        assert both == Nominal("a", hierarchy={"G": ["x", "y"]})

    def test_keeps_its_values_and_tree(self) -> None:
        assert JOB.values == ("Nurse", "Aide", "Judge", "Dev", "Ops")
        assert JOB.hierarchy.groups == ("Care", "Office", "Law", "IT")

    @pytest.mark.parametrize(
        ("arguments", "problem"),
        [
            ({}, "attribute 'a' needs values or a hierarchy"),
            ({"values": ["x", "y"], "hierarchy": {"G": ["x"]}}, "attribute 'a': the hierarchy misses the value 'y'"),
            ({"values": ["x"], "hierarchy": {"G": ["x", "y"]}}, "the hierarchy has 'y', which is not among the values"),
            ({"hierarchy": {"G": ["x"], "H": ["x"]}}, "attribute 'a': the value 'x' is listed twice"),
            ({"values": []}, "attribute 'a': the list of values is empty"),
            ({"values": ["x", "x"]}, "attribute 'a': the value 'x' is listed twice"),
            ({"hierarchy": ["x"]}, "attribute 'a': a hierarchy must be a mapping"),
            ({"values": ["x"], "outside": "clip"}, "outside='clip' is not allowed for 'a'; use one of reject, other"),
            ({"values": ["(other)"], "outside": "other"}, r"'\(other\)' is the name of an extra cell"),
            ({"hierarchy": {"(missing)": ["x"]}, "missing": "cell"}, r"'\(missing\)' is the name of an extra cell"),
        ],
    )
    def test_refuses_settings_that_make_no_sense(self, arguments: dict[str, object], problem: str) -> None:
        with pytest.raises(SchemaError, match=problem):
            Nominal("a", **arguments)

    def test_a_value_may_be_called_like_an_extra_cell_that_is_not_there(self) -> None:
        assert Nominal("a", ["(other)", "x"]).labels() == ["(other)", "x"]


class TestEquality:
    def test_equal_facts_make_equal_attributes(self) -> None:
        assert Ordinal("age", np.int64(17), 90) == AGE
        assert hash(Ordinal("age", np.int64(17), 90)) == hash(AGE)
        assert Ordinal("b", edges=[0.0, 1.0]) == Ordinal("b", edges=[0, 1])
        assert Nominal("a", [1, 2]) == Nominal("a", ["1", "2"])
        assert hash(Nominal("a", [1, 2])) == hash(Nominal("a", ["1", "2"]))

    @pytest.mark.parametrize(
        "other",
        [
            Ordinal("age", 17, 91),
            Ordinal("Age", 17, 90),
            Ordinal("age", 17, 90, missing="cell"),
            Ordinal("age", 17, 90, outside="clip"),
            Ordinal("age", 17, 90, column="AGE"),
            Nominal("age", [str(age) for age in range(17, 91)]),
            "age",
        ],
    )
    def test_any_other_fact_makes_another_attribute(self, other: object) -> None:
        assert other != AGE

    def test_the_order_of_groups_is_the_order_of_cells_and_so_a_fact(self) -> None:
        one = Nominal("job", hierarchy={"Care": ["Nurse"], "Law": ["Judge"]})
        other = Nominal("job", hierarchy={"Law": ["Judge"], "Care": ["Nurse"]})
        assert one != other


class TestPlainData:
    @pytest.mark.parametrize(
        "attribute",
        [
            AGE,
            JOB,
            Ordinal("income", edges=[0, 0.5, 1], outside="clip", missing="cell", column="INC"),
            Ordinal("admitted", "2023-02", "2024-02", unit="month", outside="other"),
            Ordinal("born", date(1900, 1, 1), date(1999, 12, 31)),
            Nominal("sex", ["F", "M"], outside="other", missing="cell"),
        ],
    )
    def test_an_attribute_is_rebuilt_from_its_plain_data(self, attribute: Attribute) -> None:
        again = read_attribute(attribute.to_dict())
        assert again == attribute
        assert again.labels() == attribute.labels()

    def test_the_column_is_written_only_if_it_differs(self) -> None:
        assert "column" not in AGE.to_dict()
        assert Ordinal("age", 17, 90, column="AGE").to_dict()["column"] == "AGE"

    @pytest.mark.parametrize(
        ("facts", "problem"),
        [
            ({"name": "a"}, "attribute 'a' needs kind"),
            ({"name": "a", "kind": "number"}, "attribute 'a' needs kind"),
            ({"name": "a", "kind": ["ordinal"]}, "attribute 'a' needs kind"),
            ({"kind": "ordinal", "low": 0, "high": 1}, "every attribute needs a name"),
            (
                {"name": "a", "kind": "ordinal", "values": ["x"]},
                "unknown settings: values; allowed are name, column, l",
            ),
            ({"name": "a", "kind": "nominal", "low": 0, "lo": 1}, "unknown settings: lo, low"),
            ({"name": "a", "kind": "nominal", "values": 5}, "attribute 'a': values must be a list"),
            ({"name": "a", "kind": "ordinal", "edges": 5}, "attribute 'a': edges must be a list"),
            ({"name": 5, "kind": "ordinal", "low": 0, "high": 1}, "needs a name that is not empty"),
        ],
    )
    def test_refuses_data_that_describes_no_attribute(self, facts: dict[str, object], problem: str) -> None:
        with pytest.raises(SchemaError, match=problem):
            read_attribute(facts)
