"""The demo, on a made-up table in the form of UCI Adult, without a network."""

import csv
import json
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.command_line import Call, caller, run_veilcube
from veilcube.analyst import open_release
from veilcube.cli.commands.demo import QUERIES, SCHEMA_FILE
from veilcube.schema import Nominal, Schema

COLUMNS = ["age", "workclass", "education", "sex", "hours-per-week", "class"]


@pytest.fixture(scope="module")
def adult(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write 3000 people the way the real file does: a blank after every comma, question marks for what is unknown."""
    path = tmp_path_factory.mktemp("adult") / "adult copy.csv"
    generator = random.Random(3)
    education = Schema.from_toml(SCHEMA_FILE)["education"]
    assert isinstance(education, Nominal)
    with path.open("w", encoding="utf-8") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n").writerow(COLUMNS)
        for _ in range(3000):
            sex, hours = generator.choice(["Female", "Male"]), generator.choice([20, 40, 40, 40, 60])
            row = [generator.randint(17, 90), "?", generator.choice(education.values), sex, hours, "<=50K"]
            file.write(", ".join(map(str, row)) + "\n")
    return path


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Call:
    monkeypatch.chdir(tmp_path)
    return caller(capfd)


def test_the_demo_tells_the_whole_story_and_its_next_commands_work(adult: Path, tmp_path: Path) -> None:
    done = run_veilcube("demo", "--data", str(adult), cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    assert "Differentially private with epsilon = 1: adding or removing one row" in done.out
    assert "true (demo only)" in done.out
    assert "commonest mistake" in done.out
    assert "max_rows=3" in done.out
    assert len(QUERIES) == 9  # as the README says
    for query in QUERIES:
        assert query in done.out
    assert 1 - 0.95 ** len(QUERIES) == pytest.approx(1 / 3, abs=0.06)
    assert "about one such table in three shows a miss" in done.out
    made = {path.name for path in (tmp_path / "demo-report").iterdir()}
    assert made == {"adult.veil", "adult.toml", "report.html", "report.png", "card.md", "registry.yaml"}

    commands = [line.strip() for line in done.out.split("Try next:\n")[1].splitlines()]
    assert len(commands) == 3
    assert "--quantile hours 0.9 --where \"age < 30 AND education = 'Graduate'\"" in commands[0]
    for command in commands:
        finished = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert finished.returncode == 0, finished.stderr
        assert "Differentially private" in finished.stdout


def test_the_demo_as_json_and_its_report(adult: Path, call: Call, tmp_path: Path) -> None:
    done = call("demo", "--data", str(adult), "--out", "here", "--epsilon", "1/2", "--json")
    facts = json.loads(done.out)
    total = facts["queries"][0]
    assert (facts["cells"], facts["privacy"]["epsilon"], facts["report_skipped"]) == (234_432, "1/2", None)
    assert total["true_demo_only"] == 3000
    for row in facts["queries"]:
        assert row["interval_holds_it"] == (row["low"] <= row["true_demo_only"] <= row["high"])
    assert sum(row["interval_holds_it"] for row in facts["queries"]) >= 3  # of 8 intervals of 95%

    page = (tmp_path / "here" / "report.html").read_text(encoding="utf-8")
    assert "epsilon = 0.5" in page
    own = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)  # without the charting library
    assert not re.search(r"(src|href)=|https?://(?!vega\.github\.io/schema)", own), "the page must not need a network"
    release_alone = open_release(tmp_path / "here" / "adult.veil")
    content = json.loads(page.split('id="charts">')[1].split("</script>")[0])
    assert {"one0", "one1", "one2", "one3", "two0"} <= set(content["specs"])
    drawn = [row["value"] for row in content["datasets"]["one0"]]
    assert drawn == pytest.approx(release_alone.marginal("age").value.tolist())
    assert (tmp_path / "here" / "report.png").read_bytes().startswith(b"\x89PNG")


def test_without_the_table_the_demo_says_how_to_give_one(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", "PIP_CONFIG_FILE": "/dev/null"}.items():
        monkeypatch.setenv(name, value)
    done = call("demo")
    assert done.code == 4
    assert done.err.startswith("error: pip could not fetch dataprep==0.4.1")
    assert "No matching distribution found" in done.err
    assert "WARNING" not in done.err
    assert "--data" in done.err
    assert done.err.count("\n") == 1


def test_without_the_charting_packages_the_demo_says_which_extra_it_needs(
    adult: Path, call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    done = call("demo", "--data", str(adult), "--out", "here")
    assert done.code == 0
    assert "pip install 'veilcube[report]'" in done.out
    assert {path.name for path in (tmp_path / "here").iterdir()} == {"adult.veil", "adult.toml"}


@pytest.mark.parametrize(("words", "code"), [(("--epsilon", "0"), 6), (("--data", "nowhere.csv"), 4)])
def test_a_demo_that_cannot_run_says_why(words: tuple[str, ...], code: int, call: Call) -> None:
    done = call("demo", *words)
    assert (done.code, done.err.count("\n")) == (code, 1)
    assert "Traceback" not in done.err
