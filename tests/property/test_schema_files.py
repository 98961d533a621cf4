"""Schemas of any content come back from their files, and plain data of any kind is refused in words, never crashes."""

import tomllib

from hypothesis import given, settings, strategies as st

from veilcube.errors import SchemaError
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
