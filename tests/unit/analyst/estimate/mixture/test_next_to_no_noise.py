"""Grouped tables where noise is next to nothing, and where more is impossible than can be imposed."""

import numpy as np
import pytest

import veilcube as vc
from support.releases import release_of
from veilcube.analyst.estimate.mixture import LatentClasses
from veilcube.analyst.estimate.mixture.observed import impossible_region
from veilcube.analyst.release import Release


def quickly(release: Release) -> Release:
    release._fitted["latent_classes"] = LatentClasses(fits=1, replays=2).fit(release.record)
    return release


@pytest.mark.parametrize("epsilon", [1000, 10_000])
def test_a_huge_epsilon_is_answered_nearly_exactly(epsilon: int) -> None:
    schema = vc.Schema([vc.Ordinal(name, 0, 3) for name in "xyz"])
    counts = np.random.default_rng(0).poisson(300, schema.shape)
    answer = quickly(release_of(schema, counts, epsilon, 1, "grouped tables")).count(x=1)
    assert answer.value == pytest.approx(counts[1].sum(), rel=0.01)
    assert np.isfinite([answer.low, answer.high, answer.stddev]).all()


def test_more_impossible_boxes_than_can_be_imposed_are_left_out() -> None:
    pairs = [{f"a{2 * i}": 1, f"a{2 * i + 1}": 2} for i in range(13)]
    wide = vc.Schema([vc.Ordinal(f"a{i}", 0, 3) for i in range(26)], impossible=pairs)
    assert impossible_region(wide) is None
    few = vc.Schema([vc.Ordinal(f"a{i}", 0, 3) for i in range(4)], impossible=pairs[:2])
    found = impossible_region(few)
    assert found is not None
    assert found.cells == 4**4 - 15**2
