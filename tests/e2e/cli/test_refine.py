"""``veilcube refine``: what it shows, what it writes, and how it explains danger."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

import veilcube as vc
from support.command_line import Call, caller
from support.veil_files import edit_document

SCHEMA = vc.Schema([vc.Ordinal("age", 17, 40), vc.Nominal("sex", ["Female", "Male"])])


@pytest.fixture
def file(tmp_path: Path) -> str:
    vc.release(vc.Cube(SCHEMA, np.full(SCHEMA.shape, 50)), epsilon=0.1, strategy="identity").save(tmp_path / "a.veil")
    return str(tmp_path / "a.veil")


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str]) -> Call:
    return caller(capfd)


def test_the_counts_that_facts_name_are_shown_before_and_after(file: str, call: Call) -> None:
    done = call("refine", file, "--fact", "total = 2400", "--fact", "count(sex = 'Female') <= 1300")
    assert (done.code, done.err) == (0, "")
    assert "2,400 to 2,400" in done.out
    assert "sex = 'Female'" in done.out
    assert "Differentially private with epsilon = 0.1" in done.out


def test_json_holds_answers_facts_check_and_statement(file: str, call: Call) -> None:
    done = call("refine", file, "age < 30", "--fact", "total = 2400", "--source", "exact private statistic", "--json")
    found = json.loads(done.out)
    assert found["facts"] == [{"sentence": "total = 2400", "source": "exact private statistic"}]
    assert found["results"][0]["after"]["stddev"] < found["results"][0]["before"]["stddev"]
    assert found["check"]["dangerous"] == ["total = 2400"]
    assert found["privacy"]["refinement"] == {"exact_facts": ["total = 2400"], "loss": None, "rho": None}


def test_a_check_explains_which_fact_is_dangerous_and_why(file: str, call: Call, tmp_path: Path) -> None:
    (tmp_path / "facts.txt").write_text("# known\n[public]\ntotal = 2400\n[unstated]\ncount(age = 20) = 99\n")
    done = call("refine", file, "--facts", str(tmp_path / "facts.txt"), "--check")
    assert done.code == 0
    assert "the constraint 'count(age = 20) = 99' was published exactly: one record changes it" in done.out
    assert "total" not in done.out
    assert "--source public" in done.out


def test_public_facts_pass_the_check(file: str, call: Call) -> None:
    done = call("refine", file, "--fact", "total = 2400", "--source", "public", "--check", "--json")
    assert json.loads(done.out)["check"]["is_post_processing"] is True


def test_cells_are_written_once_unless_forced(file: str, call: Call, tmp_path: Path) -> None:
    out = tmp_path / "cells.parquet"
    words = ("refine", file, "--fact", "total = 2400", "--out", str(out))
    assert call(*words).code == 0
    table = pyarrow.parquet.read_table(out)
    assert sum(table["value"].to_pylist()) == pytest.approx(2400)
    again = call(*words)
    assert (again.code, "--force" in again.err) == (9, True)
    assert call(*words, "--force").code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "there is no fact to refine with"),
        (("--fact", "total = 2400", "--out", "cells.csv"), "name the file 'cells.parquet'"),
        (("--fact", "totl = 3"), "'totl = 3' names 'totl'"),
        (("--fact", "total = 3", "--fact", "total = 4"), "'total = 3' and 'total = 4' contradict each other"),
        (("--fact", "total = -3"), "no counts obey 'total = -3'"),
        (("--fact", "total = 3", "--source", "gossip"), "must be one of unstated, public"),
        (("--facts", "missing.txt"), "missing.txt cannot be read"),
        (("--fact", "total = 3", "SELECT COUNT(*) GROUP BY sex"), "one count at a time"),
    ],
)
def test_bad_facts_are_one_line_errors(file: str, call: Call, words: tuple[str, ...], message: str) -> None:
    done = call("refine", file, *words)
    assert (done.code, done.out) == (5, "")
    assert message in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize("fact", ["0 = 0", "count(age < 17) = 0"])
def test_a_fact_about_no_cell_is_taken(file: str, call: Call, fact: str) -> None:
    done = call("refine", file, "--fact", fact)
    assert (done.code, done.err) == (0, "")


def test_a_file_of_facts_may_start_with_a_byte_order_mark(file: str, call: Call, tmp_path: Path) -> None:
    (tmp_path / "facts.txt").write_text("[public]\ntotal = 2400\n", encoding="utf-8-sig")
    done = call("refine", file, "--facts", str(tmp_path / "facts.txt"), "--json")
    assert json.loads(done.out)["facts"] == [{"sentence": "total = 2400", "source": "public"}]


def test_facts_that_do_not_fit_are_one_line_and_a_field(file: str, call: Call) -> None:
    done = call("refine", file, "--fact", "total = 24000", "--json")
    assert done.err.startswith("warning: The facts do not fit what was measured: 'total = 24000' is off by ")
    assert done.err.count("\n") == 1
    test = json.loads(done.out)["fact_test"]
    assert test["fits"] is False
    assert test["facts"][0]["sentence"] == "total = 24000"
    assert test["facts"][0]["standard_errors"] > 100
    fitting = call("refine", file, "--fact", "total = 2400", "--json")
    assert (fitting.err, json.loads(fitting.out)["fact_test"]["fits"]) == ("", True)


def test_a_refined_release_is_a_file_that_every_command_reads(file: str, call: Call, tmp_path: Path) -> None:
    out, folder = str(tmp_path / "r.veil"), str(tmp_path / "report")
    words = ("--fact", "total = 2400", "--source", "exact private statistic")
    done = call("refine", file, *words, "--fact", "count(age < 20) <= 400", "--out", out)
    assert (done.code, done.err) == (0, "")
    assert f"Written to {out}: the refined release." in done.out
    answers = json.loads(call("query", out, "SELECT COUNT(*)", "age < 20", "--json").out)
    assert answers["results"][0]["value"] == pytest.approx(2400)
    assert answers["results"][1]["high"] <= 400
    assert answers["privacy"]["refinement"]["exact_facts"] == ["total = 2400", "count(age < 20) <= 400"]
    shown = call("query", out, "age < 20").out
    assert "read off the private table without noise" in shown
    assert "The answers are refined with known facts" in shown
    info = call("info", out)
    assert "Refined with 'total = 2400' (read off the private table)" in info.out
    assert "The facts fit what was measured." in info.out
    assert json.loads(call("info", out, "--json").out)["refinement"]["fact_test"]["fits"] is True
    assert call("export", out, "--csv", str(tmp_path / "r.csv")).code == 0
    assert call("report", out, "--out", folder).code == 0
    assert (tmp_path / "report" / "report.html").exists()
    again = call("refine", out, "--fact", "count(sex = 'Male') >= 1000", "--out", str(tmp_path / "again.veil"))
    assert again.code == 0
    assert len(vc.open(tmp_path / "again.veil").refinement["facts"]) == 3


def test_synthetic_rows_are_drawn_from_a_refined_release(file: str, call: Call, tmp_path: Path) -> None:
    out = str(tmp_path / "r.veil")
    assert call("refine", file, "--fact", "total = 2500", "--out", out).code == 0
    done = call("synthesize", "--from", out, "--out", str(tmp_path / "rows.csv"), "--json")
    assert (done.code, done.err, json.loads(done.out)["rows"]) == (0, "", 2500)


def test_a_total_on_a_capped_release_needs_a_word(call: Call, tmp_path: Path) -> None:
    unit = vc.Cube(SCHEMA, np.full(SCHEMA.shape, 50)).unit.person("patient_id", 2)
    vc.release(vc.Cube(SCHEMA, np.full(SCHEMA.shape, 50), unit=unit), epsilon=1).save(tmp_path / "capped.veil")
    words = ("refine", str(tmp_path / "capped.veil"), "--fact", "total = 2400")
    done = call(*words)
    assert (done.code, done.out) == (5, "")
    assert "--kept-rows" in done.err
    told = call(*words, "--kept-rows")
    assert (told.code, told.err) == (0, "")
    assert "Counts are of at most 2 rows per person" in told.out
    assert json.loads(call(*words, "--kept-rows", "--json").out)["counted"].startswith("Counts are of at most 2")


def test_a_forged_file_is_refused_in_one_line(file: str, call: Call, tmp_path: Path) -> None:
    out = tmp_path / "r.veil"
    assert call("refine", file, "--fact", "total = 2400", "--out", str(out)).code == 0
    edit_document(out, "veil.json", lambda manifest: manifest["known_facts"].update(facts=[{"kind": "code"}]))
    done = call("query", str(out), "age < 20")
    assert (done.code, done.out, done.err.count("\n")) == (9, "", 1)
