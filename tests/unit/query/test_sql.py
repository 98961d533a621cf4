import logging
import sys
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from veilcube.errors import QueryError
from veilcube.query.sql import MAX_CHARACTERS, MAX_MESSAGE, MAX_NESTING, read_sql
from veilcube.schema import Nominal, Ordinal, Region, Schema

AGE = Ordinal("age", 17, 90, outside="other", missing="cell")
INCOME = Ordinal("income", edges=[0, 10_000, 20_000, 50_000])
HOURS = Ordinal("hours-per-week", 1, 99)
ADMITTED = Ordinal("admitted", "2023", "2024", unit="month")
JOB = Nominal("job", hierarchy={"Care": ["Nurse", "Aide"], "Law": ["Judge"]}, outside="other", missing="cell")
SMOKER = Nominal("smoker", [True, False])
SCHEMA = Schema([AGE, INCOME, HOURS, ADMITTED, JOB, SMOKER])


def chosen(condition: str, name: str, schema: Schema = SCHEMA) -> list[str]:
    """Return the labels of one attribute that a condition on it alone selects."""
    region = read_sql(schema, condition).region
    axis = schema.axis(name)
    if not region.boxes:
        return []
    assert len(region.boxes) == 1
    assert all(other is None for position, other in enumerate(region.boxes[0].axes) if position != axis)
    labels = schema.attributes[axis].labels()
    return [labels[cell] for cell in region.boxes[0].indices(axis)]


def ages(low: int, high: int) -> list[str]:
    return [str(age) for age in range(low, high + 1)]


def refusal(text: object) -> str:
    with pytest.raises(QueryError) as refused:
        read_sql(SCHEMA, text)
    message = str(refused.value)
    assert "\n" not in message
    assert len(message) <= MAX_MESSAGE + 5
    return message


