"""Drafts of schemas: names and types, never a value."""

import tomllib
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from veilcube.curator.drafting import draft_schema
from veilcube.errors import SchemaError, TableError
from veilcube.schema import Schema

TABLE = pa.table(
    {
        "age": [7741],
        "pay": [7741.5],
        "rate": pa.array([Decimal("7.74")]),
        "born": [date(1977, 4, 1)],
        "seen": [datetime(1977, 4, 1, tzinfo=UTC)],
        "sex": ["CANARY7741"],
        "smoker": [True],
        "notes": [["CANARY7741"]],
    }
)


def kinds_of(draft: str) -> dict[str, str]:
    return {entry["name"]: entry["kind"] for entry in tomllib.loads(draft)["attribute"]}


EXPECTED = {
    "age": "ordinal",
    "pay": "ordinal",
    "rate": "ordinal",
    "born": "ordinal",
    "seen": "ordinal",
    "sex": "nominal",
    "smoker": "nominal",
}


def test_each_column_has_the_kind_that_its_type_suggests() -> None:
    draft = draft_schema(TABLE)
    assert kinds_of(draft) == EXPECTED
    assert '# name = "notes"' in draft


def test_the_placeholders_fit_the_type() -> None:
    blocks = {block.split('"')[1]: block for block in draft_schema(TABLE).split("[[attribute]]")[1:]}
    assert "# low" in blocks["age"]
    assert "# edges" in blocks["pay"]
    assert "# unit" in blocks["born"]
    assert "# values" in blocks["sex"]


def test_a_draft_says_why_its_bounds_are_open_and_holds_no_value() -> None:
    draft = draft_schema(TABLE)
    assert "leak" in draft
    assert "codebook" in draft
    assert "7741" not in draft
    assert "1977" not in draft


def test_a_draft_asks_to_be_completed_when_it_is_used(tmp_path: Path) -> None:
    (tmp_path / "draft.toml").write_text(draft_schema(TABLE.select(["age"])), encoding="utf-8")
    with pytest.raises(SchemaError, match=r"'age'.* needs low and high"):
        Schema.from_toml(tmp_path / "draft.toml")


def test_a_csv_file_is_drafted_by_its_names_whatever_its_rows_hold(tmp_path: Path) -> None:
    drafts = set()
    for rows in ("1,2024-01-01\n", "x,CANARY7741\n", '"', "1,2,3\n1\n", ""):
        (tmp_path / "t.csv").write_text(f"age,born\n{rows}", encoding="utf-8")
        drafts.add(draft_schema(tmp_path / "t.csv"))
    (draft,) = drafts
    assert [entry["name"] for entry in tomllib.loads(draft)["attribute"]] == ["age", "born"]
    assert "CANARY" not in draft
    (tmp_path / "draft.toml").write_text(draft, encoding="utf-8")
    with pytest.raises(SchemaError, match="'age'"):
        Schema.from_toml(tmp_path / "draft.toml")


def test_parquet_pandas_and_databases_are_described_alike(tmp_path: Path) -> None:
    plain = TABLE.drop_columns(["notes", "seen", "rate"])
    expected = {name: EXPECTED[name] for name in plain.column_names}
    pq.write_table(plain, tmp_path / "t.parquet")
    with duckdb.connect(tmp_path / "t.db") as database:
        database.register("given", plain)
        database.execute("CREATE TABLE people AS SELECT * FROM given")
    for draft in (
        draft_schema(tmp_path / "t.parquet"),
        draft_schema(plain.to_pandas().astype({"born": "datetime64[ns]"})),
        draft_schema(f"duckdb:///{tmp_path}/t.db", table="people"),
    ):
        assert kinds_of(draft) == expected
        assert "7741" not in draft.replace("CANARY", "")


def test_values_that_a_type_carries_are_not_listed() -> None:
    draft = draft_schema(pa.table({"x": pa.array(["CANARY7741"]).dictionary_encode()}))
    assert "CANARY" not in draft
    assert "CANARY" not in draft_schema(duckdb.sql("SELECT 'CANARY7741'::ENUM('CANARY7741') AS x, {'CANARY': 1} AS y"))
    assert "CANARY" not in draft_schema(pd.DataFrame({"x": pd.Categorical(["CANARY7741"])}))


def test_a_csv_file_without_a_header_is_refused_and_not_shown(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("39,CANARY7741\n40,x\n", encoding="utf-8")
    with pytest.raises(TableError) as caught:
        draft_schema(tmp_path / "t.csv")
    assert "CANARY" not in str(caught.value)


def test_odd_names_stay_inside_their_line() -> None:
    names = ['quo"te', "new\nline", "# comment", "", "Ψ", "a.b", "tab\t"]
    assert list(kinds_of(draft_schema(pa.table({name: [1] for name in names})))) == names


@pytest.mark.parametrize("content", ["", "\n", "a,a\n"])
def test_broken_files_are_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "t.csv").write_text(content, encoding="utf-8")
    with pytest.raises(TableError):
        draft_schema(tmp_path / "t.csv")
