"""``--delta`` and ``--rho`` in plan and release: compared noise, costs in rho, and what is refused."""

import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from support.command_line import Call, caller, write_people, write_schema
from veilcube.planner import plan

PAIR = ("--epsilon", "1", "--delta", "1e-9")


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Iterator[Call]:
    monkeypatch.chdir(tmp_path)
    write_schema(tmp_path / "people.toml")
    write_people(tmp_path / "people.csv", rows=300)
    return caller(capfd)


def released(call: Call, *words: str) -> dict[str, object]:
    done = call("release", "people.csv", "--schema", "people.toml", "--out", "r.veil", "--json", "--force", *words)
    assert done.code == 0, done.err
    found: dict[str, object] = json.loads(done.out)
    return found


def test_the_table_names_the_noise_of_every_candidate_and_the_reason_follows(call: Call) -> None:
    done = call("plan", "people.toml", *PAIR)
    assert done.code == 0
    assert "at epsilon 1 with delta 1e-09 (rho 0.0149731)" in done.out
    for family in ("laplace", "gaussian"):
        assert any(f" {family} " in line for line in done.out.splitlines())
    assert done.out.count("chosen") == 1
    assert "Laplace noise was taken: its expected error is" in done.out
    assert "Laplace noise scale" in done.out


def test_a_rho_is_planned_with_gaussian_noise_and_drawn_against_rho(call: Call) -> None:
    done = call("plan", "people.toml", "--rho", "0.1", "--strategy", "tree")
    assert done.code == 0
    assert "at rho 0.1 (epsilon 2.71548 with delta 1e-09)" in done.out
    assert "Gaussian noise of sigma" in done.out
    assert "noise scale" not in done.out
    assert done.out.splitlines()[-1].split() == ["0.01", "rho", "1"]


def test_epsilon_alone_is_planned_in_the_words_of_before(call: Call) -> None:
    done = call("plan", "people.toml", "--epsilon", "1")
    assert "at epsilon 1:" in done.out
    assert "; noise scale" in done.out
    assert "laplace" not in done.out.lower()


def test_json_holds_delta_rho_noise_and_the_curve(call: Call) -> None:
    facts = json.loads(call("plan", "people.toml", "--rho", "1/8", "--json").out)
    assert (facts["rho"], facts["delta"]) == ("1/8", "1/1000000000")
    assert facts["noise"]["kind"] == "discrete-gaussian"
    assert {option["noise"] for option in facts["candidates"]} == {"laplace", "gaussian"}
    assert facts["reason"].startswith("Gaussian noise was taken")
    assert Fraction(facts["curve"][0]["rho"]) == Fraction(1, 80)


def test_an_error_beside_a_delta_gives_the_epsilon(call: Call) -> None:
    facts = json.loads(call("plan", "people.toml", "--error", "20", "--delta", "1e-6", "--json").out)
    assert Fraction(facts["epsilon"]) == plan("people.toml", error=20, delta=1e-6).epsilon
    assert 19 < facts["half_width"] <= 20


@pytest.mark.parametrize("suffix", [".svg", ".html"])
def test_the_curve_against_rho_is_drawn_into_a_file(suffix: str, call: Call) -> None:
    assert call("plan", "people.toml", "--rho", "0.1", "--plot", f"curve{suffix}").code == 0
    assert "rho" in Path(f"curve{suffix}").read_text(encoding="utf-8")


def test_a_release_in_rho_tells_its_cost(call: Call) -> None:
    facts = released(call, "--rho", "1/10")
    assert (facts["rho"], facts["delta"]) == ("1/10", "1/1000000000")
    assert "rho" in facts["privacy"]
    pure = released(call, "--epsilon", "1")
    assert "rho" not in pure
    assert "delta" not in pure
    told = call("release", "people.csv", "--schema", "people.toml", "--out", "s.veil", "--rho", "0.1")
    assert "keep account of this rho of 0.1 yourself" in told.out
    assert "rho = 0.1" in call("info", "s.veil").out
    assert "rho = 0.1" in call("query", "s.veil", "age < 30").out