class TestComparisons:
    @pytest.mark.parametrize(
        ("condition", "expected"),
        [
            ("age = 30", ["30"]),
            ("30 = age", ["30"]),
            ("age == 30", ["30"]),
            ("age < 20", ages(17, 19)),
            ("age <= 20", ages(17, 20)),
            ("age > 88", ages(89, 90)),
            ("age >= 88", ages(88, 90)),
            ("20 > age", ages(17, 19)),
            ("20 >= age", ages(17, 20)),
            ("88 < age", ages(89, 90)),
            ("88 <= age", ages(88, 90)),
            ("age < 18.5", ages(17, 18)),
            ("age >= 88.5", ages(89, 90)),
            ("age < 2e1", ages(17, 19)),
            ("age > -5", ages(17, 90)),
            ("age > -(-(89))", ["90"]),
            ("+89 < age", ["90"]),
            ("age > 90", []),
            ("age < 17", []),
            ("(age) = ((30))", ["30"]),
            ("30 <= age AND age < 33", ages(30, 32)),
            ("age BETWEEN 30 AND 32", ages(30, 32)),
            ("age BETWEEN 89 AND 900", ages(89, 90)),
            ("age NOT BETWEEN 19 AND 90", ages(17, 18)),
            ("age IN (20, 30, 20)", ["20", "30"]),
            ("age IN (20)", ["20"]),
            ("(age) IN ((20), 30)", ["20", "30"]),
        ],
    )
    def test_whole_numbers(self, condition: str, expected: list[str]) -> None:
        assert chosen(condition, "age") == expected

    @pytest.mark.parametrize(
        ("condition", "expected"),
        [
            ("income < 10000", ["[0, 10000)"]),
            ("income <= 9999", ["[0, 10000)"]),
            ("income >= 20000", ["[20000, 50000]"]),
            ("income > 19999", ["[20000, 50000]"]),
            ("income BETWEEN 10000 AND 19999", ["[10000, 20000)"]),
            ("income BETWEEN 10000 AND 50000", ["[10000, 20000)", "[20000, 50000]"]),
            ("income NOT BETWEEN 10000 AND 50000", ["[0, 10000)"]),
            ("income > 50000", []),
        ],
    )
    def test_bins_at_their_edges(self, condition: str, expected: list[str]) -> None:
        assert chosen(condition, "income") == expected

    @pytest.mark.parametrize(
        "condition",
        ["income < 5", "income <= 10000", "income < 50000", "income BETWEEN 0 AND 10000", "NOT income > 5"],
    )
    def test_a_cut_through_a_bin_says_which_edges_to_use(self, condition: str) -> None:
        message = refusal(condition)
        assert "attribute 'income'" in message
        assert "cuts through the bin" in message
        assert "compare with its edges: '< " in message

    def test_equality_with_a_bin_is_refused_unless_it_is_the_whole_bin(self) -> None:
        assert "0 cuts through the bin [0, 10000)" in refusal("income = 0")
        assert "cuts through" in refusal("income <> 10000")
        assert "cuts through" in refusal("income IN (20000)")
        grades = Schema([Ordinal("grade", edges=[0, 1, 5])])
        assert chosen("grade = 0", "grade", grades) == ["[0, 1)"]
        assert chosen("grade <> 0", "grade", grades) == ["[1, 5]"]

    @pytest.mark.parametrize(
        ("condition", "expected"),
        [
            ("admitted < DATE '2023-03-01'", ["2023-01", "2023-02"]),
            ("admitted < '2023-03-01'", ["2023-01", "2023-02"]),
            ("admitted <= '2023-02-28'", ["2023-01", "2023-02"]),
            ("admitted <= CAST('2023-02-28' AS DATE)", ["2023-01", "2023-02"]),
            ("admitted <= '2023-02-28'::DATE", ["2023-01", "2023-02"]),
            ("admitted <= '2023-02'", ["2023-01", "2023-02"]),
            ("admitted > '2024-11'", ["2024-12"]),
            ("admitted BETWEEN '2024-02-01' AND '2024-02-29'", ["2024-02"]),
            ("admitted = '2024-02'", ["2024-02"]),
            ("admitted IN ('2024-02', '2023-02')", ["2023-02", "2024-02"]),
            ("admitted > '2024'", []),
        ],
    )
    def test_dates(self, condition: str, expected: list[str]) -> None:
        assert chosen(condition, "admitted") == expected

    @pytest.mark.parametrize(
        ("condition", "problem"),
        [
            ("admitted >= '2023-01-15'", "cuts through a month"),
            ("admitted <= DATE '2024-12-05'", "cuts through a month"),
            ("admitted = '2023-02-29'", "not a day of the calendar"),
            ("admitted > 2023", "a date must be written as text"),
            ("admitted > 'yesterday'", "a date must be written as text"),
        ],
    )
    def test_dates_that_are_none_or_cut_a_cell_are_refused(self, condition: str, problem: str) -> None:
        assert problem in refusal(condition)

    @pytest.mark.parametrize(
        ("condition", "expected"),
        [
            ("job = 'Nurse'", ["Nurse"]),
            ("'Nurse' = job", ["Nurse"]),
            ("job = 'Care'", ["Nurse", "Aide"]),
            ("job IN ('Care', 'Judge')", ["Nurse", "Aide", "Judge"]),
            ("job IN ('Law')", ["Judge"]),
            ("job <> 'Care'", ["Judge", "(other)"]),
            ("job != 'Nurse'", ["Aide", "Judge", "(other)"]),
            ("job NOT IN ('Care', 'Law')", ["(other)"]),
        ],
    )
    def test_values_and_groups_of_a_hierarchy(self, condition: str, expected: list[str]) -> None:
        assert chosen(condition, "job") == expected

    def test_numbers_and_truth_values_name_nominal_values(self) -> None:
        schema = Schema([Nominal("code", [1, 2.5, -3]), Nominal("flag", ["true", "false"]), SMOKER])
        assert chosen("code = 1", "code", schema) == ["1"]
        assert chosen("code IN (2.50, -3)", "code", schema) == ["2.5", "-3"]
        assert chosen("flag = TRUE", "flag", schema) == ["true"]
        assert chosen("smoker <> TRUE", "smoker", schema) == ["False"]
        assert "'code' has no value or group 'True'" in str(_error(schema, "code = TRUE"))

    def test_quotes_inside_text_are_doubled(self) -> None:
        schema = Schema([Nominal("name", ["O'Hara", 'say "hi"', "back\\slash"])])
        assert chosen("name = 'O''Hara'", "name", schema) == ["O'Hara"]
        assert chosen("name = 'say \"hi\"'", "name", schema) == ['say "hi"']
        assert chosen("name = 'back\\slash'", "name", schema) == ["back\\slash"]


