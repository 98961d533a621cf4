"""How often the intervals of quantiles from a staged tree hold, on lines of many kinds: they rest on a prior."""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from veilcube.curator.mechanisms.protected.quantiles import read_quantiles_from_staged_tree
from veilcube.curator.sampling import discrete_laplace
from veilcube.planner.quantiles import plan_quantiles

QUANTILES = [Fraction(i, 20) for i in range(1, 20)]
CELLS, RELEASES = 256, 4


def lines(rows: int) -> Iterator[NDArray[np.int64]]:
    """Yield lines that are smooth, stepped, rough, heaped and nearly empty."""
    generator, x = np.random.default_rng(11), np.arange(CELLS) / CELLS
    for weights in (
        np.ones(CELLS),
        np.exp(-(((x - 0.5) / 0.15) ** 2) / 2),
        np.exp(-(((x - 0.25) / 0.05) ** 2) / 2) + 0.5 * np.exp(-(((x - 0.7) / 0.1) ** 2) / 2),
        np.exp(-8 * x),
        1 + 0.9 * np.sin(30 * x),
        np.repeat(generator.lognormal(0, 1, 8), CELLS // 8),
        generator.lognormal(0, 1.5, CELLS),
        np.where(np.arange(CELLS) % 10 == 0, 10.0, 0.2),
        np.where(generator.random(CELLS) < 0.05, 1.0, 1e-9),
    ):
        yield generator.multinomial(rows, weights / weights.sum())


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1)])
@pytest.mark.parametrize("rows_of_a_cell", [3, 100])
def test_intervals_of_places_and_of_rows_hold(epsilon: Fraction, rows_of_a_cell: int) -> None:
    plan = plan_quantiles(CELLS, QUANTILES, epsilon, method="staged")
    assert plan.staged is not None
    shares = np.array([float(quantile) for quantile in QUANTILES])
    held_places, held_rows = [], []
    for counts in lines(int(rows_of_a_cell * CELLS / epsilon)):
        up_to = np.cumsum(counts)
        true = np.searchsorted(up_to, shares * up_to[-1])
        for _ in range(RELEASES):
            found = read_quantiles_from_staged_tree(counts, QUANTILES, plan.staged, 0.95, discrete_laplace)
            at = np.array(found.places)
            missed = np.maximum(up_to[at] - counts[at] - shares * up_to[-1], shares * up_to[-1] - up_to[at])
            held_places.append((np.array(found.first) <= true) & (true <= np.array(found.last)))
            held_rows.append(missed <= found.rows)
    # Measured: 99% to 100%; with half the widening less than 95%.
    assert np.mean(held_places) > 0.95
    assert np.mean(held_rows) > 0.95
