"""``veilcube plan --useful`` finds rows, error or epsilon from the other two."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.command_line import Call, caller, write_schema
from veilcube.planner.usefulness import usefulness


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Iterator[Call]:
    monkeypatch.chdir(tmp_path)
    write_schema(tmp_path / "people.toml")
    return caller(capfd)


def test_the_rows_of_the_papers_example_are_shown_whole(call: Call) -> None:
    done = call("plan", "--useful", "--cells", "100", "--epsilon", "0.05", "--error", "0.02")
    assert done.code == 0
    for rows in ("760,091", "116,998", "27,748"):
        assert rows in done.out


@pytest.mark.parametrize(
    ("words", "solved"),
    [
        (("--epsilon", "0.5", "--error", "0.01"), "rows"),
        (("--epsilon", "0.5", "--rows", "10000"), "error"),
        (("--error", "0.01", "--rows", "10000"), "epsilon"),
    ],
)
def test_a_schema_gives_the_cells_and_json_every_direction(words: tuple[str, ...], solved: str, call: Call) -> None:
    facts = json.loads(call("plan", "people.toml", "--useful", *words, "--delta", "0.1", "--json").out)
    given = {words[0][2:]: float(words[1]), words[2][2:]: float(words[3])}
    expected = usefulness(cells=82, delta=0.1, **given)  # type: ignore[arg-type]
    assert facts["solved"] == solved
    assert facts[solved] == pytest.approx(dict(getattr(expected, solved)))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--useful", "--epsilon", "1", "--error", "0.1"), "either a schema file or --cells"),
        (("people.toml", "--useful", "--cells", "5", "--epsilon", "1", "--error", "0.1"), "either a schema file"),
        (("--useful", "--cells", "5", "--epsilon", "1"), "two of rows, error and epsilon"),
        (("--useful", "--cells", "5", "--epsilon", "1", "--error", "0.1", "--query", "age < 3"), "--useful goes with"),
        (("people.toml", "--epsilon", "1", "--rows", "5"), "go with --useful"),
        (("--epsilon", "1"), "needs a schema file"),
        (("--useful", "--cells", "0", "--epsilon", "1", "--error", "0.1"), "cells must be"),
    ],
)
def test_bad_wishes_are_refused_in_one_line(words: tuple[str, ...], message: str, call: Call) -> None:
    done = call("plan", *words)
    assert (done.code, done.out) == (10, "")
    assert message in done.err
    assert len(done.err.strip().splitlines()) == 1