def _error(schema: Schema, text: str) -> QueryError:
    with pytest.raises(QueryError) as refused:
        read_sql(schema, text)
    return refused.value


class TestThreeValuedLogic:
    @pytest.mark.parametrize(
        "condition",
        ["age > 20", "age = 20", "age BETWEEN 20 AND 30", "age IN (20)", "age <> 20", "age NOT IN (20)", "age IS NULL"],
    )
    def test_not_swaps_true_and_false_but_never_selects_what_is_missing(self, condition: str) -> None:
        selected, negated = chosen(condition, "age"), chosen(f"NOT ({condition})", "age")
        assert not set(selected) & set(negated)
        assert ("(missing)" in selected) == (condition == "age IS NULL")
        assert "(missing)" not in negated
        assert set(selected) | set(negated) | {"(other)", "(missing)"} == set(AGE.labels())

    @pytest.mark.parametrize(
        ("condition", "selects_other"),
        [
            ("age > 20", False),
            ("NOT age > 20", False),
            ("age BETWEEN 20 AND 30", False),
            ("age NOT BETWEEN 20 AND 30", False),
            ("age = 20", False),
            ("age <> 20", True),
            ("NOT age = 20", True),
            ("age NOT IN (20, 30)", True),
            ("age IN (20, 30)", False),
            ("age IS NOT NULL", True),
            ("age IS NULL", False),
        ],
    )
    def test_a_value_outside_the_schema_has_no_known_order_but_differs_from_every_listed_one(
        self, condition: str, selects_other: bool
    ) -> None:
        assert ("(other)" in chosen(condition, "age")) == selects_other

    def test_is_null_selects_the_missing_cell_alone(self) -> None:
        assert chosen("age IS NULL", "age") == ["(missing)"]
        assert chosen("age ISNULL", "age") == ["(missing)"]
        assert chosen("NOT age IS NOT NULL", "age") == ["(missing)"]
        assert chosen("job IS NULL", "job") == ["(missing)"]

    def test_is_null_selects_nothing_where_nothing_is_missing(self) -> None:
        assert read_sql(SCHEMA, "income IS NULL").region.cells == 0
        assert read_sql(SCHEMA, "income IS NOT NULL").region.cells == SCHEMA.cells

    @pytest.mark.parametrize(
        "condition",
        [
            "age = NULL",
            "age <> NULL",
            "NULL < age",
            "NOT age = NULL",
            "age NOT IN (20, NULL)",
            "age BETWEEN NULL AND 30",
            "NULL",
            "NOT NULL",
            "NULL = NULL",
            "1 = NULL",
            "FALSE",
            "NOT TRUE",
        ],
    )
    def test_what_is_never_true_selects_nothing(self, condition: str) -> None:
        assert read_sql(SCHEMA, condition).region.boxes == ()

    def test_null_in_a_list_or_a_range_leaves_what_is_known(self) -> None:
        assert chosen("age IN (20, NULL)", "age") == ["20"]
        assert chosen("age NOT BETWEEN NULL AND 88", "age") == ages(89, 90)
        assert chosen("age NOT BETWEEN 19 AND NULL", "age") == ages(17, 18)

    @pytest.mark.parametrize("condition", ["TRUE", "NOT FALSE", "1 = 1", "NOT 1 > 2", "'a' <> 'b'", "age = 20 OR TRUE"])
    def test_what_is_always_true_selects_everything(self, condition: str) -> None:
        assert read_sql(SCHEMA, condition).region.cells == SCHEMA.cells


