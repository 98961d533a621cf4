"""What a plan promises is what happens: over 20 releases, errors of least squares within 5% of the planned ones."""

from typing import Any

import numpy as np
import pytest

import veilcube as vc
from support.releases import release_by_plan

RELEASES = 20
ALLOWED = 0.05
LINE = vc.Schema([vc.Ordinal("income", 0, 255)])
PLANE = vc.Schema([vc.Ordinal("age", 1, 64), vc.Nominal("sex", ["Female", "Male"]), vc.Ordinal("floor", 1, 9)])


def root_mean_square_error(made: vc.Plan, releases: int) -> float:
    """Return the error of all answers of all releases, each question with its weight."""
    counts = np.random.default_rng(5).poisson(20, made.schema.shape)
    cube = vc.Cube(made.schema, counts)
    asked = made.workload
    truth = np.array(
        [counts[tuple(map(slice, low, high + 1))].sum() for low, high in zip(asked.low, asked.high, strict=True)]
    )
    squares = []
    for seed in range(releases):
        answers = release_by_plan(cube, made, seed=seed).answer(asked, estimator="least_squares")
        squares.append(asked.mean(np.square(answers.value - truth)))
    return float(np.sqrt(np.mean(squares)))


def questions(schema: vc.Schema, strategy: Any) -> vc.Workload:
    """Many questions whose errors hardly depend on one another: over 20 releases their mean square is known to 2%."""
    if isinstance(strategy, vc.Marginals):
        return vc.Workload.marginals(schema, strategy.k)
    low = np.random.default_rng(1).integers(0, schema.shape, (1500, len(schema)))
    high = np.minimum(low + np.random.default_rng(2).integers(0, 4, low.shape), np.array(schema.shape) - 1)
    return vc.Workload.ranges(schema, low, high, weights=(1 + np.arange(1500) % 3).tolist())


@pytest.mark.parametrize("schema", [LINE, PLANE], ids=["line", "plane"])
@pytest.mark.parametrize("promise", [{"epsilon": 0.5}, {"rho": 0.1}], ids=str)
@pytest.mark.parametrize(
    "strategy", ["identity", "tree", "wavelet", "matched", vc.Marginals(k=1), vc.Marginals(k=2)], ids=str
)
def test_twenty_releases_err_as_was_promised(strategy: Any, promise: dict[str, float], schema: vc.Schema) -> None:
    if isinstance(strategy, vc.Marginals) and strategy.k > len(schema):
        pytest.skip("there is no such table")
    made = vc.plan(schema, strategy=strategy, workload=questions(schema, strategy), **promise)
    measured = root_mean_square_error(made, RELEASES)
    assert measured == pytest.approx(made.expected_error, rel=ALLOWED)
    assert measured != pytest.approx(1.1 * made.expected_error, rel=ALLOWED)
