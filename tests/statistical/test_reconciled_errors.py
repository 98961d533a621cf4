"""Errors of the posterior reconciled with least squares are as large as its draws say."""

import numpy as np

from support.releases import release_of
from veilcube import Identity, Ordinal, Schema, Tree
from veilcube.analyst.estimate.polya.posterior import measured_tree
from veilcube.polya_tree import Reconciled, learn

SCHEMA = Schema([Ordinal("a", 0, 31), Ordinal("b", 0, 63)])


RAMP = np.rint(50 * np.add.outer(np.arange(32) / 32, np.arange(64) / 64)).astype(np.int64)


def reconciled(counts: np.ndarray, epsilon: float, seed: int, strategy: object = None) -> Reconciled:
    record = release_of(SCHEMA, counts, epsilon, seed, strategy or Tree()).record
    return Reconciled(SCHEMA.shape, learn(measured_tree(record)))


def test_errors_of_slabs_are_as_large_as_their_draws_say() -> None:
    ratios = []
    for seed in range(5):
        found = reconciled(RAMP, 1.0, 20 + seed)
        errors = found.cells.reshape(SCHEMA.shape).sum(axis=1) - RAMP.sum(axis=1)
        spread = found.errors.reshape(-1, *SCHEMA.shape).sum(axis=2).std(axis=0)
        ratios.append(errors / spread)
    assert 0.4 < np.sqrt(np.mean(np.square(ratios))) < 1.4


def test_a_posterior_that_follows_least_squares_does_not_claim_to_know_better() -> None:
    """Little noise on cells that are rough: the posterior errs like least squares, whatever variance it has."""
    schema, counts = Schema([Ordinal("a", 0, 63), Ordinal("b", 0, 63)]), np.full((64, 64), 40)
    counts.flat[np.random.default_rng(5).choice(4096, 60, replace=False)] = 0
    ratios, claimed = [], []
    for seed in range(6):
        found = Reconciled((64, 64), learn(measured_tree(release_of(schema, counts, 6, seed, Identity()).record)))
        errors = (found.cells.reshape(64, 64) - counts).sum(axis=1)
        ratios.append(errors / found.errors.reshape(-1, 64, 64).sum(axis=2).std(axis=0))
        claimed.append(np.sqrt(found.differences.of_posterior.mean() / found.differences.of_plain.mean()))
        assert np.square(found.differences.apart).mean() < 0.2 * found.differences.of_plain.mean()
    assert np.mean(claimed) < 0.6  # of the deviation of least squares, which it follows
    assert np.sqrt(np.mean(np.square(ratios))) < 1.2
