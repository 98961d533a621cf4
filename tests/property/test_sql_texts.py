"""Thousands of SQL texts, right and wrong: each is answered as a database answers it, or refused in one sentence."""

import warnings
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pytest

import veilcube as vc
from support.command_line import caller
from support.releases import release_of
from support.sql_texts import COLUMNS, SCHEMA, VALUES, SqlTexts
from veilcube.errors import QueryError
from veilcube.query.sql import read_sql
from veilcube.schema import Region

STRATEGIES = ("identity", vc.Tree(refine=False), vc.Wavelet(flat=()), "matched", vc.Marginals(k=2), vc.Marginals(k=5))


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    """A table with one row for each combination of values."""
    connection = duckdb.connect(config={"threads": 1, "enable_external_access": False})
    tables = []
    for name, kind in COLUMNS.items():
        connection.execute(f"CREATE TABLE of_{name} ({name} {kind})")
        connection.executemany(f"INSERT INTO of_{name} VALUES (?)", [[value] for value in VALUES[name]])
        tables.append(f"of_{name}")
    connection.execute(f"CREATE TABLE people AS SELECT * FROM {' CROSS JOIN '.join(tables)}")
    yield connection
    connection.close()


def _read(text: str) -> Region | None:
    """Return the cells that a text selects, or None if it is refused: in one line, and without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return read_sql(SCHEMA, text).region
        except QueryError as refusal:
            message = str(refusal)
            assert message.strip(), text
            assert "\n" not in message, text
            assert len(message) < 500, text
            return None


@pytest.mark.parametrize("seed", range(4))
def test_every_text_is_read_or_refused_in_one_sentence(seed: int) -> None:
    texts = SqlTexts(seed, oddness=1.0)
    read = [_read(texts.statement()) is not None for _ in range(1500)]
    assert 20 < sum(read) < 1480


@pytest.mark.parametrize("text", ["age > 1e4.0", "age > 1e", "age = 1e4.0", "income IN (0, 1e+)", "1.5.2 < age"])
def test_what_is_no_number_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(QueryError):
        read_sql(SCHEMA, text)


@pytest.mark.parametrize("spelled", ["30", "30.0", "3e1", "3E+1", "300e-1", "030", "+30", "-(-30)", "(30)", "3_0"])
def test_a_number_is_the_same_however_it_is_spelled(spelled: str) -> None:
    assert read_sql(SCHEMA, f"age = {spelled}").region.rectangle() == _Rectangle(read_sql(SCHEMA, "age = 30").region)


class _Rectangle:
    """Compares the blocks of two regions, which are pairs of arrays."""

    def __init__(self, region: Region) -> None:
        self._block = region.rectangle()

    def __eq__(self, other: object) -> bool:
        assert isinstance(other, tuple)
        assert self._block is not None
        return all(np.array_equal(mine, theirs) for mine, theirs in zip(self._block, other, strict=True))

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize(("seed", "oddness"), [(0, 0.0), (1, 0.1), (2, 0.3)])
def test_what_is_read_counts_the_rows_that_a_database_counts(
    database: duckdb.DuckDBPyConnection, seed: int, oddness: float
) -> None:
    texts, compared = SqlTexts(seed, oddness), 0
    per_cell = _rows_per_cell()
    for _ in range(300):
        condition = texts.condition()
        region = _read(condition)
        if region is None:
            continue
        try:
            (expected,) = database.execute(f"SELECT COUNT(*) FROM people WHERE {condition}").fetchone() or (None,)
        except duckdb.Error:
            continue  # a date such as '2024-03', which the database has no word for
        assert int(per_cell[region.mask()].sum()) == expected, condition
        compared += 1
    assert compared > 60


def _rows_per_cell() -> np.ndarray:
    """Count the rows of each cell from the values alone: the bins of income hold two each."""
    rows = [np.ones(size, dtype=np.int64) for size in SCHEMA.shape]
    rows[1] = np.full(3, 2)
    assert [int(axis.sum()) for axis in rows] == [len(values) for values in VALUES.values()]
    return np.einsum("a,b,c,d,e->abcde", *rows)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
def test_every_release_answers_every_text_or_refuses_it(strategy: object) -> None:
    release = release_of(SCHEMA, np.ones(SCHEMA.shape, dtype=np.int64), strategy=strategy)
    texts, answered = SqlTexts(3, oddness=0.2), 0
    for _ in range(120):
        text = texts.statement()
        try:
            found = release.count(text)
        except QueryError:
            continue
        assert np.all(np.asarray(found.low) <= np.asarray(found.high)), text
        answered += 1
    assert answered > 10


def test_the_command_answers_every_text_or_refuses_it_in_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    release_of(SCHEMA, np.ones(SCHEMA.shape, dtype=np.int64), strategy=vc.Tree(refine=False)).save(tmp_path / "r.veil")
    call, codes = caller(capfd), set()
    for oddness in (0.0, 1.0):
        texts = SqlTexts(5, oddness)
        for _ in range(60):
            text = texts.statement()
            done = call("query", str(tmp_path / "r.veil"), text)
            codes.add(done.code)
            assert done.code in (0, 2, 5), (text, done)
            assert "unexpected" not in done.err, text
            if done.code:
                assert done.err.startswith("error: "), text
                assert done.err.count("\n") == 1, text
    assert codes >= {0, 5}
    empty = call("query", str(tmp_path / "r.veil"), "SELECT job, COUNT(*) FROM people WHERE age > 200 GROUP BY job")
    assert (empty.code, empty.err) == (0, "")
