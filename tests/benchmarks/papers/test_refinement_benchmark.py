"""The refinement benchmark: what it simulates, how it judges, and that a quick run writes its files."""

from pathlib import Path

import numpy as np
import pytest
from benchmarks.papers.ispe.data import made_tables
from benchmarks.papers.refinement import benchmark, errors, gains, privacy, speed


def test_the_loss_of_the_examples_is_the_papers() -> None:
    assert [round(one.loss, 9) for one in privacy.examples()] == [2.0, 1.5, 3.0]


def test_simulated_densities_follow_the_exact_ones() -> None:
    ratios = [ratio for example in privacy.examples() for ratio in privacy.simulate(example, 1_000_000)]
    assert all(abs(one.simulated - one.exact) < 5 * one.stderr for one in ratios)
    assert all(one.exact < one.loss for one in ratios)
    assert all(verdict.word in ("", "reached") for verdict in privacy.judge_privacy(ratios))


def test_a_wrong_loss_is_missed() -> None:
    wrong = privacy.Ratio("Example 1", 3.5, 1.7, 0.01, 1.7, loss=1.0)
    words = {verdict.what: verdict.word for verdict in privacy.judge_privacy([wrong])}
    assert words["log ratios beyond the loss"] == "MISSED"


@pytest.mark.parametrize("table", made_tables(), ids=lambda table: table.name)
def test_the_inequalities_are_true_of_their_table(table) -> None:  # type: ignore[no-untyped-def]
    rows = table.counts.sum(axis=1)
    sentences = errors.inequalities(table)
    for row, sentence in zip(rows, sentences, strict=False):
        low, high = (int(part) for part in (sentence.split(" <= ")[0], sentence.split(" <= ")[-1]))
        assert low <= row <= high
    assert len(sentences) == len(rows) + 1


def test_gains_of_a_known_marginal_are_exact() -> None:
    (table,) = (one for one in made_tables() if one.name == "age x education")
    found = {(one.strategy, one.known, one.questions): one.ratio for one in gains.measure_gains(table, 0.2, 5)}
    # On the identity a cell of a row of 16 keeps 15/16 of its variance once the row's sum is known.
    assert found["identity", "first marginal", "cells"] == pytest.approx(15 / 16)
    assert found["identity", "both marginals", "marginals"] == pytest.approx(0, abs=1e-9)


def test_bars_are_judged() -> None:
    slow = speed.Large("tree", (10, 10), 5, "equal", refining=31.0, processor=1.0, answering=1.0, peak=1e9)
    assert [verdict.word for verdict in speed.judge_large([slow])] == ["MISSED", "reached"]


@pytest.mark.slow
def test_a_quick_run_writes_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[3])
    small = benchmark.Size(
        draws=200_000,
        queries=5,
        releases=1,
        shapes=(("wavelet", (6, 6)),),
        facts=5,
        inequalities=(("tree", (6, 6), 5),),
    )
    monkeypatch.setattr(benchmark, "QUICK", small)
    assert benchmark.main(["--quick", "--out", str(tmp_path)]) == 0
    assert {file.name for file in tmp_path.iterdir()} == {
        "privacy.csv",
        "gains.csv",
        "errors.csv",
        "speed.csv",
        "bars.csv",
    }
    assert np.isfinite(float((tmp_path / "speed.csv").read_text().splitlines()[1].split(",")[-1]))
