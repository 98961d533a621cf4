import tomllib
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from veilcube.errors import QueryError, SchemaError
from veilcube.schema import Nominal, Ordinal, Schema
from veilcube.schema.schema import MAX_ATTRIBUTES, MAX_BYTES

SCHEMA = Schema(
    [
        Ordinal("age", np.int64(17), np.int64(90), outside="clip"),
        Ordinal("hours-per-week", edges=[0, 20.5, 40, 99], missing="cell"),
        Ordinal("admitted", "2023", "2024-02", unit="month", outside="other"),
        Ordinal("born", date(1900, 1, 1), date(1999, 12, 31), column="date of birth"),
        Nominal("sex", ["Female", "Male"], outside="other", missing="cell"),
        Nominal("job", hierarchy={"Office": {"Law": ["Judge"], "IT": ["Dev"]}, "Care": ["Nurse", {"Home": ["Aide"]}]}),
    ]
)
AWKWARD = [
    "with space",
    "dot.ted",
    'quo"ted',
    "it's",
    "back\\slash",
    "new\nline",
    "tab\t",
    "ünï © 漢字 😀",
    "# no comment",
    "[table]",
    "a = 1",
    "",
    "''' \"\"\"",
    "\x00\x7f",
]


def _round_trip(schema: Schema, folder: Path) -> Schema:
    path = folder / "schema.toml"
    assert path.write_text(schema.to_toml(path), encoding="utf-8")
    return Schema.from_toml(path)


class TestSchema:
    def test_has_the_shape_of_its_attributes(self) -> None:
        assert SCHEMA.shape == (74, 4, 15, 36524, 4, 4)
        assert SCHEMA.cells == 74 * 4 * 15 * 36524 * 4 * 4
        assert len(SCHEMA) == 6
        assert [attribute.name for attribute in SCHEMA] == list(SCHEMA.names)
        assert SCHEMA.attributes[0] is SCHEMA["age"]

    def test_finds_attributes_by_name_and_then_without_regard_to_case(self) -> None:
        schema = Schema([Ordinal("Age", 0, 1), Ordinal("age", 0, 2), Ordinal("Sex", 0, 3)])
        assert [schema.axis(name) for name in ("Age", "age", "Sex", "SEX", "sex")] == [0, 1, 2, 2, 2]

    @pytest.mark.parametrize("name", ["AGE", "weight", "", 5])
    def test_refuses_an_unknown_or_ambiguous_name(self, name: object) -> None:
        schema = Schema([Ordinal("Age", 0, 1), Ordinal("age", 0, 2)])
        with pytest.raises(QueryError, match=f"there is no attribute '{name}'; the schema has Age, age"):
            schema.axis(name)

    def test_the_repr_shows_the_axes(self) -> None:
        assert repr(Schema([Ordinal("a", 0, 999), Nominal("b", ["x"])])) == "Schema(a (1000) x b (1): 1,000 cells)"

    @pytest.mark.parametrize(
        ("attributes", "problem"),
        [
            ([], "at least one attribute"),
            ([Ordinal("a", 0, 1), Ordinal("a", 0, 2)], "the attribute 'a' is listed twice"),
            (["age"], "a list of Ordinal and Nominal attributes"),
            (Ordinal("a", 0, 1), "a list of Ordinal and Nominal attributes"),
            (None, "a list of Ordinal and Nominal attributes"),
            ([Ordinal(f"a{i}", 0, 1) for i in range(MAX_ATTRIBUTES + 1)], f"at most {MAX_ATTRIBUTES} attributes"),
        ],
    )
    def test_refuses_lists_that_are_no_schema(self, attributes: object, problem: str) -> None:
        with pytest.raises(SchemaError, match=problem):
            Schema(attributes)

    def test_equal_schemas_share_hash_and_fingerprint(self) -> None:
        again = Schema.from_dict(SCHEMA.to_dict())
        assert again == SCHEMA
        assert hash(again) == hash(SCHEMA)
        assert again.fingerprint() == SCHEMA.fingerprint()
        assert len(SCHEMA.fingerprint()) == 16
        floats, integers = Schema([Ordinal("b", edges=[0.0, 1.0])]), Schema([Ordinal("b", edges=[0, 1])])
        assert floats == integers
        assert floats.fingerprint() == integers.fingerprint()

    def test_the_order_of_attributes_and_of_groups_tells_schemas_apart(self) -> None:
        a, b = Ordinal("a", 0, 1), Ordinal("b", 0, 1)
        assert Schema([a, b]) != Schema([b, a])
        assert Schema([a, b]).fingerprint() != Schema([b, a]).fingerprint()
        one = Schema([Nominal("job", hierarchy={"Care": ["Nurse"], "Law": ["Judge"]})])
        other = Schema([Nominal("job", hierarchy={"Law": ["Judge"], "Care": ["Nurse"]})])
        assert one != other
        assert one.fingerprint() != other.fingerprint()
        assert one != "job"

    @pytest.mark.parametrize(
        ("data", "problem"),
        [
            ({}, r"holds \[\[attribute\]\] tables"),
            ({"attribute": {"name": "a"}}, r"holds \[\[attribute\]\] tables"),
            ({"attribute": ["a"]}, r"holds \[\[attribute\]\] tables"),
            ({"attribute": []}, "at least one attribute"),
            ({"attribute": [], "title": "x", "author": "y"}, "unknown parts: author, title; only"),
        ],
    )
    def test_refuses_data_that_is_no_schema(self, data: dict[str, object], problem: str) -> None:
        with pytest.raises(SchemaError, match=problem):
            Schema.from_dict(data)


