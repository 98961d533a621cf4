"""The Privelet benchmark: what it measures, how it judges that, and what it writes."""

import csv
import json
import subprocess
import sys
from dataclasses import replace
from math import sqrt

import numpy as np
import pytest
from benchmarks.papers.privelet import accuracy, benchmark, command_line, peak, scaling
from benchmarks.papers.privelet.accuracy import (
    BASIC,
    METHODS,
    PLUS,
    STAR,
    TREE,
    Experiment,
    Method,
    Outcome,
    affordable_plan,
    in_quintiles,
    run_experiments,
)
from benchmarks.papers.privelet.census import SMALL
from benchmarks.papers.privelet.claims import judge_accuracy
from benchmarks.papers.privelet.scaling import Timing, judge_times, schema_of, time_steps, uniform_rows
from benchmarks.papers.privelet.speed import Speed, judge_speeds, laplace_by_numpy
from benchmarks.papers.privelet.variance import SMALL_CUBES, Spread, judge_spreads, measure_spreads, query_shapes
from benchmarks.papers.privelet.verdict import Verdict, log_slope

import veilcube as vc

TINY = replace(SMALL, ages=6, occupations=8, groups=3, incomes=8, rows=5_000)


def made_up(errors_of, queries=1000):
    """Build an experiment whose arms have given errors as functions of coverage."""
    coverage = np.logspace(-6, 0, queries)
    outcomes = {
        arm: Outcome(arm, "", error(coverage), np.ones(queries), np.ones(queries, dtype=bool), True, 0.0, 0.0)
        for arm, error in errors_of.items()
    }
    return Experiment("made up", 1_000_000, 1.0, coverage, 1_000_000 * coverage, outcomes)


def holding(claims, words):
    (claim,) = [claim for claim in claims if words in claim.paper]
    return claim.holds


def test_every_arm_answers_every_query_with_errors_as_large_as_planned():
    # Queries of one release share their noise; several releases together are a fair sample.
    experiments = list(run_experiments(TINY, [1.0] * 6, 200))
    assert {BASIC, PLUS, STAR, TREE} <= set(experiments[0].outcomes)
    assert all(len(outcome.errors) == 200 for outcome in experiments[0].outcomes.values())
    for arm in (BASIC, PLUS, TREE):
        outcomes = [experiment.outcomes[arm] for experiment in experiments]
        assert 0.5 < np.mean([outcome.standardised**2 for outcome in outcomes]) < 1.9
        assert np.mean([outcome.is_covered for outcome in outcomes]) > 0.85


def test_a_method_that_comes_to_the_same_strategy_is_not_measured_twice(monkeypatch, capsys):
    twice = (METHODS[0], Method(vc.Identity(), {"again": "least_squares"}))
    monkeypatch.setattr(accuracy, "METHODS", twice)
    (experiment,) = run_experiments(TINY, [1.0], 20)
    assert list(experiment.outcomes) == [BASIC]
    assert "not measured twice" in capsys.readouterr().out


def test_a_strategy_beyond_the_memory_gives_way_to_the_planners_choice(monkeypatch, capsys):
    monkeypatch.setattr(accuracy, "MOST_BYTES", 1)
    affordable_plan(METHODS[0], TINY.schema, 1.0)
    assert "takes its place" in capsys.readouterr().out


def test_relative_errors_are_taken_over_at_least_the_sanity_bound():
    experiment = made_up({BASIC: lambda coverage: np.full_like(coverage, 100.0)})
    relative = experiment.relative(BASIC)
    assert relative[0] == pytest.approx(100 / 1000)
    assert relative[-1] == pytest.approx(100 / 1_000_000)


def test_quintiles_hold_the_mean_errors_of_their_queries():
    experiment = made_up({BASIC: lambda coverage: coverage})
    last = [one for one in in_quintiles(experiment) if one.by == "coverage"][-1]
    expected = experiment.coverage[800:]
    assert last.middle == pytest.approx(expected.mean())
    assert last.square == pytest.approx((expected**2).mean())
    assert last.absolute == pytest.approx(expected.mean())


