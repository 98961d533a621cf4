"""From plan to release on the command line: what was planned is what is released, and it says so."""

import json
import random
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import veilcube as vc
from support.command_line import Call, caller, write_schema

QUESTIONS = ("--query", "3 * age >= 45", "--query", "sex = 'Male' AND age < 30")


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Iterator[Call]:
    monkeypatch.chdir(tmp_path)
    write_schema(tmp_path / "people.toml")
    write_rows(tmp_path / "people.csv", 300)
    return caller(capfd)


def write_rows(path: Path, rows: int) -> None:
    drawn = random.Random(3)
    lines = [f"{drawn.randint(20, 60)},{drawn.choice(['Female', 'Male'])},p{row % 90}" for row in range(rows)]
    path.write_text("\n".join(["age,sex,who", *lines]) + "\n", encoding="utf-8")


def facts_of(done: object) -> dict[str, object]:
    assert done.code == 0, done.err  # type: ignore[attr-defined]
    found: dict[str, object] = json.loads(done.out)  # type: ignore[attr-defined]
    return found


def test_a_plan_is_carried_out_as_it_was_made(call: Call) -> None:
    planned = facts_of(
        call("plan", "people.toml", "--error", "30", "--strategy", "identity", *QUESTIONS, "--out", "p.plan", "--json")
    )
    assert planned["out"] == "p.plan"
    released = facts_of(call("release", "people.csv", "--plan", "p.plan", "--out", "a.veil", "--json"))
    assert released["plan"]["strategy"] == {"name": "identity"}  # type: ignore[index]
    assert released["epsilon"] == planned["epsilon"]
    compared = released["comparison"]
    assert compared["promised"]["half_width"] == pytest.approx(planned["half_width"])  # type: ignore[index]
    assert compared["released"]["half_width"] == pytest.approx(planned["half_width"])  # type: ignore[index]
    assert compared["is_kept"] is True  # type: ignore[index]
    assert planned["half_width"] <= 30  # type: ignore[operator]


def test_a_release_of_the_same_words_measures_what_was_planned(call: Call) -> None:
    for words in (
        ("--error", "30", *QUESTIONS),
        ("--error", "30", "--confidence", "0.9", "--strategy", "identity", *QUESTIONS),
        ("--epsilon", "1/2", "--workload", "prefixes"),
        ("--epsilon", "1", "--delta", "1e-9", "--workload", "marginals-1"),
        ("--rho", "0.1", "--workload", "random", "--strategy", "wavelet", "--flat", "sex"),
    ):
        planned = facts_of(call("plan", "people.toml", *words, "--json"))
        released = facts_of(
            call("release", "people.csv", "--schema", "people.toml", *words, "--out", "a.veil", "--force", "--json")
        )
        for name in ("strategy", "epsilon", "expected_error"):
            assert released["plan"][name] == planned[name]  # type: ignore[index]


def test_what_was_promised_and_released_is_printed(call: Call) -> None:
    done = call("release", "people.csv", "--schema", "people.toml", "--error", "30", *QUESTIONS, "--out", "a.veil")
    assert done.code == 0
    assert "Promised +-29.98 for your queries; released +-29.98 (95%, root mean square)." in done.out
    done = call(
        "release",
        "people.csv",
        "--schema",
        "people.toml",
        "--epsilon",
        "1",
        "--strategy",
        "grouped tables",
        "--out",
        "b.veil",
    )
    assert "released not looked at" in done.out


def test_a_plan_file_needs_nothing_else_and_tells_what_to_do_next(call: Call) -> None:
    done = call("plan", "people.toml", "--epsilon", "1", "--person", "who", "--max-rows", "2", "--out", "p.plan")
    assert "release TABLE --plan p.plan --out table.veil" in done.out
    assert call("plan", "people.toml", "--epsilon", "1", "--out", "p.plan").code == 9
    assert (
        call(
            "plan", "people.toml", "--epsilon", "1", "--person", "who", "--max-rows", "2", "--out", "p.plan", "--force"
        ).code
        == 0
    )
    facts = facts_of(call("release", "people.csv", "--plan", "p.plan", "--out", "a.veil", "--json"))
    assert facts["privacy"]["unit"] == {"kind": "person", "column": "who", "max_rows": 2}  # type: ignore[index]
    write_rows(Path("people.csv"), 500)  # a plan reads no data: the table may have changed since
    same = (
        "--epsilon",
        "1",
        "--person",
        "who",
        "--max-rows",
        "2",
        "--neighbours",
        "add-remove",
        "--schema",
        "people.toml",
    )
    assert call("release", "people.csv", "--plan", "p.plan", *same, "--out", "b.veil").code == 0


@pytest.mark.parametrize(
    "beside",
    [
        ("--epsilon", "2"),
        ("--delta", "1e-9", "--epsilon", "1"),
        ("--rho", "1"),
        ("--strategy", "tree"),
        ("--strategy", "wavelet", "--flat", "age"),
        ("--neighbours", "replace"),
        ("--error", "30"),
        ("--workload", "prefixes"),
        ("--query", "age < 30"),
        ("--person", "who", "--max-rows", "2"),
        ("--schema", "other.toml"),
    ],
    ids=" ".join,
)
def test_nothing_beside_a_plan_may_contradict_it(beside: tuple[str, ...], call: Call) -> None:
    vc.Schema([vc.Ordinal("age", 20, 61), vc.Nominal("sex", ["Female", "Male"])]).to_toml("other.toml")
    assert call("plan", "people.toml", "--epsilon", "1", "--strategy", "identity", "--out", "p.plan").code == 0
    done = call("release", "people.csv", "--plan", "p.plan", *beside, "--out", "a.veil")
    assert done.code == 10
    assert done.err.count("\n") == 1
    assert not Path("a.veil").exists()


