"""Intervals of refined releases: regions chosen by noise, and what inequalities rule out."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import linprog

import veilcube as vc
from support.releases import release_of
from veilcube.analyst.refine.facts.release_facts import read_release_facts
from veilcube.analyst.refine.release import ranges
from veilcube.analyst.refine.release.amended import Questions
from veilcube.analyst.refine.release.ranges import FactRanges

GRID = vc.Schema([vc.Ordinal("a", 0, 31), vc.Ordinal("b", 0, 31)])
GRID_COUNTS = np.random.default_rng(0).poisson(20, (32, 32))
LINE = vc.Schema([vc.Ordinal("a", 0, 15)])
LINE_COUNTS = np.array([3, 0, 5, 2, 40, 8, 0, 0, 1, 9, 12, 7, 3, 3, 0, 2])
SMALL = vc.Schema([vc.Ordinal("a", 0, 4), vc.Ordinal("b", 0, 2)])


def whole_regions(release: vc.Release) -> list[tuple[str, int]]:
    """Return the grown regions of few cells, as conditions, with their true counts."""
    labels = release.record.measurements[1].operator.chosen
    found = []
    for label in np.flatnonzero(np.bincount(labels.ravel()) <= 64)[:8].tolist():
        cells = np.argwhere(labels == label).tolist()
        condition = " OR ".join(f"(a = {a} AND b = {b})" for a, b in cells)
        found.append((condition, int(GRID_COUNTS[labels == label].sum())))
    return found


def test_a_grown_region_has_one_interval_however_it_is_asked_for() -> None:
    release = release_of(GRID, GRID_COUNTS, 0.2, 1, vc.Adaptive(partition="grow"))
    refined = vc.refine(release, f"total = {GRID_COUNTS.sum()}")
    labels = release.record.measurements[1].operator.chosen
    a, b = np.argwhere(labels == np.flatnonzero(np.bincount(labels.ravel()) == 1)[0])[0].tolist()
    alone, listed = refined.count(a=a, b=b), refined.answer(vc.Workload(GRID, [{"a": a, "b": b}]))
    grouped = refined.marginal("a", "b")
    assert (alone.low, alone.high) == pytest.approx((listed.low[0], listed.high[0]))
    assert (alone.low, alone.high) == pytest.approx((grouped.low[a, b], grouped.high[a, b]))
    assert alone.high - alone.low > release.count(a=a, b=b, estimator="least_squares").stddev


def test_what_the_facts_determine_stays_a_point_though_its_region_was_chosen() -> None:
    release = release_of(GRID, GRID_COUNTS, 0.2, 1, vc.Adaptive(partition="grow"))
    (condition, count), *_ = whole_regions(release)
    answer = vc.refine(release, f"count({condition}) = {count}").count(condition)
    assert (answer.low, answer.high) == pytest.approx((count, count))


def test_sums_of_facts_rule_values_out_too() -> None:
    release = release_of(LINE, LINE_COUNTS, 0.01, 3)
    answer = vc.refine(release, ["total = 95", "count(a <= 3) <= 10", "count(a <= 3) >= 0"]).count("a > 3")
    assert (answer.low, answer.high) == pytest.approx((85, 95))


def test_counts_that_may_be_negative_are_not_cut() -> None:
    release = release_of(LINE, LINE_COUNTS, 0.01, 3)
    answer = vc.refine(release, "count(a <= 3) <= 10", counts=False).count(a=(0, 2))
    assert answer.high > 10


@st.composite
def systems(draw: st.DrawFn) -> tuple[list[str], np.ndarray]:
    """Return facts that are true of a drawn table, and the table."""
    counts = np.array(draw(st.lists(st.integers(0, 6), min_size=15, max_size=15))).reshape(5, 3)
    facts = []
    for _ in range(draw(st.integers(1, 4))):
        low, high = sorted((draw(st.integers(0, 4)), draw(st.integers(0, 4))))
        last = draw(st.integers(0, 2))
        count = int(counts[low : high + 1, : last + 1].sum())
        sign, room = draw(st.sampled_from([("<=", 1), (">=", -1), ("=", 0)])), draw(st.integers(0, 3))
        facts.append(f"count(a BETWEEN {low} AND {high} AND b <= {last}) {sign[0]} {max(count + sign[1] * room, 0)}")
    return facts, counts


@settings(max_examples=40, deadline=None)
@given(system=systems(), block=st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(0, 4), st.integers(0, 2)))
def test_ranges_are_those_of_a_program_over_all_cells(
    system: tuple[list[str], np.ndarray], block: tuple[int, int, int, int]
) -> None:
    facts, counts = system
    low, high = np.minimum(block[:2], block[2:]), np.maximum(block[:2], block[2:])
    rows = read_release_facts(SMALL, facts, None, None, "unstated")
    questions = Questions.of_blocks(SMALL.shape, low[np.newaxis], high[np.newaxis])
    question = questions.sums.spread(np.ones(1)).ravel()
    weights = np.array([rows.sums.take(np.array([row])).spread(np.ones(1)).ravel() for row in range(len(rows))])
    ends = []
    for sign in (1, -1):
        outcome = linprog(
            sign * question,
            A_ub=weights[~rows.is_equality],
            b_ub=rows.constants[~rows.is_equality],
            A_eq=weights[rows.is_equality],
            b_eq=rows.constants[rows.is_equality],
        )
        ends.append(sign * outcome.fun if outcome.status == 0 else np.inf)
    exact = FactRanges(rows)
    (least,), (greatest,) = exact.of(questions.sums)
    assert (least, greatest) == pytest.approx(tuple(ends), abs=1e-6)
    (loose_least,), (loose_greatest,) = exact._by_single_facts(questions.sums)  # what many facts fall back to
    truth = counts[low[0] : high[0] + 1, low[1] : high[1] + 1].sum()
    assert loose_least - 1e-9 <= least <= truth + 1e-6
    assert truth - 1e-6 <= greatest <= loose_greatest + 1e-9


def test_many_facts_are_looked_at_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "_MOST_ENTRIES", 0)
    rows = read_release_facts(LINE, ["count(a <= 3) <= 10", "2*count(a BETWEEN 8 AND 9) >= 14"], None, None, "unstated")
    questions = Questions.of_blocks(LINE.shape, np.array([[0], [0], [8], [7]]), np.array([[3], [4], [8], [10]]))
    least, greatest = FactRanges(rows).of(questions.sums)
    assert least.tolist() == [0, 0, 0, 7]
    assert greatest.tolist() == [10, np.inf, np.inf, np.inf]