class TestConnectives:
    def test_and_binds_closer_than_or_and_not_closest(self) -> None:
        count = read_sql(SCHEMA, "NOT age = 20 AND job = 'Nurse' OR job = 'Judge'").region.cells
        same = read_sql(SCHEMA, "((NOT (age = 20)) AND (job = 'Nurse')) OR (job = 'Judge')").region.cells
        assert count == same
        assert count != read_sql(SCHEMA, "NOT age = 20 AND (job = 'Nurse' OR job = 'Judge')").region.cells

    def test_not_turns_and_into_or(self) -> None:
        negated = read_sql(SCHEMA, "NOT (age > 20 AND (job = 'Nurse' OR NOT job = 'Judge'))").region
        pushed = read_sql(SCHEMA, "age <= 20 OR (job <> 'Nurse' AND job = 'Judge')").region
        assert negated.cells == pushed.cells == negated.intersect(pushed).cells > 0

    def test_shared_cells_of_an_or_count_once(self) -> None:
        schema = Schema([Ordinal("a", 0, 9), Ordinal("b", 0, 9)])
        assert read_sql(schema, "a < 5 OR b < 5").region.cells == 75
        assert read_sql(schema, "a < 5 OR a < 7 OR a = 2").region.cells == 70

    def test_conditions_on_one_attribute_stay_one_box(self) -> None:
        assert len(read_sql(SCHEMA, "age = 20 OR age = 30 OR (age = 40 OR NOT age < 80)").region.boxes) == 1
        assert len(read_sql(SCHEMA, "age > 20 AND job = 'Care' AND age < 40").region.boxes) == 1

    def test_double_negation_cancels(self) -> None:
        assert chosen("NOT NOT (NOT (NOT age = 30))", "age") == ["30"]


class TestNames:
    @pytest.mark.parametrize(
        "condition",
        [
            "AGE = 30",
            '"Age" = 30',
            "t.age = 30",
            "a.b.t.age = 30",
            '"t"."age" = 30',
            "Where age = 30",
            "where t.AGE=30",
        ],
    )
    def test_attributes_are_found_quoted_qualified_and_in_any_case(self, condition: str) -> None:
        assert chosen(condition, "age") == ["30"]

    def test_names_with_signs_are_quoted(self) -> None:
        assert chosen('"hours-per-week" >= 98', "hours-per-week") == ["98", "99"]

    def test_an_exact_name_wins_over_one_in_another_case(self) -> None:
        schema = Schema([Ordinal("Age", 0, 1), Ordinal("age", 0, 5)])
        assert chosen("age = 5", "age", schema) == ["5"]
        assert "there is no attribute 'AGE'" in str(_error(schema, "AGE = 1"))

    def test_names_that_are_types_of_sql_need_no_quotes(self) -> None:
        schema = Schema([Ordinal("date", "2023", "2024"), Ordinal("year", 0, 5), Nominal("name", ["x"])])
        assert read_sql(schema, "date >= '2024-01-01' AND year = 3 AND name = 'x'").region.cells == 366

    @pytest.mark.parametrize(
        ("condition", "problem"),
        [
            ("weight > 3", "there is no attribute 'weight'; the schema has age, income"),
            ("age = 200", "'age' has no cell for 200; its domain is 17..90"),
            ("age <> 30.5", "'age' has no cell for 30.5"),
            ("job = 'Pilot'", "'job' has no value or group 'Pilot'; it has 'Care', 'Law', 'Nurse'"),
            ("job IN ('Nurse', 'Pilot')", "'job' has no value or group 'Pilot'"),
        ],
    )
    def test_unknown_attributes_and_values_are_refused(self, condition: str, problem: str) -> None:
        assert problem in refusal(condition)