def test_a_refused_plan_file_charges_nothing(call: Call) -> None:
    assert call("ledger", "create", "budget.db", "people", "--epsilon", "3").code == 0
    assert call("plan", "people.toml", "--epsilon", "1", "--out", "p.plan").code == 0
    text = Path("p.plan").read_text(encoding="utf-8")
    charged = ("--ledger", "budget.db", "--dataset", "people")
    for content in (text.replace('"epsilon": "1"', '"epsilon": "1/2"'), text[:-100], "", "{}", "nonsense"):
        assert content != text
        Path("p.plan").write_text(content, encoding="utf-8")
        done = call("release", "people.csv", "--plan", "p.plan", *charged, "--out", "a.veil")
        assert done.code == 10
        assert "plan" in done.err
        assert done.err.count("\n") == 1
    assert "3" in call("ledger", "show", "budget.db").out
    Path("p.plan").write_text(text, encoding="utf-8")
    assert call("release", "people.csv", "--plan", "p.plan", *charged, "--out", "a.veil").code == 0
    assert sqlite3.connect("budget.db").execute("SELECT COUNT(*) FROM charges").fetchone() == (1,)


@pytest.mark.parametrize(
    ("words", "strategy"),
    [
        (("wavelet", "--flat", "age", "--threshold", "pooled"), vc.Wavelet(["age"], "pooled")),
        (("wavelet", "--flat", "age,sex"), vc.Wavelet(["age", "sex"])),
        (("marginals", "--tables", "age,sex", "--tables", "sex"), vc.Marginals(tables=(("age", "sex"), ("sex",)))),
        (("marginals", "--k", "1"), vc.Marginals(k=1)),
        (
            ("tree", "--branching", "age=6,2", "--branching", "sex=flat"),
            vc.Tree({"age": [6, 2], "sex": "flat"}, refine=False),
        ),
        (("tree", "--branching", "8"), vc.Tree(8, refine=False)),
        (("staged tree", "--weights", "1/2,1/2"), vc.Tree(weights=["1/2", "1/2"])),
        (
            ("adaptive", "--partition", "grow", "--split", "0.9", "--threshold", "3", "--smooth", "0"),
            vc.Adaptive("grow", 0.9, 0, 3),
        ),
        (("adaptive", "--parts", "4,2"), vc.Adaptive(parts=(4, 2))),
        (("kd tree", "--split", "30/31", "--side", "4"), vc.KdTree(30 / 31, 4)),
        (("grouped tables", "--full-cells"), vc.GroupedTables(full_cells=True)),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, tuple) else "",
)
def test_every_option_of_a_strategy_is_within_reach(words: tuple[str, ...], strategy: object, call: Call) -> None:
    planned = facts_of(call("plan", "people.toml", "--epsilon", "1", "--strategy", *words, "--json"))
    expected = vc.plan("people.toml", epsilon=1, strategy=strategy)  # type: ignore[arg-type]
    assert planned["strategy"] == json.loads(json.dumps(expected.strategy.to_dict()))
    released = facts_of(
        call(
            "release",
            "people.csv",
            "--schema",
            "people.toml",
            "--epsilon",
            "1",
            "--strategy",
            *words,
            "--out",
            "a.veil",
            "--json",
        )
    )
    assert released["plan"]["strategy"] == planned["strategy"]  # type: ignore[index]


def test_a_file_of_toml_says_the_same(call: Call) -> None:
    Path("s.toml").write_text('[strategy]\nname = "wavelet"\nflat = ["age"]\n', encoding="utf-8")
    assert facts_of(call("plan", "people.toml", "--epsilon", "1", "--strategy", "s.toml", "--json"))["strategy"] == {
        "name": "wavelet",
        "flat": ["age"],
        "threshold": False,
    }
    assert call("plan", "people.toml", "--epsilon", "1", "--strategy", "s.toml", "--flat", "sex").code == 10
    assert call("plan", "people.toml", "--epsilon", "1", "--strategy", "none.toml").code == 10


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("--strategy", "wavelett"), "did you mean 'wavelet'"),
        (("--strategy", "wavelet", "--flat", "aeg"), "did you mean 'age'"),
        (("--strategy", "identity", "--k", "2"), "'k' is an option of marginals"),
        (("--flat", "age"), "'flat' is an option of wavelet"),
        (("--strategy", "wavelet", "--treshold", "pooled"), "did you mean '--threshold'"),
        (("--strategy", "tree", "--branching", "8", "--branching", "4"), "--branching takes one value"),
    ],
    ids=" ".join,
)
def test_mistyped_strategies_and_options_are_told_what_was_meant(words: tuple[str, ...], hint: str, call: Call) -> None:
    done = call("plan", "people.toml", "--epsilon", "1", *words)
    assert done.code in (2, 10)
    assert hint in done.err
    assert done.err.count("\n") == 1


def test_a_cube_that_does_not_fit_is_planned_without_warnings_and_refused_for_a_tree(tmp_path: Path) -> None:
    vc.Schema([vc.Ordinal("a", 0, 426_000), vc.Ordinal("b", 0, 422_000)]).to_toml(tmp_path / "wide.toml")
    command = [sys.executable, "-W", "error", "-m", "veilcube.cli", "plan", "wide.toml", "--epsilon", "1"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stderr == ""
    assert "so tables of attributes are counted in its place" in done.stdout
    refused = subprocess.run(
        [*command, "--strategy", "tree"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert refused.returncode == 11
    assert refused.stdout == ""
    assert "releasing 179,772,848,001 cells needs" in refused.stderr
