"""The posterior reconciled with least squares: slopes come back, and draws err as far as the answers do."""

import numpy as np
import pytest

from support.releases import release_of
from veilcube import Identity, Ordinal, Schema, Tree
from veilcube.analyst.estimate.polya.posterior import measured_tree
from veilcube.polya_tree import Reconciled, learn
from veilcube.polya_tree.reconciled import PLAIN_DRAWS
from veilcube.polya_tree.sampling import DRAWS

SCHEMA = Schema([Ordinal("a", 0, 31), Ordinal("b", 0, 63)])
RAMP = np.rint(50 * np.add.outer(np.arange(32) / 32, np.arange(64) / 64)).astype(np.int64)


def reconciled(counts: np.ndarray, epsilon: float, seed: int, strategy: object = None) -> Reconciled:
    record = release_of(SCHEMA, counts, epsilon, seed, strategy or Tree()).record
    return Reconciled(SCHEMA.shape, learn(measured_tree(record)))


@pytest.mark.parametrize("strategy", [Tree(), Identity()], ids=["tree", "identity"])
def test_a_marginal_that_the_prior_bends_is_as_good_as_least_squares(strategy: object) -> None:
    bent, corrected, plain = [], [], []
    for seed in range(4):
        record = release_of(SCHEMA, RAMP, 2.0, seed, strategy).record
        belief = learn(measured_tree(record))
        found, truth = Reconciled(SCHEMA.shape, belief), RAMP.sum(axis=1)
        for errors, cells in ((bent, belief.cells()), (corrected, found.cells), (plain, found.plain)):
            errors.append(cells.reshape(SCHEMA.shape).sum(axis=1) - truth)
    bent, corrected, plain = (np.sqrt(np.mean(np.square(errors))) for errors in (bent, corrected, plain))
    assert corrected < 0.7 * bent
    assert corrected < 1.15 * plain


def test_where_the_prior_suits_cells_stay_far_better_than_least_squares() -> None:
    found = reconciled(np.full(SCHEMA.shape, 40), 0.5, 3)
    errors = [np.sqrt(np.mean(np.square(cells - 40))) for cells in (found.cells, found.plain)]
    assert errors[0] < 0.4 * errors[1]


def test_draws_are_the_same_for_the_same_release_and_have_their_shapes() -> None:
    one, other = (reconciled(RAMP, 0.5, 7) for _ in range(2))
    np.testing.assert_array_equal(one.cells, other.cells)
    np.testing.assert_array_equal(one.errors, other.errors)
    assert one.errors.shape == (DRAWS, RAMP.size)
    assert one.plain_errors.shape == (PLAIN_DRAWS, RAMP.size)
    assert np.isfinite(one.errors).all()


def test_a_table_of_one_cell_and_an_empty_one_are_read() -> None:
    schema = Schema([Ordinal("a", 0, 0)])
    record = release_of(schema, np.array([5]), 1.0, 1, Identity()).record
    assert np.isfinite(Reconciled((1,), learn(measured_tree(record))).errors).all()
    assert np.abs(reconciled(np.zeros(SCHEMA.shape, dtype=np.int64), 1.0, 2).cells).mean() < 0.5