class TestStatements:
    @pytest.mark.parametrize(
        "text",
        [
            "SELECT COUNT(*) FROM t",
            "select count(1) from a.b.c as t;",
            "SELECT COUNT(*) AS n FROM 'people.parquet'",
            "SELECT COUNT(*) FROM read_parquet('x') p",
            "SELECT COUNT(*)",
            "FROM t SELECT COUNT(*)",
            "SELECT COUNT(*) FROM t WHERE TRUE -- all of them",
        ],
    )
    def test_a_select_without_a_condition_counts_everything(self, text: str) -> None:
        query = read_sql(SCHEMA, text)
        assert query.region.cells == SCHEMA.cells
        assert query.group_by == ()

    def test_a_condition_a_where_clause_and_a_statement_mean_the_same(self) -> None:
        texts = ["age < 20", " WHERE age < 20 ;", "SELECT COUNT(*) FROM t WHERE age < 20", "/* young */ age < 20 -- !"]
        for text in texts:
            assert chosen(text, "age") == ages(17, 19)

    @pytest.mark.parametrize(
        ("text", "group_by"),
        [
            ("SELECT COUNT(*) FROM t GROUP BY job", ("job",)),
            ("SELECT job, COUNT(*) AS n FROM t WHERE age > 20 GROUP BY job", ("job",)),
            ("SELECT JOB j, t.AGE, COUNT(*) FROM t GROUP BY t.age, (Job)", ("age", "job")),
            ("SELECT COUNT(*) FROM t GROUP BY job, JOB", ("job",)),
            ('WHERE age > 20 GROUP BY "hours-per-week"', ("hours-per-week",)),
        ],
    )
    def test_group_by_names_a_marginal_in_its_own_order(self, text: str, group_by: tuple[str, ...]) -> None:
        assert read_sql(SCHEMA, text).group_by == group_by

    def test_a_query_is_frozen(self) -> None:
        with pytest.raises(AttributeError):
            read_sql(SCHEMA, "age = 30").group_by = ("age",)


