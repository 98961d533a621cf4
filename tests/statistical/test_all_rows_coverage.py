"""Intervals for all rows hold the uncapped truth on visit tables unlike each other; those of kept rows do not.

What is proved in docs/proofs/cap.md is tested here.
"""

from collections.abc import Iterator

import numpy as np
import pytest

import veilcube as vc
from support.visits import MOST_ROWS, SCHEMA, TABLES, Visits

LEAST_COVERAGE = 0.93
RELEASES = 4


def questions() -> vc.Workload:
    """Every age, every diagnosis, every pair of a decade and a diagnosis, and everybody."""
    ages = [{"age": age} for age in range(0, 90, 3)]
    diagnoses = [{"diagnosis": f"D{number}"} for number in range(12)]
    pairs = [{"age": (low, low + 9), "diagnosis": f"D{number}"} for low in range(0, 90, 10) for number in range(12)]
    wide = [{"age": (low, high)} for low in range(0, 60, 20) for high in (59, 89)]
    return vc.Workload(SCHEMA, [*ages, *diagnoses, *pairs, *wide, {}, {"diagnosis": ["D0", "D5", "D11"]}])


QUESTIONS = questions()


def truth(made: Visits) -> np.ndarray:
    found = [
        made.counts[tuple(slice(a, b + 1) for a, b in zip(low, high, strict=True))].sum()
        for low, high in zip(QUESTIONS.low, QUESTIONS.high, strict=True)
    ]
    for row, region in QUESTIONS.regions.items():
        found[row] = made.counts[:, region.boxes[0].mask(1)].sum()
    return np.array(found, dtype=np.float64)


def releases(kind: str, max_rows: int, cap_epsilon: float, strategy: str) -> Iterator[tuple[vc.Release, np.ndarray]]:
    for seed in range(RELEASES):
        made = TABLES[kind](seed)
        yield vc.release(
            made.table, 1, strategy, schema=SCHEMA, person="patient", max_rows=max_rows, measure_cap=cap_epsilon,
            most_rows=MOST_ROWS,
        ), truth(made)  # fmt: skip


def held(answers: vc.Answers, exact: np.ndarray) -> float:
    return float(((answers.low <= exact) & (exact <= answers.high)).mean())


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize(("max_rows", "cap_epsilon", "strategy"), [(4, 0.05, "identity"), (8, 1.0, "tree")])
def test_intervals_for_all_rows_hold_the_uncapped_truth(
    kind: str, max_rows: int, cap_epsilon: float, strategy: str
) -> None:
    made = releases(kind, max_rows, cap_epsilon, strategy)
    shares = [held(release.answer(QUESTIONS, rows="all"), exact) for release, exact in made]
    assert np.mean(shares) >= LEAST_COVERAGE


@pytest.mark.parametrize("kind", ["heavy users", "growing with age"])
def test_intervals_of_kept_rows_miss_the_uncapped_truth(kind: str) -> None:
    shares = [held(release.answer(QUESTIONS), exact) for release, exact in releases(kind, 4, 0.05, "identity")]
    assert np.mean(shares) < 0.8


@pytest.mark.parametrize("kind", TABLES)
def test_the_share_of_rows_beyond_the_cap_is_held(kind: str) -> None:
    held_shares = []
    for seed in range(3):
        made = TABLES[kind](seed)
        beyond = np.maximum(made.persons - 4, 0).sum()
        for _ in range(20):
            release = vc.release(
                made.table, 1, "identity", schema=SCHEMA, person="patient", max_rows=4, measure_cap=0.1,
                most_rows=MOST_ROWS,
            )  # fmt: skip
            found = release.beyond_cap(confidence=0.8)
            assert found is not None
            held_shares += [
                found.rows.low <= beyond <= found.rows.high,
                found.share.low <= beyond / made.persons.sum() <= found.share.high,
            ]
    # 120 intervals at 80%, of which two of a release go together: four standard errors below.
    assert np.mean(held_shares) >= 0.8 - 4 * np.sqrt(0.16 / 60)


def test_a_stated_spread_makes_intervals_narrow_where_it_is_true_and_wrong_where_it_is_not() -> None:
    found, of_heavy_users = {}, []
    for kind in TABLES:
        shares, widths = [], []
        for release, exact in releases(kind, 4, 0.05, "identity"):
            narrow, wide = (release.answer(QUESTIONS, rows="all", spread=spread) for spread in (2, None))
            shares.append(held(narrow, exact))
            widths.append(np.median((narrow.high - narrow.low) / (wide.high - wide.low)))
            if kind == "heavy users":
                place = int(
                    np.flatnonzero((QUESTIONS.low == [0, 0]).all(axis=1) & (QUESTIONS.high == [89, 0]).all(axis=1))[0]
                )
                exactly = release.answer(QUESTIONS, rows="all", spread=1)
                of_heavy_users.append(exactly.low[place] <= exact[place] <= exactly.high[place])
                assert wide.low[place] <= exact[place] <= wide.high[place]
        found[kind] = float(np.mean(shares)), float(np.mean(widths))
    assert found["uniform"][0] >= LEAST_COVERAGE
    assert all(width < 0.8 for _, width in found.values())
    assert not any(of_heavy_users)
