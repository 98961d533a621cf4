"""The benchmark of wide tables: its own counting, and a quick run of all of it."""

from pathlib import Path

import numpy as np
import pytest
from benchmarks.papers.history.census import random_attribute_ranges
from benchmarks.wide_tables import exact_answers, main, read_codes, write_made_table

import veilcube as vc


def test_true_answers_are_counted_from_the_file(tmp_path: Path) -> None:
    schema = write_made_table(tmp_path / "table.csv", rows=50)
    asked = vc.Marginals(k=2).natural_workload(schema)
    codes = read_codes(tmp_path / "table.csv", schema)
    for row, found in list(enumerate(exact_answers(codes, schema, asked)))[::997]:
        assert found == np.count_nonzero(((codes >= asked.low[row]) & (codes <= asked.high[row])).all(axis=1))


def test_questions_narrow_as_many_attributes_as_they_are_told() -> None:
    schema = vc.Schema([vc.Ordinal(f"a{number}", 0, 99) for number in range(6)])
    asked = random_attribute_ranges(schema, 300, seed=1, attributes=4)
    narrowed = (asked.high - asked.low < 99).sum(axis=1)
    assert narrowed.max() == 4
    assert narrowed.mean() > 3.9


@pytest.mark.slow
def test_a_quick_run_shows_every_figure(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--quick"]) == 0
    shown = capsys.readouterr().out
    for figure in ("counting all pairs", "release file", "hold, 3 attributes", "hold, 4 attributes"):
        assert figure in shown