UNSUPPORTED = [
    ("job LIKE 'N%'", "not supported: LIKE; use IN (...)"),
    ("job NOT LIKE 'N%'", "not supported: LIKE"),
    ("job ILIKE 'n%'", "not supported: ILIKE"),
    ("job SIMILAR TO 'n'", "not supported: SIMILAR TO"),
    ("job ~ 'n'", "not supported: regular expressions"),
    ("job > 'Nurse'", "not supported: > on 'job', whose values have no order; use IN (...)"),
    ("job BETWEEN 'A' AND 'B'", "not supported: >= on 'job'"),
    ("NOT job <= 'Nurse'", "not supported: > on 'job'"),
    ("age = income", "not supported: comparing two attributes"),
    ('job = "Nurse"', "write it in single quotes"),
    ("age + 1 = 30", "not supported: arithmetic (+)"),
    ("age = 3 * 10", "not supported: arithmetic (*)"),
    ("-age = 30", "not supported: an attribute where a condition belongs"),
    ("job = -'Nurse'", "not supported: "),
    ("lower(job) = 'nurse'", "not supported: the function LOWER()"),
    ("my_function(job) = 'nurse'", "not supported: the function MY_FUNCTION()"),
    ("admitted > current_date", "not supported: the function CURRENT_DATE()"),
    ("admitted > DATE '2024-01-01' - INTERVAL '3 days'", "not supported: arithmetic (-)"),
    ("admitted > TIMESTAMP '2024-01-01 00:00:00'", "not supported: CAST"),
    ("CAST(age AS DOUBLE) > 3", "not supported: CAST"),
    ("CASE WHEN age > 3 THEN TRUE END", "not supported: CASE"),
    ("age IS DISTINCT FROM 3", "not supported: IS DISTINCT FROM"),
    ("age IS NOT DISTINCT FROM 3", "not supported: IS NOT DISTINCT FROM"),
    ("smoker IS TRUE", "not supported: IS with anything but NULL"),
    ("age BETWEEN SYMMETRIC 30 AND 20", "not supported: BETWEEN SYMMETRIC"),
    ("age BETWEEN 32 AND 31", "inverted: 32 comes after 31"),
    ("age NOT BETWEEN 32 AND 31.5", "inverted"),
    ("admitted BETWEEN '2024-03-01' AND '2024-02-29'", "inverted"),
    ("20 <= age < 30", "not supported: a comparison inside a comparison; join the two with AND"),
    ("(age > 3) = TRUE", "not supported: a comparison inside a comparison"),
    ("smoker", "not supported: an attribute where a condition belongs"),
    ("NOT smoker", "not supported: an attribute where a condition belongs"),
    ("30", "not supported: a value where a condition belongs"),
    ("1 = 'a'", "not supported: comparing a number with a text"),
    ("age IN (SELECT 1)", "not supported: IN with a subquery"),
    ("age IN UNNEST([1])", "not supported: IN with UNNEST"),
    ("age IN income", "not supported: IN without a list"),
    ("age IN (income)", "not supported: an attribute where a condition belongs"),
    ("age + 1 IN (3)", "not supported: arithmetic (+)"),
    ("(age, income) IN ((1, 2))", "not supported: a row of several values"),
    ("age = (SELECT 1)", "not supported: a subquery"),
    ("EXISTS (SELECT 1)", "not supported: EXISTS"),
    ("age = ANY ([1, 2])", "not supported: ANY"),
    ("age = ?", "not supported: parameters; write the value itself"),
    ("age = $1", "not supported: parameters"),
    ("COUNT(*) > 3", "not supported: COUNT()"),
    ("job -> 'x' = 3", "not supported: the function JSON_EXTRACT()"),
    ("job = E'Nurse'", "not supported: BYTE STRING; use AND, OR, NOT, IN"),
    ("a.b.c.d.age = 3", "not supported: a name in several parts"),
    ("SELECT * FROM t", "not supported: *; write SELECT COUNT(*)"),
    ("SELECT t.* FROM t", "not supported: *"),
    ("SELECT SUM(age) FROM t", "not supported: SUM(age) here, where counts"),
    ("SELECT COUNT(*), AVG(age) FROM t", "not supported: AVG(age) here, where counts"),
    ("SELECT COUNT(age) FROM t", "not supported: COUNT of an expression"),
    ("SELECT COUNT(DISTINCT age) FROM t", "not supported: COUNT(DISTINCT ...)"),
    ("SELECT COUNT(*) FILTER (WHERE age > 3) FROM t", "not supported: FILTER"),
    ("SELECT COUNT(*) OVER () FROM t", "not supported: window functions"),
    ("SELECT COUNT(*) + 1 FROM t", "not supported: arithmetic (+)"),
    ("SELECT DISTINCT COUNT(*) FROM t", "not supported: DISTINCT"),
    ("SELECT job, COUNT(*) FROM t", "'job' is selected but not grouped; add GROUP BY job"),
    ("SELECT job FROM t GROUP BY job", "selects COUNT(*), or"),
    ("SELECT COUNT(*), COUNT(*) FROM t", "selects COUNT(*) exactly once"),
    ("SELECT COUNT(*) FROM t ORDER BY 1", "not supported: ORDER BY"),
    ("age > 3 ORDER BY age", "not supported: ORDER BY"),
    ("SELECT COUNT(*) FROM t LIMIT 3", "not supported: LIMIT"),
    ("SELECT COUNT(*) FROM t OFFSET 3", "not supported: OFFSET"),
    ("SELECT COUNT(*) FROM t GROUP BY job HAVING COUNT(*) > 3", "not supported: HAVING"),
    ("SELECT COUNT(*) FROM t QUALIFY TRUE", "not supported: QUALIFY"),
    ("SELECT COUNT(*) FROM t JOIN u ON TRUE", "not supported: JOIN"),
    ("SELECT COUNT(*) FROM t, u", "not supported: JOIN"),
    ("SELECT COUNT(*) FROM (SELECT 1)", "not supported: a subquery"),
    ("(SELECT COUNT(*) FROM t)", "not supported: a subquery"),
    ("SELECT COUNT(*) FROM (VALUES (1)) v", "not supported: "),
    ("SELECT COUNT(*) FROM t TABLESAMPLE 10%", "not supported: SAMPLE"),
    ("SELECT COUNT(*) FROM t USING SAMPLE 10%", "not supported: SAMPLE"),
    ("SELECT COUNT(*) FROM t AS u(age)", "not supported: renamed columns"),
    ("SELECT COUNT(*) INTO x FROM t", "not supported: INTO"),
    ("WITH q AS (SELECT 1) SELECT COUNT(*) FROM q", "not supported: WITH"),
    ("SELECT COUNT(*) FROM t UNION SELECT 1", "not supported: UNION"),
    ("age = 3 EXCEPT SELECT 1", "not supported: EXCEPT"),
    ("age = 3 INTERSECT SELECT 1", "not supported: INTERSECT"),
    ("SELECT COUNT(*) FROM t GROUP BY ROLLUP (job)", "not supported: ROLLUP"),
    ("SELECT COUNT(*) FROM t GROUP BY CUBE (job)", "not supported: CUBE"),
    ("SELECT COUNT(*) FROM t GROUP BY GROUPING SETS ((job))", "not supported: GROUPING SETS"),
    ("SELECT COUNT(*) FROM t GROUP BY ALL", "not supported: GROUP BY ALL"),
    ("SELECT COUNT(*) FROM t GROUP BY 1", "not supported: GROUP BY 1"),
    ("SELECT COUNT(*) FROM t GROUP BY lower(job)", "not supported: the function LOWER()"),
    ("SELECT COUNT(*) FROM t GROUP BY weight", "there is no attribute 'weight'"),
    ("DROP TABLE people", "not supported: DROP"),
    ("INSERT INTO people VALUES (1)", "not supported: INSERT"),
    ("EXPLAIN SELECT 1", "not supported: EXPLAIN"),
    ("age = 3; DROP TABLE people", "not supported: several statements"),
]


