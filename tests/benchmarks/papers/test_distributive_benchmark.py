"""The benchmark of TR-2010-003: its published maximum breaks its promise on neighbours where ours keep theirs."""

import ast
import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from benchmarks.papers.distributive import benchmark, intervals, maximum, parity, quantiles
from benchmarks.papers.distributive.data import NARROW, WIDE, clipped_gaussian, incomes
from benchmarks.papers.distributive.paper import largest_log_ratio, published_max_law

import veilcube as vc

ALPHA = 0.05
Law = Callable[[list[int], int], np.ndarray]


def epsilons_needed(law: Law, less: list[int], more: list[int], values: int) -> float:
    """Return what one record changes, in units of the promised epsilon: above 1 the promise is broken."""
    return largest_log_ratio(law(less, values), law(more, values)) / ALPHA


def ours(method: str) -> Law:
    return lambda records, values: vc.rank_distribution(
        np.bincount(records, minlength=values + 1)[1:], ALPHA, 1, method
    )


@pytest.mark.parametrize(
    ("example", "expected"),
    list(zip(maximum.COUNTEREXAMPLES, [2, 188.2443, 1.0205], strict=True)),
    ids=lambda x: str(x)[:20],
)
def test_the_published_maximum_breaks_its_promise_where_ours_keep_theirs(example: tuple, expected: float) -> None:
    _, less, more, values, reach, fixed = example

    def published(records: list[int], size: int) -> np.ndarray:
        return published_max_law(records, size, ALPHA, reach, fixed_floor=fixed)

    assert epsilons_needed(published, less, more, values) == pytest.approx(expected, abs=1e-4)
    for method in maximum.METHODS:
        assert epsilons_needed(ours(method), less, more, values) <= 1 + 1e-9


def test_the_published_law_is_a_law() -> None:
    assert published_max_law([3, 1, 4, 1, 5], 9, 0.3, 2).sum() == pytest.approx(1)


def test_nothing_in_the_package_can_reach_the_published_maximum() -> None:
    for module in (Path(__file__).parents[3] / "src").rglob("*.py"):
        tree = ast.parse(module.read_text(encoding="utf-8"))
        imported = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        imported += [name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names]
        assert not any(name.startswith("benchmarks") for name in imported)


@pytest.mark.parametrize(("rows", "bar"), [(1000, 0.31), (10_000, 0.92)])
def test_answers_near_the_maximum_reach_the_bar_on_average(rows: int, bar: float) -> None:
    tables = [clipped_gaussian(rows, WIDE, seed) for seed in range(20_000, 20_020)]
    laws = [vc.rank_distribution(counts, ALPHA, 1, "tilted") for counts in tables]
    assert np.mean([maximum.near_maximum(law, counts) for law, counts in zip(laws, tables, strict=True)]) >= bar


@pytest.mark.slow
@pytest.mark.parametrize("stddev", [WIDE, NARROW])
@pytest.mark.parametrize("rows", [1000, 10_000])
def test_the_tilt_is_never_below_permute_and_flip_on_tables_that_had_no_part_in_its_choice(
    rows: int, stddev: float
) -> None:
    for seed in range(20_000, 20_020):
        counts = clipped_gaussian(rows, stddev, seed)
        tilted, plain = (vc.rank_distribution(counts, ALPHA, 1, method) for method in maximum.METHODS[:2])
        assert maximum.within(tilted, counts) >= maximum.within(plain, counts)
        assert maximum.near_maximum(tilted, counts) >= maximum.near_maximum(plain, counts)


def test_the_transform_finds_the_parity_where_the_bar_wants_it() -> None:
    transform, _ = parity.share_right(0.002, runs=30)
    assert transform == 1
    assert parity.judge_speed().is_reached


def test_block_sums_are_those_of_the_cells() -> None:
    cells = np.random.default_rng(1).normal(size=(6, 7))
    schema = vc.Schema([vc.Ordinal("a", 0, 5), vc.Ordinal("b", 0, 6)])
    asked = vc.Workload.ranges(schema, [[1, 2], [0, 0]], [[3, 6], [5, 6]])
    assert intervals._block_sums(cells, asked) == pytest.approx([cells[1:4, 2:7].sum(), cells.sum()])


def test_interval_errors_are_those_of_summed_noise() -> None:
    cube = incomes(10_000)
    asked = intervals.uniform_intervals(cube.schema, 300)
    errors = intervals.interval_errors(cube, 0.5, 100, asked)
    lengths = asked.high[:, 0] - asked.low[:, 0] + 1
    # Nearly normal, of variance 2/epsilon^2 a cell. Queries of one version share their noise, so the mean varies.
    expected = np.mean(np.sqrt(2 / np.pi * lengths * 8)) / 10_000
    assert errors[intervals.OURS].mean() == pytest.approx(expected, rel=0.25)


def test_truncating_empty_cells_at_zero_makes_sums_worse() -> None:
    assert intervals.truncation_ratio(versions=30) > 1.5


@pytest.mark.slow
def test_quantiles_of_one_budget_are_found_in_time_and_far_ahead_of_independent_draws() -> None:
    found = quantiles.run_contest(quantiles.Setting("bell", 1000, 0.1, runs=2))
    assert found.ours < 0.1 * found.independent
    assert found.seconds < quantiles.SECONDS_BAR


@pytest.mark.parametrize("strategy", [vc.Tree(), vc.Tree(refine=False)])
def test_quantiles_are_read_from_a_release_as_it_reads_them_itself(strategy: vc.Tree) -> None:
    counts = np.random.default_rng(4).poisson(20, 70)
    release = vc.release(vc.Cube(vc.Schema([vc.Ordinal("place", 1, 70)]), counts), 0.1, strategy)
    places = quantiles.released_quantiles(release)[::20]
    assert [release.quantile("place", q / 100).value - 1 for q in range(1, 100, 20)] == places


def test_a_way_that_misses_by_more_than_another_misses_the_bar() -> None:
    def verdict(ours: float) -> str:
        contest = quantiles.Contest("bell", 1000, 0.1, "split", ours, 1.0, 900.0, 50.0, 2.0, 30.0, 2.0, 1.0)
        return quantiles.judge_contests([contest])[0].word

    assert [verdict(29.0), verdict(31.0)] == ["reached", "MISSED"]


@pytest.mark.slow
def test_every_figure_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert benchmark.main(["--quick", "--out", str(tmp_path)]) == 0
    with (tmp_path / "figures.csv").open(encoding="utf-8") as file:
        figures = {row["figure"] for row in csv.DictReader(file)}
    assert figures == {str(number) for number in range(2, 17)}
    assert "bars missed" in capsys.readouterr().out
