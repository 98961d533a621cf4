"""Every line that a command prints is explained in docs/reference/output.md, and every heading of its tables."""

import random
import re
from itertools import pairwise
from pathlib import Path

import pytest

import veilcube as vc
from support.command_line import Call, caller

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "output.md"
ROW = re.compile(r"^\| (`.*?`) \| .* \|$|^\| (`.*?`) \| \|$", re.MULTILINE)
CODE = re.compile(r"`([^`]*)`")
SCHEMA = """
[[attribute]]
name = "age"
kind = "ordinal"
edges = [0, 20, 40, 60, 80, 100]

[[attribute]]
name = "district"
kind = "nominal"
values = ["North", "South"]
"""
DIAGNOSIS = """
[[attribute]]
name = "diagnosis"
kind = "nominal"
hierarchy = { Circulatory = ["I10", "I21"], Respiratory = ["J18", "J45"] }
"""
OF_THE_SCHEMA = {"age", "district", "diagnosis", "diagnosis:Level 1"}
MECHANISMS = """
DOMAIN = ["a", "b"]

def good(records, noise):
    return noise.add(len(records), scale=1, sensitivity=1)

def bad(records, noise):
    return noise.add(records.count("a"), scale=1) / max(len(records), 1)
"""
ACCOUNT = ("--ledger", "budget.db", "--dataset", "visits")
PERSONS = ("--person", "patient_id", "--max-rows", "3", "--measure-cap", "0.5", "--epsilon", "1")
COMMANDS: list[tuple[str, ...]] = [
    ("schema", "check", "three.toml"),
    ("schema", "check", "three.toml", "--against", "visits.csv"),
    ("schema", "check", "three.toml", "--against", "wrong.csv"),
    ("schema", "draft", "visits.csv", "--out", "draft.toml"),
    ("ledger", "create", "budget.db", "visits", "--epsilon", "4"),
    ("ledger", "create", "budget.db", "others", "--rho", "1/2"),
    ("ledger", "allow", "budget.db", "visits", "Ada", "--epsilon", "1"),
    ("ledger", "allow", "budget.db", "visits", "Bob", "--epsilon", "7/2"),
    ("plan", "three.toml", "--epsilon", "1"),
    ("plan", "two.toml", "--error", "30", "--query", "age >= 40"),
    ("plan", "two.toml", "--epsilon", "1", "--delta", "1e-9"),
    ("plan", "two.toml", "--rho", "1/10"),
    ("plan", "two.toml", "--useful", "--error", "0.1", "--epsilon", "1"),
    ("cap", "visits.csv", "--schema", "three.toml", "--person", "patient_id", "--epsilon", "1"),
    ("release", "visits.csv", "--schema", "three.toml", "--out", "v.veil", "--note", "May", *PERSONS, *ACCOUNT),
    ("release", "visits.csv", "--schema", "two.toml", "--out", "capped.veil", *PERSONS),
    ("release", "visits.csv", "--schema", "two.toml", "--out", "two.veil", "--epsilon", "20"),
    ("release", "visits.csv", "--schema", "two.toml", "--out", "rho.veil", "--rho", "1/2"),
    ("release", "visits.csv", "--schema", "three.toml", "--out", "m.veil", "--epsilon", "1", "--strategy", "marginals"),
    ("ledger", "show", "budget.db"),
    ("ledger", "shares", "budget.db", "visits"),
    ("ledger", "history", "budget.db"),
    ("ledger", "verify", "budget.db"),
    ("ledger", "backup", "budget.db", "copy.db"),
    ("plan", "two.toml", "--error", "30", "--query", "age >= 40", "--out", "two.plan"),
    ("release", "visits.csv", "--plan", "two.plan", "--out", "planned.veil"),
    ("info", "v.veil"),
    ("info", "capped.veil"),
    ("info", "rho.veil"),
    ("info", "m.veil"),
    ("query", "capped.veil", "--all-rows", "age >= 40"),
    ("query", "v.veil", "SELECT diagnosis, COUNT(*) GROUP BY diagnosis"),
    ("query", "v.veil", "--group-by", "diagnosis:Level 1", "--mean", "age"),
    ("query", "v.veil", "--sum", "age", "--mean", "age", "--quantile", "age", "0.5", "--share", "district = 'North'"),
    ("query", "m.veil", "age >= 40 AND district = 'North' AND diagnosis = 'I10'"),
    ("export", "v.veil", "--csv", "e.csv", "--by", "age", "--preset", "publication"),
    ("report", "two.veil", "--card", "--out", "card"),
    ("publish", "two.veil", "--out", "site"),
    ("refine", "two.veil", "--fact", "count(district = 'North') <= 100000"),
    ("refine", "two.veil", "--fact", "total = 90", "--fact", "count(district = 'North') = 40",
     "--fact", "count(district = 'South') = 50", "--out", "refined.veil", "--source", "public"),
    ("refine", "two.veil", "--fact", "total = 500", "--check"),
    ("info", "refined.veil"),
    ("query", "refined.veil", "age >= 40"),
    ("synthesize", "two.veil", "--rows", "50", "--out", "rows.csv"),
    ("audit", "mine.py:good", "--epsilon", "1", "--trials", "1000", "--html", "audit.html"),
    ("audit", "mine.py:bad", "--epsilon", "1", "--trials", "1000"),
    ("history", "show", "past.db", "visits"),
    ("history", "integrate", "past.db", "visits"),
    ("history", "answer", "past.db", "visits", "district = 'North'"),
]  # fmt: skip


