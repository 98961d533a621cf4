"""Intervals of refined releases hold as often as they say: chosen regions, and what inequalities rule out."""

import numpy as np
import pytest

import veilcube as vc
from support.releases import release_of

GRID = vc.Schema([vc.Ordinal("a", 0, 31), vc.Ordinal("b", 0, 31)])


GRID_COUNTS = np.random.default_rng(0).poisson(20, (32, 32))


LINE = vc.Schema([vc.Ordinal("a", 0, 15)])


LINE_COUNTS = np.array([3, 0, 5, 2, 40, 8, 0, 0, 1, 9, 12, 7, 3, 3, 0, 2])


def whole_regions(release: vc.Release) -> list[tuple[str, int]]:
    """Return the grown regions of few cells, as conditions, with their true counts."""
    labels = release.record.measurements[1].operator.chosen
    found = []
    for label in np.flatnonzero(np.bincount(labels.ravel()) <= 64)[:8].tolist():
        cells = np.argwhere(labels == label).tolist()
        condition = " OR ".join(f"(a = {a} AND b = {b})" for a, b in cells)
        found.append((condition, int(GRID_COUNTS[labels == label].sum())))
    return found


@pytest.mark.parametrize("facts", [["total = {}"], ["total = {}", "count(a <= 15) <= 100000"]])
def test_grown_regions_and_the_rest_of_a_known_count_are_covered(facts: list[str]) -> None:
    held = []
    for seed in range(6):
        release = release_of(GRID, GRID_COUNTS, 0.2, seed, vc.Adaptive(partition="grow"))
        refined = vc.refine(release, [fact.format(GRID_COUNTS.sum()) for fact in facts])
        for condition, count in whole_regions(release):
            for text, truth in ((condition, count), (f"NOT ({condition})", GRID_COUNTS.sum() - count)):
                answer = refined.count(text)
                held.append(answer.low <= truth <= answer.high)
    assert len(held) > 60
    assert np.mean(held) >= 0.95


@pytest.mark.parametrize("strategy", ["identity", "tree", vc.Tree(refine=True)], ids=str)
def test_true_inequalities_shorten_intervals_and_lose_no_coverage(strategy: object) -> None:
    facts = ["count(a <= 3) <= 10", "count(a BETWEEN 4 AND 5) >= 45", "total = 95"]
    questions = vc.Workload(
        LINE, [{"a": (0, 3)}, {"a": (1, 2)}, {"a": (4, 5)}, {"a": (3, 5)}, {"a": (4, 4)}, {"a": (6, 15)}]
    )
    truth = np.array([10, 5, 48, 50, 40, 37])
    held, lengths, before = [], [], []
    for seed in range(16):
        release = release_of(LINE, LINE_COUNTS, 0.2, seed, strategy)
        answers, plain = vc.refine(release, facts).answer(questions), vc.refine(release, "total = 95").answer(questions)
        held.append((answers.low - 1e-6 <= truth) & (truth <= answers.high + 1e-6))
        lengths.append(answers.high - answers.low)
        before.append(plain.high - plain.low)
        # Cells of least squares may be negative, and an interval always holds its value.
        assert (answers.high[:2] <= np.maximum(10, answers.value[:2]) + 1e-6).all()
        assert (answers.low[2:4] >= np.minimum(45, answers.value[2:4]) - 1e-6).all()
        assert ((answers.low <= answers.value + 1e-9) & (answers.value <= answers.high + 1e-9)).all()
    assert np.mean(held) >= 0.93
    assert np.mean(lengths) < 0.9 * np.mean(before)
