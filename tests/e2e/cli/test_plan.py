"""``veilcube plan`` says what it compared, for which questions, and draws error against epsilon."""

import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from support.command_line import Call, caller, write_schema
from veilcube.cli.pages.error_curve import curves_of, text_plot
from veilcube.planner import plan
from veilcube.schema import Schema


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Iterator[Call]:
    monkeypatch.chdir(tmp_path)
    write_schema(tmp_path / "people.toml")
    return caller(capfd)


def test_the_table_holds_every_candidate_and_marks_the_chosen_one(call: Call) -> None:
    done = call("plan", "people.toml", "--epsilon", "0.5")
    assert done.code == 0
    rows = [line.split("  ")[0] for line in done.out.splitlines()]
    assert "identity" in rows
    assert "tree" in rows
    assert done.out.count("chosen") == 1
    assert "trees were tried" in done.out
    assert "* tree" in done.out


def test_an_error_gives_the_epsilon(call: Call) -> None:
    facts = json.loads(call("plan", "people.toml", "--error", "20", "--confidence", "0.9", "--json").out)
    assert facts["half_width"] <= 20
    assert facts["half_width"] > 19
    assert facts["confidence"] == 0.9
    chosen = plan("people.toml", error=20, confidence=0.9)
    assert Fraction(facts["epsilon"]) == chosen.epsilon
    assert facts["expected_error"] == pytest.approx(chosen.expected_error)


def test_json_holds_the_curve_of_error_against_epsilon(call: Call) -> None:
    facts = json.loads(call("plan", "people.toml", "--epsilon", "1", "--json").out)
    curve = [row for row in facts["curve"] if row["strategy"] == facts["strategy"]["name"]]
    errors = [row["expected_error"] for row in curve]
    assert errors == sorted(errors, reverse=True)
    assert Fraction(curve[0]["epsilon"]) < 1 < Fraction(curve[-1]["epsilon"])


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("random", "2,000 random ranges"),
        ("prefixes", "82 prefixes"),
        ("marginals-1", "43 cells of marginals"),
        ("queries.sql", "your queries"),
    ],
)
def test_a_workload_can_be_named_or_read_from_a_file(asked: str, words: str, call: Call) -> None:
    Path("queries.sql").write_text("-- elderly\nage >= 50\n\nSELECT COUNT(*) FROM t GROUP BY sex\n", encoding="utf-8")
    done = call("plan", "people.toml", "--epsilon", "1", "--workload", asked)
    assert done.code == 0
    assert words in done.out


@pytest.mark.parametrize(("suffix", "words"), [(".svg", "<svg"), (".html", "<html")])
def test_the_curve_is_drawn_into_a_file(suffix: str, words: str, call: Call) -> None:
    done = call("plan", "people.toml", "--epsilon", "1", "--plot", f"curve{suffix}")
    assert done.code == 0
    assert f"curve{suffix}" in done.out
    drawn = Path(f"curve{suffix}").read_text(encoding="utf-8")
    assert words in drawn
    assert "https://cdn" not in drawn


def test_text_plot_marks_both_curves_from_high_to_low(tmp_path: Path) -> None:
    lines = text_plot(curves_of(plan(Schema.from_toml(write_schema(tmp_path / "people.toml")), 1, "tree"))).splitlines()
    columns = [line.find("*") for line in lines[1:] if "*" in line]
    assert columns == sorted(columns)
    assert len(columns) >= 4
    assert lines[-1].split() == ["0.1", "epsilon", "10"]
    assert any("." in line.split("|", 1)[-1] for line in lines[1:-2])


@pytest.mark.parametrize(
    ("words", "message", "code"),
    [
        ((), "give either --epsilon", 10),
        (("--epsilon", "1", "--error", "5"), "give either --epsilon", 10),
        (("--error", "0"), "impossible", 10),
        (("--error", "5", "--confidence", "2"), "confidence", 10),
        (("--epsilon", "1", "--plot", "curve.pdf"), "ends in .html or .svg", 10),
        (("--epsilon", "1", "--plot", "nowhere/curve.svg"), "cannot write the plot", 9),
        (("--epsilon", "1", "--workload", "nothing"), "not known", 5),
        (("--epsilon", "1", "--workload", "empty.sql"), "holds no query", 5),
        (("--epsilon", "1", "--workload", "marginals-9"), "do not exist", 5),
        (("--epsilon", "1", "--workload", "random", "--query", "age < 30"), "either --workload or --query", 10),
        (("--epsilon", "1", "--strategy", "magic"), "not known", 10),
    ],
)
def test_bad_input_is_refused_in_one_line(words: tuple[str, ...], message: str, code: int, call: Call) -> None:
    Path("empty.sql").write_text("-- nothing\n", encoding="utf-8")
    done = call("plan", "people.toml", *words)
    assert (done.code, done.out) == (code, "")
    assert message in done.err
    assert len(done.err.strip().splitlines()) == 1