def test_a_delta_above_one_over_the_rows_is_warned_of(call: Call) -> None:
    words = ("release", "people.csv", "--schema", "people.toml", "--out", "r.veil", "--strategy", "wavelet", "--force")
    done = call(*words, "--epsilon", "1", "--delta", "0.01", "--neighbours", "replace")
    assert done.code == 0
    assert "warning: a delta of 0.01 is above 1/300" in done.err
    assert "warning" not in call(*words, "--epsilon", "1", "--delta", "0.01").err


BAD = [
    (("--delta", "1e-9"), "needs the epsilon that it goes with", 6),
    (("--epsilon", "1", "--delta", "0"), "delta=0 is pure", 6),
    (("--epsilon", "1", "--delta", "1"), "must be below 1", 6),
    (("--epsilon", "1", "--delta", "7"), "must be below 1", 6),
    (("--epsilon", "1", "--delta=-1e-9"), "delta must be a number", 6),
    (("--epsilon", "1", "--delta", "little"), "delta must be a number", 6),
    (("--rho", "0.1", "--epsilon", "1"), "a promise of its own", 6),
    (("--rho", "0.1", "--delta", "1e-9"), "a promise of its own", 6),
    (("--rho", "1e-30"), "rho is so small", 6),
    (("--rho", "1e-90"), "rho must be a finite number", 6),
]


@pytest.mark.parametrize(("words", "message", "code"), BAD)
@pytest.mark.parametrize("command", ["plan", "release"])
def test_bad_promises_are_refused_in_one_line(
    command: str, words: tuple[str, ...], message: str, code: int, call: Call
) -> None:
    named = {"plan": ("people.toml",), "release": ("people.csv", "--schema", "people.toml", "--out", "r.veil")}
    done = call(command, *named[command], *words)
    assert (done.code, done.out) == (code, "")
    assert message in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert not Path("r.veil").exists()


def test_budgets_that_are_missing_or_doubled_are_refused(call: Call) -> None:
    done = call("release", "people.csv", "--schema", "people.toml", "--out", "r.veil")
    assert done.code == 6
    assert "name the budget to spend" in done.err
    done = call("plan", "people.toml", "--rho", "1", "--error", "5")
    assert done.code == 10
    assert "give either --epsilon or --rho" in done.err
    done = call("plan", "--useful", "--cells", "10", "--rows", "5", "--error", "0.1", "--rho", "1")
    assert done.code == 10
    done = call("plan", "--useful", "--cells", "10", "--rows", "500", "--error", "0.1", "--delta", "x")
    assert done.code == 10
    assert "--delta is a number" in done.err


def test_a_budget_in_rho_pays_the_rho_of_a_pair_whatever_the_noise(call: Call) -> None:
    assert call("ledger", "create", "b.db", "people", "--rho", "1").code == 0
    facts = released(call, *PAIR, "--strategy", "identity", "--ledger", "b.db", "--dataset", "people")
    # Laplace noise of epsilon 1 would cost half of the budget.
    assert Fraction(str(facts["rho"])) == plan("people.toml", 1, delta=1e-9).rho
    shown = json.loads(call("ledger", "show", "b.db", "people", "--json").out)
    assert Fraction(1, 100) < Fraction(shown["datasets"][0]["spent"]) < Fraction(2, 100)


def test_gaussian_noise_is_not_charged_to_a_budget_in_epsilon(call: Call) -> None:
    assert call("ledger", "create", "b.db", "people", "--epsilon", "5").code == 0
    words = ("release", "people.csv", "--schema", "people.toml", "--out", "r.veil", "--rho", "0.1")
    done = call(*words, "--ledger", "b.db", "--dataset", "people")
    assert done.code != 0
    assert "rho" in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert not Path("r.veil").exists()
