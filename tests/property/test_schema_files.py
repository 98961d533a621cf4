"""Schemas of any content come back from their files, and plain data of any kind is refused in words, never crashes."""

import json
import tomllib
from datetime import date

import numpy as np
from hypothesis import given, settings, strategies as st

from veilcube.errors import QueryError, SchemaError
from veilcube.query import read_query
from veilcube.schema import Nominal, Ordinal, Schema

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
SCALAR = st.none() | st.booleans() | st.integers(-(10**400), 10**400) | st.floats() | TEXT | st.dates()
PLAIN = st.recursive(SCALAR, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3))
SETTINGS = ("name", "column", "low", "high", "edges", "unit", "values", "hierarchy", "outside", "missing")
LIKELY = st.sampled_from(["a", 0, 5, "2023", "2024-02", "day", "month", ["x", "y"], [0, 1.5], {"G": ["x"]}, "other"])


@st.composite
def trees(draw: st.DrawFn) -> dict[str, object]:
    """Draw a nested specification with distinct names: keys and leaves are numbered as they are made."""
    made = iter(range(10**6))

    def name() -> str:
        return f"{next(made)}{draw(TEXT)}"

    def below(depth: int) -> object:
        if depth == 0 or draw(st.booleans()):
            return [name() for _ in range(draw(st.integers(1, 3)))]
        groups = {name(): below(depth - 1) for _ in range(draw(st.integers(1, 3)))}
        return groups if draw(st.booleans()) else [name(), groups, name()]

    return {name(): below(3) for _ in range(draw(st.integers(1, 4)))}


@given(trees(), TEXT, st.booleans())
@settings(max_examples=60, deadline=None)
def test_any_hierarchy_keeps_its_cells_in_a_file(tree: dict[str, object], name: str, extra: bool) -> None:
    job = Nominal(f"-{name}", hierarchy=tree, outside="other" if extra else "reject")
    schema = Schema([Ordinal("age", 0, 9), job, Ordinal("year", "2023", "2024", unit="year")])
    again = Schema.from_dict(tomllib.loads(schema.to_toml()))
    assert again == schema
    assert again.attributes[1].labels() == job.labels()
    assert again.fingerprint() == schema.fingerprint()


@given(
    st.fixed_dictionaries({"kind": st.sampled_from(["ordinal", "nominal"]) | PLAIN, "name": st.just("a") | PLAIN}),
    st.dictionaries(st.sampled_from(SETTINGS), LIKELY | PLAIN, max_size=4),
)
@settings(max_examples=200, deadline=None)
def test_data_of_any_kind_makes_a_schema_or_a_schema_error(head: dict[str, object], rest: dict[str, object]) -> None:
    try:
        schema = Schema.from_dict({"attribute": [head | rest]})
    except SchemaError:
        return
    assert Schema.from_dict(schema.to_dict()) == schema


AGE = Ordinal("age", 0, 9, missing="cell")
INCOME = Ordinal("income", edges=[0, 1, 2, 25, 50], outside="other")
MONTH = Ordinal("month", "2023", "2024", unit="month")
ENDS = {
    "age": st.none() | st.integers(-2, 12) | st.floats(-2, 12) | st.sampled_from([float("inf"), -(10**400)]),
    "income": st.none() | st.sampled_from([0, 1, 2, 25.0, 50, 24, -1, 60, 7]),
    "month": st.none() | st.sampled_from(["2023", "2023-02", "2024-01-01", "2023-04-30", date(2024, 1, 1)]),
}
VALUES = {
    "age": st.none() | st.integers(0, 9) | st.sampled_from([3.0, np.int64(4), np.float64(5)]),
    "income": st.sampled_from([0, 1.0]),
    "month": st.sampled_from(["2023", "2023-02", "2024-12"]),
}


@st.composite
def schemas_with_entries(draw: st.DrawFn) -> tuple[Schema, list[dict[str, object]]]:
    """Draw attributes and what may be impossible among them, most of it well formed, in the words of queries."""
    job = Nominal("job", hierarchy=draw(trees()))
    choices = {
        name: st.one_of(
            VALUES[name],
            st.tuples(ENDS[name], ENDS[name]),
            st.lists(VALUES[name] | st.tuples(ENDS[name], ENDS[name]), min_size=1, max_size=3),
        )
        for name in ENDS
    }
    node = st.sampled_from([*job.hierarchy.groups, *job.values])
    choices["job"] = node | st.lists(node, min_size=1, max_size=3) | st.sets(node, min_size=1, max_size=3)
    names = st.sets(st.sampled_from(sorted(choices)), min_size=1)
    entries = [{name: draw(choices[name]) for name in sorted(draw(names))} for _ in range(draw(st.integers(1, 3)))]
    return Schema([AGE, job, INCOME, MONTH]), [*entries, *draw(st.sampled_from([[], [], [], [{}]]))]


@given(schemas_with_entries())
@settings(max_examples=150, deadline=None)
def test_impossible_combinations_mean_what_queries_mean_and_keep_it_in_files(
    drawn: tuple[Schema, list[dict[str, object]]],
) -> None:
    plain, entries = drawn
    try:
        regions = [read_query(plain, entry) for entry in entries]
    except QueryError:
        regions = []
    try:
        schema = Schema(plain.attributes, impossible=entries)
    except SchemaError:
        possible = plain.cells - (regions[0].union(*regions[1:]).cells if regions else plain.cells)
        assert possible == 0 or not all(entries)
        return
    for region, box in zip(regions, schema.impossible_boxes, strict=True):
        assert all(np.array_equal(region.boxes[0].mask(axis), mask) for axis, mask in enumerate(box))
    for again in (tomllib.loads(schema.to_toml()), json.loads(json.dumps(schema.to_dict(), allow_nan=False))):
        read = Schema.from_dict(again)
        assert read == schema
        assert hash(read) == hash(schema)
        assert read.impossible == schema.impossible
        assert read.fingerprint() == schema.fingerprint()
        assert read.to_toml() == schema.to_toml()
    assert Schema(plain.attributes, impossible=schema.impossible) == schema
    assert schema != plain


@given(st.lists(st.dictionaries(st.sampled_from(["age", "income", "JOB"]) | TEXT, LIKELY | PLAIN, max_size=3)) | PLAIN)
@settings(max_examples=200, deadline=None)
def test_entries_of_any_kind_make_a_schema_or_a_schema_error(entries: object) -> None:
    plain = Schema([AGE, INCOME, Nominal("job", ["x", "y", True, 5])])
    try:
        schema = Schema.from_dict(plain.to_dict() | {"impossible": entries})
    except SchemaError:
        return
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict(), allow_nan=False))) == schema
    assert Schema.from_dict(tomllib.loads(schema.to_toml())) == schema
