"""Questions to releases with one long attribute: answered from the nodes about their ends, never from the cells."""

import resource
import time

import numpy as np
import pytest

import veilcube as vc
from support.releases import release_of
from veilcube.analyst.estimate.linear.least_squares import LinearEstimate
from veilcube.operators import BlockSums

SIZE = 1 << 16
SCHEMA = vc.Schema([vc.Ordinal("x", 0, SIZE - 1)])
COUNTS = np.random.default_rng(24).integers(0, 3, SIZE)
STRATEGIES = [vc.Wavelet(), vc.Tree(refine=False), vc.Tree(branching=2, refine=False)]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=["wavelet", "tree", "binary tree"])
def test_answers_are_sums_of_the_cells_and_none_are_made(strategy: object, monkeypatch: pytest.MonkeyPatch) -> None:
    release = release_of(SCHEMA, COUNTS, 1, 7, strategy)
    workload = vc.Workload.random_ranges(SCHEMA, 50, 3)
    cells = release.record.measurements[0].operator.answers.solve(release.record.measurements[0].values)
    expected = BlockSums(cells)(workload.low, workload.high)

    def refuse(self: LinearEstimate) -> None:
        raise AssertionError("the cells were written out")

    monkeypatch.setattr(LinearEstimate, "_cells", property(refuse))
    found = release.answer(workload, estimator="least_squares")
    np.testing.assert_allclose(found.value, expected, atol=1e-6)
    for low, high, value in zip(workload.low[:5, 0], workload.high[:5, 0], found.value, strict=False):
        one = release.count(x=(int(low), int(high)), estimator="least_squares")
        assert one.value == pytest.approx(value)
        assert one.stddev == pytest.approx(found.stddev[np.flatnonzero(found.value == value)[0]])
    with pytest.raises(AssertionError, match="written out"):
        release.count(x=[1, 3, 900], estimator="least_squares")


@pytest.mark.parametrize("strategy", STRATEGIES[:2], ids=["wavelet", "tree"])
def test_a_second_question_does_not_take_longer_on_a_hundred_times_the_cells(strategy: object) -> None:
    def seconds(size: int) -> float:
        schema = vc.Schema([vc.Ordinal("x", 0, size - 1)])
        release = release_of(schema, np.zeros(size, dtype=np.int64), 1, 7, strategy)
        release.count(x=(1, size // 2))
        times = []
        for number in range(2, 22):
            start = time.perf_counter()
            release.count(x=(number, size // 2 + number))
            times.append(time.perf_counter() - start)
        return float(np.median(times))

    few, many = seconds(1 << 15), seconds(100 << 15)
    assert many < 5 * few


def test_a_range_on_a_very_long_attribute_makes_no_mask() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    schema = vc.Schema([vc.Ordinal("x", 0, 10**12 - 1), vc.Nominal("y", ["a", "b"])])
    workload = vc.Workload(schema, [{"x": (5, 10**11), "y": "a"}, {"x": 7}, {}])
    assert workload.high[:, 0].tolist() == [10**11, 7, 10**12 - 1]
    assert vc.LinearQueries.of(workload).count_rows(np.array([[7, 0], [8, 1]])).tolist() == [2 - 1, 1, 2]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000
