"""Sets with gaps under the posterior: what heaps do to a count they do to every way of adding it up."""

import numpy as np
import pytest

import veilcube as vc
from support.releases import release_of
from veilcube.analyst.estimate.polya.posterior import DrawnGroups, Posterior
from veilcube.query import read_query

SCHEMA = vc.Schema([vc.Ordinal("age", 0, 63), vc.Ordinal("place", 0, 31)])
TENTH = "age IN (0, 10, 20, 30, 40, 50, 60)"


@pytest.fixture(scope="module")
def grouped() -> dict[str, DrawnGroups]:
    """Return every tenth age: all together, by age and by place."""
    heaped = np.where(np.arange(64) % 10 == 0, 30, 2)
    counts = np.repeat(heaped[:, np.newaxis], 32, axis=1)
    estimate = Posterior().fit(release_of(SCHEMA, counts, 0.05, 1, vc.Tree()).record)
    region = read_query(SCHEMA, TENTH)
    return {name: estimate.grouped(region, axes) for name, axes in (("all", ()), ("age", (0,)), ("place", (1,)))}


@pytest.mark.parametrize("name", ["age", "place"])
def test_the_sum_of_all_groups_is_as_uncertain_as_their_count(grouped: dict[str, DrawnGroups], name: str) -> None:
    groups, whole = grouped[name], grouped["all"]
    assert whole.heaps is not None
    assert float(whole.heaps.alone) > whole.draws.std(ddof=1)
    expected = whole.variance_of(np.ones(()))
    assert groups.variance_of(np.ones(groups.counts.shape)) == pytest.approx(expected)
    assert groups.prefix_variances(1, 1) == pytest.approx(np.full(groups.counts.size, expected))
    assert groups.prefix_variances(1, 0)[-1] == pytest.approx(expected)


def test_the_first_groups_keep_what_heaps_do_to_them(grouped: dict[str, DrawnGroups]) -> None:
    groups, size = grouped["age"], 61  # the last of every tenth is 60
    weights = np.arange(1.0, 65.0)
    first = groups.first(size)
    assert first.variance_of(weights[:size]) == pytest.approx(groups.variance_of(weights))
    assert first.variance_of(weights[:size]) > 2 * (groups.draws @ weights).var(ddof=1)


def test_ranges_follow_no_heaps() -> None:
    counts = np.full((64, 32), 5)
    estimate = Posterior().fit(release_of(SCHEMA, counts, 0.05, 1, vc.Tree()).record)
    assert estimate.grouped(read_query(SCHEMA, "age BETWEEN 10 AND 20"), (0,)).heaps is None


def test_a_mean_is_unsure_of_whether_heaps_are_as_high_at_both_ends(grouped: dict[str, DrawnGroups]) -> None:
    groups = grouped["age"]
    assert groups.heaps is not None
    together, ages = groups.heaps.together, np.arange(64.0)
    centred = ages - np.average(ages, weights=together)
    assert together @ centred == pytest.approx(0.0, abs=1e-6)  # heaps that are alike everywhere leave the mean
    of_draws = (groups.draws @ centred).var(ddof=1)
    of_slope = np.square(together @ np.square(centred) / np.abs(centred[together > 0]).max())
    apart = np.square((groups.plain - groups.counts) @ centred)
    assert groups.variance_of(centred) == pytest.approx(1.25**2 * (of_draws + of_slope + apart))
