"""Exact posterior intervals of adaptive releases hold as often as they say."""

import numpy as np

import veilcube as vc
from support.releases import release_of

SCHEMA = vc.Schema([vc.Ordinal("age", 0, 7), vc.Ordinal("hours", 0, 11)])


COUNTS = np.random.default_rng(0).integers(0, 60, (8, 12))


def test_intervals_hold_as_often_as_they_say_on_blocks() -> None:
    queries = vc.Workload.random_ranges(SCHEMA, 60, seed=5)
    truth = np.array([
        COUNTS[tuple(slice(a, b + 1) for a, b in zip(low, high, strict=True))].sum()
        for low, high in zip(queries.low, queries.high, strict=True)
    ])  # fmt: skip
    held = []
    for seed in range(12):
        answers = release_of(SCHEMA, COUNTS, 0.05, seed, vc.Adaptive(split=0.5, side=4)).answer(
            queries, estimator="observed"
        )
        held.append(np.mean((answers.low <= truth) & (truth <= answers.high)))
    assert 0.92 <= np.mean(held) <= 0.98
