"""The variance of wavelet answers over many releases against the exact formula, and how often intervals hold.

What is proved in docs/proofs/wavelets.md is tested here.
"""

from math import prod

import numpy as np
import pytest
from numpy.typing import NDArray

import veilcube as vc
from support.seeded import SeededWords
from veilcube.curator.sampling import discrete_laplace

RELEASES = 40_000
# The error of a measured variance, averaged over the queries of one shape, stays well below this.
TOLERANCE = 0.03

JOBS = {"Care": ["Nurse", "Aide", "Doctor"], "Office": ["Clerk", "Judge"], "Other": ["Artist"]}
SMALL = vc.Schema([vc.Ordinal("age", 0, 4), vc.Nominal("sex", ["f", "m"]), vc.Nominal("job", hierarchy=JOBS)])
LINE = vc.Schema([vc.Ordinal("age", 0, 12)])
SHAPES = {
    "ranges": (SMALL, [{"age": (low, high)} for low in range(5) for high in range(low, 5)]),
    "nodes": (SMALL, [{"job": name} for name in ("Care", "Office", "Other", "Nurse", "Judge", "Artist")]),
    "sets": (SMALL, [{"job": ["Nurse", "Clerk"]}, {"age": [0, 2, 4], "job": ["Aide", "Artist"]}, {"age": [1, 3]}]),
    "boxes": (SMALL, [{"age": (1, 3), "sex": "f", "job": "Care"}, {"age": 2, "job": "Office"}]),
    "line": (LINE, [{"age": (low, high)} for low in range(13) for high in range(low, 13)]),
}


def noise_of_answers(
    schema: vc.Schema, plan: vc.Plan, queries: list[dict[str, object]], seed: int
) -> NDArray[np.float64]:
    """Return what the noise of many releases does to each answer: (releases, queries)."""
    operator = plan.operator
    masks = np.array([_mask(schema, query) for query in queries])
    rows = prod(operator.measurement_shape)
    units = np.eye(rows, dtype=np.int64).reshape(rows, *operator.measurement_shape)
    answers = np.array([masks @ operator.solve(unit).ravel() for unit in units])
    noise = discrete_laplace(plan.noise.scale, (RELEASES, rows), source=SeededWords(seed))
    return noise @ answers


def _mask(schema: vc.Schema, query: dict[str, object]) -> NDArray[np.float64]:
    """Return the cells of a query."""
    region = vc.Workload(schema, [query])
    inside = region.regions.get(0)
    if inside is not None:
        return inside.mask().ravel().astype(np.float64)
    mask = np.zeros(schema.shape)
    mask[tuple(slice(low, high + 1) for low, high in zip(region.low[0], region.high[0], strict=True))] = 1.0
    return mask.ravel()


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("flat", [(), ("age",), ("job",)], ids=["none", "age", "job"])
@pytest.mark.parametrize("shape", SHAPES)
def test_measured_variance_is_the_planned_one(shape: str, flat: tuple[str, ...], neighbours: str) -> None:
    schema, queries = SHAPES[shape]
    plan = vc.plan(schema, 0.5, vc.Wavelet(flat=[name for name in flat if name in schema.names]), neighbours=neighbours)
    noise = noise_of_answers(schema, plan, queries, seed=len(shape))
    planned = plan.stddev(vc.Workload(schema, queries)) ** 2
    measured = np.square(noise).mean(axis=0)
    assert np.mean(measured / planned) == pytest.approx(1, abs=TOLERANCE)


def test_a_scale_that_is_3_percent_off_would_be_noticed() -> None:
    schema, queries = SHAPES["ranges"]
    plan = vc.plan(schema, 0.5, vc.Wavelet(flat=[]))
    noise = noise_of_answers(schema, plan, queries, seed=1) * 1.03
    planned = plan.stddev(vc.Workload(schema, queries)) ** 2
    assert np.mean(np.square(noise).mean(axis=0) / planned) > 1 + TOLERANCE


@pytest.mark.parametrize("shape", SHAPES)
def test_intervals_of_least_squares_hold_as_often_as_they_say(shape: str) -> None:
    schema, queries = SHAPES[shape]
    plan = vc.plan(schema, 0.5, vc.Wavelet(flat=[]))
    noise = noise_of_answers(schema, plan, queries, seed=2)
    widths = plan.half_widths(vc.Workload(schema, queries), 0.95)
    assert 0.94 <= np.mean(np.abs(noise) <= widths) <= 0.965
