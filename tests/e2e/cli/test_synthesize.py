"""``veilcube synthesize``: rows from a release or from the answers in a ledger, and their quality."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import veilcube as vc
from support.command_line import caller, run_veilcube
from support.releases import release_of

PEOPLE = vc.Schema([vc.Ordinal("age", 20, 60), vc.Nominal("sex", ["Female", "Male"])])


def people_counts() -> NDArray[np.int64]:
    return np.random.default_rng(3).poisson(np.outer(np.linspace(120, 20, 41), [1.0, 0.4]))


def test_the_command_draws_rows_from_a_release_and_tells_their_quality(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    release_of(PEOPLE, people_counts(), seed=2).save(tmp_path / "people.veil")
    call = caller(capfd)
    words = ["synthesize", "--from", str(tmp_path / "people.veil"), "--out", str(tmp_path / "rows.parquet")]
    done = call(*words, "--rows", "5000", "--report", str(tmp_path / "quality.html"), "--json")
    assert (done.code, done.err) == (0, "")
    facts = json.loads(done.out)
    assert facts["rows"] == 5000
    assert facts["converged"] is True
    assert {len(entry["attributes"]) for entry in facts["quality"]} == {1, 2}
    assert vc.count(tmp_path / "rows.parquet", PEOPLE).exact_counts.sum() == 5000
    page = (tmp_path / "quality.html").read_text(encoding="utf-8")
    assert "age × sex" in page
    assert "vegaEmbed" in page

    again = call(*words)
    assert again.code == 9
    assert "--force" in again.err
    assert "Wrote" in call(*words, "--force").out
    assert call(*words[:3], "--out", str(tmp_path / "rows.csv"), "--rows", "50").code == 0
    assert (tmp_path / "rows.csv").read_text(encoding="utf-8").count("\n") == 51
    assert call(*words, "--force", "--dataset", "people").code == 5
    assert call(*words, "--force", "--rows", "0").code == 5
    as_argument = call("synthesize", words[2], "--out", str(tmp_path / "more.csv"), "--rows", "20")
    assert as_argument.code == 0
    assert (tmp_path / "more.csv").read_text(encoding="utf-8").count("\n") == 21


@pytest.mark.parametrize("sources", [[], ["a.veil", "--from", "b.veil"]])
def test_rows_are_drawn_from_one_source(tmp_path: Path, capfd: pytest.CaptureFixture[str], sources: list[str]) -> None:
    refused = caller(capfd)("synthesize", *sources, "--out", str(tmp_path / "rows.csv"))
    assert refused.code == 5
    assert "name one release file" in refused.err


@pytest.mark.slow
def test_the_command_draws_rows_from_the_answers_in_a_ledger(tmp_path: Path) -> None:
    ledger = vc.Ledger(f"sqlite:///{tmp_path / 'budget.db'}")
    table = vc.protect(vc.Cube(PEOPLE, people_counts()), ledger=ledger, dataset="people", epsilon=4)
    table.noisy_marginal("age", "sex", epsilon=2)
    words = ["synthesize", "--from", str(tmp_path / "budget.db"), "--out", str(tmp_path / "rows.parquet"), "--json"]
    unnamed = run_veilcube(*words, cwd=tmp_path)
    assert unnamed.code == 5
    assert "--dataset" in unnamed.out
    done = run_veilcube(*words, "--dataset", "people", cwd=tmp_path)
    assert done.code == 0, done
    assert json.loads(done.out)["rows"] == pytest.approx(people_counts().sum(), rel=0.05)
    assert json.loads(done.out)["quality"]
