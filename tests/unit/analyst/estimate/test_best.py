"""Which estimator "best" takes: judged by what was published."""

from pathlib import Path

import numpy as np
import pytest

import veilcube as vc
from support.releases import release_of
from veilcube.analyst.estimate.best import MOST_DISAGREEMENT, disagreement
from veilcube.analyst.estimate.linear.least_squares import LeastSquares
from veilcube.analyst.estimate.polya.posterior import Posterior
from veilcube.polya_tree import WIDENING

SCHEMA = vc.Schema([vc.Ordinal("income", 0, 255)])
SMOOTH = (200 * np.exp(-np.arange(256) / 60)).astype(np.int64)
ROUGH = np.where(np.arange(256) % 2 == 0, 0, 5000)


def test_the_guide_names_the_widening_of_the_posterior() -> None:
    guide = (Path(__file__).parents[4] / "docs/how-to/choose-an-estimator.md").read_text()
    assert f"multiplied by {WIDENING:g}" in guide


@pytest.mark.parametrize(("counts", "name"), [(SMOOTH, "posterior"), (ROUGH, "posterior")], ids=["smooth", "rough"])
def test_a_staged_tree_is_read_by_the_posterior_whatever_the_data(counts: np.ndarray, name: str) -> None:
    release = release_of(SCHEMA, counts, 0.5, 1, vc.Tree())
    assert release.count(income=(3, 90)) == release.count(income=(3, 90), estimator=name)


def test_smooth_cells_are_read_by_the_posterior() -> None:
    release = release_of(SCHEMA, SMOOTH, 0.1, 2, "identity")
    assert release.count(income=(3, 90)) == release.count(income=(3, 90), estimator="posterior")


def test_rough_categories_are_read_by_least_squares() -> None:
    jobs = vc.Schema([vc.Nominal("job", [f"j{i}" for i in range(256)])])
    release = release_of(jobs, ROUGH, 0.1, 3, "identity")
    assert release.count(job="j4") == release.count(job="j4", estimator="least_squares")


def test_disagreement_is_small_where_neighbours_are_alike() -> None:
    release = release_of(SCHEMA, SMOOTH, 0.1, 4, "identity")
    record = release.record
    assert disagreement(record, lambda estimator: estimator.fit(record), Posterior()) < MOST_DISAGREEMENT


def test_disagreement_counts_variances_of_least_squares() -> None:
    record = release_of(SCHEMA, SMOOTH, 0.1, 5, "identity").record

    class Shifted:
        """Least squares with every cell one standard deviation of the noise too high."""

        def __init__(self) -> None:
            self.plain = LeastSquares().fit(record)

        def cells(self) -> np.ndarray:
            return self.plain.cells() + record.measurements[0].noise.stddev

        def rectangles(self, *arguments: object) -> object:
            return self.plain.rectangles(*arguments)

    ranges = vc.Workload.random_ranges(SCHEMA, 500, seed=0)
    # A shift adds up along a prefix as it does not in a range: the kind where it shows most counts.
    lengths = np.append(ranges.high[1:, 0] + 1, 256)
    assert disagreement(record, lambda _: Shifted(), Posterior()) == pytest.approx(lengths.mean())


def test_an_estimator_that_is_wrong_on_marginals_only_is_left() -> None:
    schema = vc.Schema([vc.Ordinal("a", 0, 63), vc.Ordinal("b", 0, 63)])
    record = release_of(schema, np.full((64, 64), 50), 0.1, 6, "identity").record

    class Tilted:
        """Least squares with one row less and the next row more, by two deviations of a row's noise."""

        def __init__(self) -> None:
            self.plain = LeastSquares().fit(record)

        def cells(self) -> np.ndarray:
            tilt = 2 * record.measurements[0].noise.stddev / 8 * np.where(np.arange(64) % 2, 1, -1)
            return self.plain.cells() + tilt[:, None]

        def rectangles(self, *arguments: object) -> object:
            return self.plain.rectangles(*arguments)

    assert disagreement(record, lambda _: Tilted(), Posterior()) > MOST_DISAGREEMENT