def explained() -> list[re.Pattern[str]]:
    """Return what the page explains: lines and headings, with a gap for what varies."""
    firsts = [first or second for first, second in ROW.findall(PAGE.read_text(encoding="utf-8"))]
    found = [code for first in firsts for code in CODE.findall(first)]
    return [re.compile(".*".join(map(re.escape, code.split("…")))) for code in found]


PATTERNS = explained()


def is_explained(text: str) -> bool:
    return text in OF_THE_SCHEMA or any(pattern.fullmatch(text) for pattern in PATTERNS)


def unexplained(output: str) -> list[str]:
    """Return the lines, and the headings of tables, that the page does not explain."""
    lines, missing, place = output.splitlines(), [], 0
    while place < len(lines):
        line, place = lines[place], place + 1
        if line.startswith("expected error of one count   "):  # a drawing
            missing += [] if is_explained(line) else [line]
            while place < len(lines) and lines[place]:
                place += 1
        elif place < len(lines) and re.fullmatch(r"-+(  -+)+", lines[place]):
            spans = [found.span() for found in re.finditer("-+", lines[place])]
            names = [line[start:end].strip() for start, end in spans]
            missing += [name for name in names if name and not is_explained(name)]
            place += 1
            while place < len(lines) and is_row(lines[place], spans):
                place += 1
        elif line and not is_explained(line):
            missing.append(line)
    return missing


def is_row(line: str, spans: list[tuple[int, int]]) -> bool:
    gaps = [line[end:start] for (_, end), (start, _) in pairwise(spans)]
    return bool(line) and not any(gap.strip() for gap in gaps) and len(line) <= spans[-1][1]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Call:
    generator = random.Random(5)
    rows = ["patient_id,age,district,diagnosis"]
    for patient in range(300):
        for _ in range(generator.choice([1, 1, 2, 6])):
            place, code = generator.choice(["North", "South"]), generator.choice(["I10", "I21", "J18", "J45"])
            rows.append(f"{patient},{generator.randint(0, 99)},{place},{code}")
    (tmp_path / "visits.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (tmp_path / "wrong.csv").write_text("\n".join([*rows, "1,300,Nroth,I10"]) + "\n", encoding="utf-8")
    (tmp_path / "two.toml").write_text(SCHEMA, encoding="utf-8")
    (tmp_path / "three.toml").write_text(SCHEMA + DIAGNOSIS, encoding="utf-8")
    (tmp_path / "mine.py").write_text(MECHANISMS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    ledger = vc.Ledger("past.db")
    ledger.create("visits", epsilon=2)
    table = vc.protect("visits.csv", vc.Schema.from_toml("two.toml"), ledger, dataset="visits")
    for age in (0, 20, 40):
        table.where(f"age >= {age}").noisy_count(epsilon=0.1)
    return caller(capfd)


def test_every_line_that_commands_print_is_explained(call: Call) -> None:
    missing, silent = {}, []
    for words in COMMANDS:
        done = call(*words)
        if not done.out:
            silent.append((words, done.err))
        if found := unexplained(done.out):
            missing[" ".join(words)] = found
    assert silent == []
    assert missing == {}, missing


def test_a_line_that_no_page_explains_is_found() -> None:
    table = (
        "query  estimate  secret\n-----  --------  ------\nage         3.5       7\nSomething else.\n\nWrote a.csv.\n"
    )
    assert unexplained(table) == ["secret", "Something else."]


def test_the_page_is_read() -> None:
    assert len(PATTERNS) > 80
    assert not is_explained("The exact number of rows is 7.")
    assert is_explained("Wrote a.csv.")