class TestToml:
    def test_a_schema_comes_back_from_its_file(self, tmp_path: Path) -> None:
        again = _round_trip(SCHEMA, tmp_path)
        assert again == SCHEMA
        assert again.fingerprint() == SCHEMA.fingerprint()
        assert [attribute.labels() for attribute in again] == [attribute.labels() for attribute in SCHEMA]

    def test_without_a_path_nothing_is_written(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        assert Schema.from_dict(tomllib.loads(SCHEMA.to_toml())) == SCHEMA
        assert not list(tmp_path.iterdir())

    def test_an_uneven_hierarchy_keeps_the_order_of_its_cells(self, tmp_path: Path) -> None:
        spec = {
            "Deep": {"Deeper": {"Deepest": ["a", "b"]}, "Shallow": ["c"]},
            "Flat": ["d"],
            "Mixed": ["e", {"Inner": {"One": ["f"], "Two": ["g", {"Three": ["h"]}]}}, "i"],
            "Deep too": {"Last": ["j"]},
            "Flat too": ["k"],
        }
        schema = Schema([Nominal("job", hierarchy=spec), Ordinal("age", 0, 9)])
        again = _round_trip(schema, tmp_path)
        assert again["job"].values == tuple("abcdefghijk")
        assert again == schema

    @pytest.mark.parametrize("name", AWKWARD)
    def test_awkward_names_come_back(self, name: str, tmp_path: Path) -> None:
        named = name if name.strip() else f"<{name}>"
        schema = Schema(
            [
                Ordinal(named, 0, 1, column=f"{name} column"),
                Nominal("flat", [name, "x"]),
                Nominal("tree", hierarchy={name: {f"{name}!": [f"{name}?"]}, "plain": ["y", {f"{name}+": ["z"]}]}),
            ]
        )
        assert _round_trip(schema, tmp_path) == schema

    def test_reads_native_dates_and_open_tables(self, tmp_path: Path) -> None:
        path = tmp_path / "schema.toml"
        path.write_text(
            """
            [[attribute]]
            name = "admitted"
            kind = "ordinal"
            low = 2023-01-01
            high = 2024-12-31
            unit = "month"

            [[attribute]]
            name = "job"
            kind = "nominal"
            hierarchy.Care = ["Nurse", "Aide"]
            hierarchy.Office.Law = ["Judge"]

            [[attribute]]
            name = "smoker"
            kind = "nominal"
            values = [true, false]
            """
        )
        admitted, job, smoker = Schema.from_toml(path).attributes
        assert admitted == Ordinal("admitted", "2023", "2024", unit="month")
        assert job == Nominal("job", hierarchy={"Care": ["Nurse", "Aide"], "Office": {"Law": ["Judge"]}})
        assert smoker == Nominal("smoker", ["True", "False"])

    def test_accepts_a_path_as_text(self, tmp_path: Path) -> None:
        path = str(tmp_path / "schema.toml")
        SCHEMA.to_toml(path)
        assert Schema.from_toml(path) == SCHEMA

    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            (b"[[attribute]", "is not valid TOML: "),
            (b"\xff\xfe", "is not UTF-8 text"),
            (b"", r"holds \[\[attribute\]\] tables"),
            (b'title = "x"', r"holds \[\[attribute\]\] tables"),
            (b"a = " + b"[" * 5000, "is nested too deeply"),
            (b"# " + b"x" * MAX_BYTES, "is larger than 16 MiB"),
            (b'[[attribute]]\nname = "a"\nkind = "ordinal"\nlow = 07:30:00\nhigh = 5', "whole numbers or dates"),
            (
                b'[[attribute]]\nname = "a"\nkind = "ordinal"\nlow = 2024-01-01T00:00:00\nhigh = "2025"',
                "a date must be written",
            ),
            (b'[[attribute]]\nname = "a"\nkind = "ordinal"\nedges = [0, inf]', "every edge must be a finite number"),
            (b'[[attribute]]\nname = "a"\nkind = "nominal"\nvalues = [["x"]]', "is not a value"),
            (b'[[attribute]]\nname = "a"\nkind = "nominal"\nhierarchy = ["x"]', "must be a mapping"),
        ],
    )
    def test_refuses_files_that_are_no_schema(self, content: bytes, problem: str, tmp_path: Path) -> None:
        path = tmp_path / "schema.toml"
        path.write_bytes(content)
        with pytest.raises(SchemaError, match=problem) as refused:
            Schema.from_toml(path)
        assert "\n" not in str(refused.value)

    def test_refuses_a_missing_file_and_a_folder(self, tmp_path: Path) -> None:
        with pytest.raises(SchemaError, match=r"cannot read the schema file .*nowhere.toml: No such file"):
            Schema.from_toml(tmp_path / "nowhere.toml")
        with pytest.raises(SchemaError, match="cannot read the schema file"):
            Schema.from_toml(tmp_path)

    def test_refuses_a_place_that_cannot_be_written(self, tmp_path: Path) -> None:
        with pytest.raises(SchemaError, match=r"cannot write the schema file .*: No such file"):
            SCHEMA.to_toml(tmp_path / "no folder" / "schema.toml")


@pytest.mark.parametrize("name", ["value", "low", "High", "stddev"])
def test_an_attribute_cannot_have_the_name_of_an_answers_column(name: str) -> None:
    with pytest.raises(SchemaError, match="another name"):
        Schema([Ordinal(name, 1, 3)])
    assert Schema([Ordinal("price", 1, 3, column=name)]).names == ("price",)


def test_more_attributes_than_a_release_file_holds_are_refused() -> None:
    with pytest.raises(SchemaError, match="at most 64"):
        Schema([Ordinal(f"a{number}", 1, 1) for number in range(65)])