def test_claims_hold_for_errors_as_the_paper_describes_them():
    errors = {
        BASIC: lambda coverage: 1e6 * coverage,
        PLUS: lambda coverage: np.full_like(coverage, 20.0),
        STAR: lambda coverage: np.where(coverage < 0.01, 5.0, 19.0),
    }
    claims = judge_accuracy([made_up(errors)])
    assert holding(claims, "increases linearly")
    assert holding(claims, "insensitive")
    assert holding(claims, "two orders")
    assert holding(claims, "considerably smaller")
    assert holding(claims, "comparable absolute")
    assert holding(claims, "outperforms")


def test_claims_do_not_hold_for_errors_that_grow_and_estimates_that_are_worse():
    errors = {
        BASIC: lambda coverage: 1000 * np.sqrt(coverage),
        PLUS: lambda coverage: 100 * np.sqrt(coverage) + 300,
        STAR: lambda coverage: 200 * np.sqrt(coverage) + 500,
        TREE: lambda coverage: np.full_like(coverage, 2000.0),
    }
    claims = judge_accuracy([made_up(errors)])
    for words in ("increases linearly", "two orders", "considerably smaller", "outperforms", "below Basic's where"):
        assert not holding(claims, words)
    assert not holding(claims, "(ours)")


def test_the_slope_of_a_power_is_its_exponent():
    assert log_slope([1, 2, 4], [3, 6 * sqrt(2), 24]) == pytest.approx(1.5)


def test_a_figure_outside_its_bar_is_missed_and_one_without_a_bar_is_not_judged():
    assert Verdict("", "", 1.0, low=0.9, high=1.15).word == "reached"
    assert Verdict("", "", 1.2, low=0.9, high=1.15).word == "MISSED"
    assert Verdict("", "", 0.8, low=0.9).word == "MISSED"
    assert Verdict("", "", 0.8).word == ""


def test_cubes_to_time_have_the_wanted_number_of_cells_and_rows():
    for power in (8, 9, 10, 11):
        assert schema_of(power).cells == 2**power
    schema = schema_of(9)
    assert vc.count(uniform_rows(schema, 700, seed=1), schema).exact_counts.sum() == 700


def test_slopes_are_fitted_to_the_upper_part():
    def timing(rows, cells):
        steps = (rows / 1e6, 0.0, cells / 1e6, 0.0, cells / 1e6)
        return [Timing(clock, rows, cells, *steps) for clock in ("wall", "processor")]

    by_rows = [one for rows in (1, 2000, 4000, 6000) for one in timing(rows, 1)]
    by_cells = [one for cells in (7, 2000, 4000, 8000) for one in timing(1, cells)]
    verdicts, claims = judge_times(by_rows, by_cells)
    assert all(verdict.is_reached for verdict in verdicts)
    assert all(claim.holds for claim in claims)
    quick = [replace(one, threshold=0.0) for one in by_cells]
    assert [claim.holds for claim in judge_times(by_rows, quick)[1]] == [True, True, False]
    slow = [replace(one, transform_and_noise=one.cells**1.5) for one in by_cells]
    assert not judge_times(by_rows, slow)[0][-1].is_reached


def test_every_step_takes_some_time():
    by_wall, by_processor = time_steps(8, 500)
    assert (by_wall.clock, by_processor.clock) == ("wall", "processor")
    assert by_wall.cells == 256
    assert min(by_wall.basic, by_wall.plus, by_wall.star, by_wall.inverse, by_processor.plus) > 0
    assert by_wall.plus == by_wall.count + by_wall.transform_and_noise + by_wall.inverse


def test_every_size_is_timed_by_both_clocks_and_keeps_its_best_round(monkeypatch):
    turns = iter([5.0, 9.0, 7.0, 3.0, 8.0])

    def fake_steps(power, rows):
        seconds = next(turns)
        return tuple(Timing(clock, rows, 2**power, *[seconds] * 5) for clock in ("wall", "processor"))

    monkeypatch.setattr(scaling, "time_steps", fake_steps)
    found = scaling.time_sizes([(3, 10), (4, 10)], rounds=2)
    assert [(one.clock, one.cells, one.count) for one in found] == [
        ("wall", 8, 3.0), ("wall", 16, 7.0), ("processor", 8, 3.0), ("processor", 16, 7.0),
    ]  # fmt: skip


