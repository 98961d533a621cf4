"""Wherever a name or a value is refused, the one that was probably meant is named."""

from pathlib import Path

import pytest

import veilcube as vc
from support.command_line import caller
from veilcube.errors import PlanError, QueryError, SchemaError, TableError

SCHEMA = vc.Schema(
    [vc.Nominal("region", ["North", "South"]), vc.Nominal("diagnosis", hierarchy={"I": ["I10", "I20"], "E": ["E11"]})]
)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["relaese"], "'release'"),
        (["ledger", "shwo"], "'show'"),
        (["plan", "--epsilno", "1"], "'--epsilon'"),
        (["plan", "--neighbours", "relpace", "x.toml"], "'replace'"),
        (["synthesize", "--engine", "gibs", "--from", "x", "--out", "y.csv"], "'gibbs'"),
        (["--verison"], "'--version'"),
    ],
)
def test_a_mistyped_word_of_a_command_is_answered_with_the_one_that_was_meant(
    words: list[str], meant: str, capfd: pytest.CaptureFixture[str]
) -> None:
    done = caller(capfd)(*words)
    assert done.code == 2
    assert f"did you mean {meant}?" in done.err
    assert done.err.count("\n") == 1
    assert "Value error" not in done.err


def test_what_is_like_no_command_is_refused_without_a_guess(capfd: pytest.CaptureFixture[str]) -> None:
    assert caller(capfd)("frobnicate").err == "error: No such command 'frobnicate' (see 'veilcube --help')\n"


def test_a_mistyped_attribute_or_value_of_a_question_is_answered_with_the_one_that_was_meant() -> None:
    release = vc.release(vc.Cube(SCHEMA, [[1, 2, 3], [4, 5, 6]]))
    with pytest.raises(QueryError, match=r"no attribute 'reginon'; did you mean 'region'\? the schema has region, "):
        release.count(reginon="North")
    with pytest.raises(QueryError, match=r"no value or group 'I1O'; did you mean 'I10'\?"):
        release.count(diagnosis="I1O")
    with pytest.raises(QueryError, match=r"did you mean 'diagnosis'\? if it is a text"):
        release.count("diagnosys = region")


def test_a_mistyped_strategy_or_setting_is_answered_with_the_one_that_was_meant() -> None:
    with pytest.raises(PlanError, match=r"'wavelte' is not known; did you mean 'wavelet'\?"):
        vc.plan(SCHEMA, 1, strategy="wavelte")
    with pytest.raises(PlanError, match=r"did you mean 'region'\?"):
        vc.plan(SCHEMA, 1, strategy=vc.Wavelet(flat=["regoin"]))
    with pytest.raises(PlanError, match=r"did you mean 'region'\?"):
        vc.plan(SCHEMA, 1, strategy=vc.Tree(branching={"regoin": 2}, refine=False))
    with pytest.raises(SchemaError, match=r"unknown settings: vlaues; did you mean 'values'\? allowed are"):
        vc.Schema.from_dict({"attribute": [{"name": "sex", "kind": "nominal", "vlaues": ["F"]}]})


def test_a_mistyped_column_is_answered_with_the_one_that_was_meant_and_never_with_a_row(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("regin,diagnosis\nNorth,I10\n")
    with pytest.raises(TableError, match=r"no column 'region'; did you mean 'regin'\? it has regin, diagnosis;"):
        vc.count(str(tmp_path / "t.csv"), SCHEMA)