class TestRefusals:
    @pytest.mark.parametrize(("text", "problem"), UNSUPPORTED, ids=[text for text, _ in UNSUPPORTED])
    def test_unsupported_sql_names_the_part(self, text: str, problem: str) -> None:
        assert problem in refusal(text)

    @pytest.mark.parametrize("text", ["", "  ", ";", "-- nothing", "/* nothing */"])
    def test_empty_text(self, text: str) -> None:
        assert "the SQL text is empty" in refusal(text)

    @pytest.mark.parametrize("text", [None, 5, b"age = 3", {"age": 3}])
    def test_what_is_no_text(self, text: object) -> None:
        assert "a SQL query is a text" in refusal(text)

    @pytest.mark.parametrize(
        ("text", "near"),
        [
            ("age = = 3", "near '='"),
            ("age >", "near '>'"),
            ("WHERE", "near 'WHERE'"),
            ("age = 3 xor job = 3", "near 'xor'"),
        ],
    )
    def test_a_slip_is_pointed_at(self, text: str, near: str) -> None:
        message = refusal(text)
        assert message.startswith("cannot read the SQL ")
        assert near in message

    @pytest.mark.parametrize("text", ["job = 'Nurse", 'job = "Nurse', "age = 3 /* never closed"])
    def test_an_open_quotation_or_comment(self, text: str) -> None:
        assert "cannot read the SQL" in refusal(text)

    @pytest.mark.parametrize("condition", ["age = '30'", "age > ' 30 '", "age IN ('-1.5e3')", "age BETWEEN '1' AND 3"])
    def test_a_number_in_quotes_is_refused_kindly(self, condition: str) -> None:
        assert "'age' holds numbers; write " in refusal(condition)
        assert "without quotes" in refusal(condition)

    def test_other_text_against_numbers(self) -> None:
        assert "attribute 'age': a value of the wrong type" in refusal("age = 'thirty'")
        assert "attribute 'age': a value of the wrong type" in refusal("age = TRUE")

    def test_an_empty_list(self) -> None:
        assert "IN () on 'age' lists nothing" in refusal("age IN ()")

    def test_long_and_many_lined_values_do_not_fill_the_screen(self) -> None:
        assert " ... " in refusal(f"job = '{'x' * 5000}'")
        refusal("job = 'one\n\ntwo'")
        refusal('"one\ntwo" = 3')

    def test_nothing_is_printed(self, capfd: pytest.CaptureFixture[str]) -> None:
        for text, _ in UNSUPPORTED:
            refusal(text)
        refusal("json_extract(job, '$[[') = 3")
        assert capfd.readouterr() == ("", "")

    def test_warnings_about_other_texts_still_reach_the_log(self, caplog: pytest.LogCaptureFixture) -> None:
        logger = logging.getLogger("sqlglot")
        stop = threading.Event()

        def read_on() -> None:
            while not stop.is_set():
                refusal("json_extract(job, '$[[') = 3")

        reader = threading.Thread(target=read_on)
        reader.start()
        for _ in range(50):
            logger.warning("from elsewhere")
            time.sleep(0.001)
        stop.set()
        reader.join()
        assert [record.message for record in caplog.records] == ["from elsewhere"] * 50
        assert logger.filters == []


