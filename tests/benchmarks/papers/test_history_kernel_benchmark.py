"""The parts of the history benchmark run at small size, judge what they measure, and draw it."""

import csv

import pytest
from benchmarks.papers.history import benchmark, findings
from benchmarks.papers.history.census import PeopleTable

PARTS = ("alpha", "cross-validation", "settings", "time", "ranges")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("history")
    arguments = [word for part in PARTS for word in ("--only", part)]
    assert benchmark.main(["--quick", "--out", str(out), *arguments]) == 0
    return out


def rows_of(path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_errors_are_written_for_every_alpha_kind_and_prior(folder):
    rows = rows_of(folder / "error-by-alpha.csv")
    assert {(row["kind"], row["prior"]) for row in rows} == {
        (kind, prior) for kind in ("ranges", "functions") for prior in ("measured", "uniform")
    }
    assert all(float(row["past"]) > 0 and float(row["new"]) > 0 for row in rows)


@pytest.mark.slow
def test_a_quick_run_has_figures_but_no_bars(folder):
    rows = rows_of(folder / "bars.csv")
    assert len(rows) == 13
    assert all(row["high"] == "" and row["low"] == "" for row in rows)


@pytest.mark.slow
def test_bars_stand_only_over_the_full_run_on_the_made_table(tmp_path):
    full = findings.Findings(None, tmp_path, findings.FULL, PeopleTable(10))
    quick = findings.Findings(None, tmp_path, findings.QUICK, PeopleTable(10))
    assert full.is_full
    assert not quick.is_full


@pytest.mark.slow
def test_every_setting_is_varied_and_time_is_taken(folder):
    assert {row["varied"] for row in rows_of(folder / "error-by-setting.csv")} == {"queries", "scale", "rows"}
    assert [int(row["queries"]) for row in rows_of(folder / "seconds.csv")] == list(findings.QUICK.timed_queries)


@pytest.mark.slow
def test_cross_validation_stands_beside_the_truth(folder):
    assert all(row["cross_validated"] for row in rows_of(folder / "predicted-error.csv"))


@pytest.mark.slow
def test_ranges_on_one_to_five_attributes_are_compared_and_all_is_drawn(folder):
    rows = rows_of(folder / "k-D-ranges.csv")
    assert [row["attributes"] for row in rows] == ["1", "2", "3", "4", "5"]
    assert all(float(row["maximum_entropy"]) < float(row["retention_replacement"]) for row in rows)
    drawn = (folder / "history.svg").read_text(encoding="utf-8")
    assert all(f"figure {number}" in drawn for number in (2, 3, 4, 5, 7))
