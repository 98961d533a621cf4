"""The sparse noise weights of ranges beside the axis' own transform."""

import numpy as np
import pytest

import veilcube as vc
from support.releases import release_of
from veilcube.operators import HaarAxis
from veilcube.operators.wavelet.haar import haar_range_weights


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 13, 64, 100])
def test_they_are_those_of_the_axis_for_every_range(size: int) -> None:
    low, high = np.triu_indices(size)
    cells = np.arange(size)
    queries = ((cells >= low[:, None]) & (cells <= high[:, None])).astype(np.float64)
    found = haar_range_weights(size, low.astype(np.int64), high.astype(np.int64)).toarray()
    np.testing.assert_allclose(found, HaarAxis(size).noise_weights(queries), atol=1e-12)


def test_few_rows_count_for_a_range_of_a_long_axis() -> None:
    found = haar_range_weights(1_000_000, np.array([123_456]), np.array([765_432]))
    assert found.nnz <= 2 * 20 + 1


def test_a_long_axis_gives_the_variances_of_its_operator() -> None:
    schema = vc.Schema([vc.Ordinal("x", 0, 4_999)])
    counts = np.random.default_rng(1).integers(0, 9, schema.shape)
    release = release_of(schema, counts, seed=1, strategy=vc.Wavelet(flat=[]))
    known = vc.Workload.random_ranges(schema, 300, seed=1)
    exact = np.array([counts[low[0] : high[0] + 1].sum() for low, high in zip(known.low, known.high, strict=True)])
    refined = vc.refine(release, B=known, c=exact)
    np.testing.assert_allclose(refined.answer(known).value, exact, atol=1e-6)
    # A set with gaps goes through the transforms; as two ranges it does not.
    halves = [
        refined.count("x < 100 OR (x >= 200 AND x < 300)"),
        refined.count("x < 300 AND NOT (x >= 100 AND x < 200)"),
    ]
    assert halves[0].stddev == pytest.approx(halves[1].stddev, rel=1e-9)
    one, both = refined.count("x < 700"), refined.answer(vc.Workload.ranges(schema, [[0]] * 900, [[699]] * 900))
    np.testing.assert_allclose(both.stddev, one.stddev, rtol=1e-9)
