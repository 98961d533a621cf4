"""Intervals of adaptive releases hold as often as they say, over many releases."""

import numpy as np

import veilcube as vc
from support.releases import release_of

PLANE = vc.Schema([vc.Ordinal("a", 0, 63), vc.Ordinal("b", 0, 63)])


def test_blocks_of_two_laws_of_small_scales_are_held_as_often_as_stated() -> None:
    counts = np.random.default_rng(0).poisson(3, (64, 64))
    corners = np.stack(np.meshgrid(*[np.arange(0, 64, 16)] * 2, indexing="ij"), axis=-1).reshape(-1, 2)
    queries, truth = vc.Workload.ranges(PLANE, corners, corners + 15), counts.reshape(4, 16, 4, 16).sum((1, 3)).ravel()
    held = []
    for seed in range(60):
        release = release_of(PLANE, counts, 2.8, seed, vc.Adaptive("blocks", split=0.1, side=16))
        found = release.answer(queries, estimator="least_squares", interval="guaranteed")
        held.append(np.mean((found.low <= truth) & (truth <= found.high)))
    assert np.mean(held) >= 0.94