class TestSize:
    @pytest.fixture(autouse=True)
    def _in_reasonable_time(self) -> Iterator[None]:
        started = time.process_time()
        yield
        assert time.process_time() - started < 20

    def test_text_beyond_the_limit_is_refused(self) -> None:
        assert f"longer than {MAX_CHARACTERS:,} characters" in refusal("age = 30 " + " " * MAX_CHARACTERS)

    def test_thousands_of_terms_on_one_attribute(self) -> None:
        union = " OR ".join(f"age = {17 + i % 74}" for i in range(5000))
        assert chosen(union, "age") == ages(17, 90)
        intersection = " AND ".join(f"age <> {18 + i % 73}" for i in range(1000))
        assert chosen(intersection, "age") == ["17", "(other)"]
        assert chosen(f"NOT ({union})", "age") == ["(other)"]
        listed = f"age IN ({', '.join(str(17 + i % 74) for i in range(5_000))})"
        assert chosen(listed, "age") == ages(17, 90)

    def test_thousands_of_terms_on_two_attributes(self) -> None:
        cells = " OR ".join(f"(age = {17 + i % 74} AND income < 10000)" for i in range(1000))
        assert read_sql(SCHEMA, cells).region.cells == 74 * 99 * 24 * 5 * 2

    def test_overlapping_blocks_of_three_attributes(self) -> None:
        random = np.random.default_rng(1)
        schema = Schema([Ordinal(name, 0, 999) for name in "abc"])
        blocks = [[sorted(random.integers(0, 1000, 2)) for _ in "abc"] for _ in range(60)]
        text = " OR ".join(
            "("
            + " AND ".join(f"{name} BETWEEN {low} AND {high}" for name, (low, high) in zip("abc", block, strict=True))
            + ")"
            for block in blocks
        )
        region = read_sql(schema, text).region
        points = random.integers(0, 1000, (200, 3))
        expected = [
            any(all(low <= x <= high for x, (low, high) in zip(p, b, strict=True)) for b in blocks) for p in points
        ]
        assert [_holds(region, point) for point in points.tolist()] == expected
        assert 0 < sum(expected) < 200

    def test_a_condition_in_too_many_pieces_is_refused(self) -> None:
        schema = Schema([Ordinal(name, 0, 99) for name in "abcd"])
        diagonals = [" OR ".join(f"{x} = {i} AND {y} = {i}" for i in range(70)) for x, y in ("ab", "cd")]
        assert "separate blocks of cells" in str(_error(schema, f"({diagonals[0]}) AND ({diagonals[1]})"))

    def test_nesting_within_the_limit_is_read(self) -> None:
        assert chosen("(" * MAX_NESTING + "age = 30" + ")" * MAX_NESTING, "age") == ["30"]

    @pytest.mark.parametrize(
        "text",
        [
            "(" * (MAX_NESTING + 1) + "age = 30" + ")" * (MAX_NESTING + 1),
            "(" * 50_000,
            "NOT " * 5_000 + "age = 30",
            "age = " + "- " * 5_000 + "30",
            "age = " + "[" * 10_000,
            "CASE WHEN " * 2_000,
            "age" + " = 1" * 5_000,
            "age" + "::int" * 5_000 + " = 3",
        ],
        ids=lambda text: text[:12],
    )
    def test_bombs_are_refused_without_exhausting_the_stack(self, text: str) -> None:
        limit = sys.getrecursionlimit()
        refusal(text)
        assert sys.getrecursionlimit() == limit

    @pytest.mark.parametrize("digits", [400, 5000])
    def test_numbers_of_any_length_are_compared(self, digits: int) -> None:
        assert chosen(f"age < {'9' * digits}", "age") == ages(17, 90)
        assert chosen(f"age < -{'9' * digits}", "age") == []
        assert "'age' has no cell for" in refusal(f"age = {'9' * digits}")
        assert chosen(f"income <= {'9' * digits}", "income") == INCOME.labels()


def _holds(region: Region, point: list[int]) -> bool:
    return any(all(box.mask(axis)[cell] for axis, cell in enumerate(point)) for box in region.boxes)