def test_numpy_adds_noise_of_the_scale_to_the_counts():
    counts = np.full((200, 200), 1000)
    noisy = laplace_by_numpy(counts, 5.0)
    assert np.abs(noisy - 1000).mean() == pytest.approx(5.0, rel=0.05)


def test_speed_is_judged_by_its_ratio_to_numpy():
    slow, fast = judge_speeds([Speed("slow", 8.0, 1.0, 1.0), Speed("fast", 3.0, 1.0, 1.0)])
    assert (slow.value, slow.is_reached) == (9.0, False)
    assert (fast.value, fast.is_reached) == (4.0, True)


def test_measured_variances_agree_with_the_exact_ones_and_say_how_surely():
    spreads = measure_spreads(SMALL_CUBES[1], 150)
    assert {spread.shape for spread in spreads} == {"ranges", "unions", "sets", "nodes"}
    for spread in spreads:
        assert abs(spread.ratio - 1) < 5 * spread.stderr
        assert 0.001 < spread.stderr < 0.2


def test_the_variance_queries_are_answered_by_the_release_as_the_benchmark_sums_them():
    small = SMALL_CUBES[0]
    release = vc.release(vc.Cube(small.schema, np.ones(small.schema.shape, dtype=int)), 1.0, small.strategy)
    (measurement,) = release.record.measurements
    cells = measurement.operator.solve(measurement.values)
    for _, regions in query_shapes(small.schema, np.random.default_rng(1)):
        answers = release.answer(vc.Workload(small.schema, regions), estimator="least_squares")
        assert np.allclose(answers.value, [cells[region.mask()].sum() for region in regions])


def test_a_variance_is_judged_by_three_percent_and_too_few_releases_are_admitted():
    sure, unsure = judge_spreads([Spread("", "", 1, 1, 1.04, 0.01), Spread("", "", 1, 1, 1.01, 0.02)])
    assert not sure.is_reached
    assert "too few" not in sure.note
    assert "too few" in unsure.note


def test_the_peak_of_a_command_is_its_own_and_its_failure_is_passed_on():
    def measured(code):
        return subprocess.run(
            [sys.executable, peak.__file__, sys.executable, "-c", code], check=False, stdout=subprocess.PIPE, text=True
        )

    small, large = measured("pass"), measured("x = bytearray(b'1') * 200_000_000")
    assert json.loads(large.stdout)["peak"] - json.loads(small.stdout)["peak"] > 150_000_000
    assert measured("raise SystemExit(3)").returncode == 3


def test_the_command_line_releases_a_census_and_leaves_no_large_file(tmp_path):
    run = command_line.run_command(TINY, tmp_path, queries=100)
    assert run.file_bytes > 0
    assert run.peak_bytes > 10**7
    assert run.queries_per_second > 0
    assert [path.name for path in tmp_path.iterdir()] == ["census.toml"]
    memory, _, rate = command_line.judge_command(replace(run, peak_bytes=5 * 10**9, queries_per_second=99_999.0))
    assert not memory.is_reached
    assert not rate.is_reached


def test_what_was_found_is_shown_drawn_and_written_outside_the_repository(tmp_path, monkeypatch, capsys):
    tiny = replace(
        benchmark.QUICK, censuses=(TINY,), queries=100, rows=(100, 200, 300), powers=(6, 7, 8), fixed_power=6
    )
    monkeypatch.setattr(benchmark, "QUICK", tiny)
    assert (
        benchmark.main(["--quick", "--only", "accuracy", "--only", "time", "--epsilon", "0.5", "--out", str(tmp_path)])
        == 0
    )
    shown = capsys.readouterr().out
    assert "mean square error by coverage" in shown
    assert "does not hold" in shown
    with (tmp_path / "quintiles.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["epsilon"] for row in rows} == {"0.5"}
    assert {row["by"] for row in rows} == {"coverage", "selectivity"}
    names = {path.name for path in tmp_path.iterdir()}
    assert {"claims.csv", "bars.csv", "time-by-rows.csv", "privelet-accuracy.svg", "privelet-time.html"} <= names
