"""The law of a split against its definition by incomplete Beta functions."""

import numpy as np
import pytest

from support.dense_posterior import component_row, defined_row
from veilcube.operators import HalvingTree
from veilcube.polya_tree import SplitLaw
from veilcube.polya_tree.split_law import (
    ALL_LEFT,
    ALL_RIGHT,
    BETAS,
    COMPONENTS,
    READY_ROWS,
    Law,
    component_rows,
    logarithms,
    split_row,
)
from veilcube.schema import Ordinal, Schema


def law_of(seed: int | None, classes: int = 2) -> Law:
    even = np.full((classes, COMPONENTS), 1 / COMPONENTS)
    weights = even if seed is None else np.random.default_rng(seed).dirichlet(np.ones(COMPONENTS), size=classes)
    law = SplitLaw.of(weights)
    return Law(law.weights, law.rows, law.shares, logarithms())


def row_of(law: Law, kind: int, j: int, low: int = 0, high: int | None = None) -> np.ndarray:
    high = j if high is None else high
    return split_row(law, kind, j, low, high, np.empty(high - low + 1)).copy()


@pytest.mark.parametrize("seed", [None, 1, 2])
@pytest.mark.parametrize("j", [0, 1, 2, 3, 7, 100, 255, 256, 257, 1000, 4096])
def test_rows_sum_to_one_are_never_negative_and_have_the_mean_that_the_law_states(seed: int | None, j: int) -> None:
    law = law_of(seed)
    row = row_of(law, 1, j)
    assert row.sum() == pytest.approx(1.0, abs=1e-12)
    assert (row >= 0).all()
    assert np.arange(j + 1) @ row == pytest.approx(j * SplitLaw.of(law.weights).left_shares[1], abs=1e-9 * (j + 1))


@pytest.mark.parametrize("j", [1, 2, 9, 255, 256, 1000])
def test_exchanging_the_atoms_at_the_ends_mirrors_a_row(j: int) -> None:
    weights = law_of(6).weights
    mirrored = weights.copy()
    mirrored[:, [ALL_LEFT, ALL_RIGHT]] = weights[:, [ALL_RIGHT, ALL_LEFT]]
    rows = []
    for chosen in (weights, mirrored):
        law = SplitLaw.of(chosen)
        rows.append(row_of(Law(law.weights, law.rows, law.shares, logarithms()), 0, j))
    np.testing.assert_allclose(rows[0], rows[1][::-1], atol=1e-13)
    assert abs(rows[0][0] - rows[0][-1]) > 1e-3


@pytest.mark.parametrize("seed", [None, 1, 2])
@pytest.mark.parametrize("j", [0, 1, 2, 3, 7, 64, 100, 255, 256, 257, 1000, 4096])
def test_rows_are_those_of_the_definition(seed: int | None, j: int) -> None:
    law = law_of(seed)
    for kind in (0, 1):
        expected = defined_row(law.weights[kind], j)
        np.testing.assert_allclose(row_of(law, kind, j), expected, rtol=1e-2, atol=1e-9)
        np.testing.assert_allclose(np.cumsum(row_of(law, kind, j)), np.cumsum(expected), atol=2e-5)


@pytest.mark.parametrize("component", range(COMPONENTS))
def test_ready_rows_are_those_of_each_component(component: int) -> None:
    for j in (1, 2, 5, 33, READY_ROWS - 1):
        start = j * (j + 1) // 2
        found = component_rows()[component, start : start + j + 1]
        np.testing.assert_allclose(found, component_row(j)[component], atol=2e-4 if component < BETAS else 0)
        assert found.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("j", [5, 255, 256, 300, 5000, 10**6, 10**9])
def test_a_part_of_a_row_is_a_part_of_the_whole_row(j: int) -> None:
    law = law_of(3)
    for low, high in [(0, min(j, 40)), (j // 2 - 2, j // 2 + 2), (max(0, j - 40), j)]:
        wide_low, wide_high = max(0, low - 7), min(j, high + 7)
        wide = row_of(law, 0, j, wide_low, wide_high)
        np.testing.assert_allclose(
            row_of(law, 0, j, low, high), wide[low - wide_low : high - wide_low + 1], rtol=1e-9, atol=1e-15
        )
        assert (wide > 0).all()


def test_rows_computed_for_large_counts_continue_the_ready_ones() -> None:
    law = law_of(4)
    last, first = row_of(law, 0, READY_ROWS - 1), row_of(law, 0, READY_ROWS)
    off_centre = READY_ROWS // 2 - 8
    np.testing.assert_allclose(np.cumsum(last)[:off_centre], np.cumsum(first)[:off_centre], atol=0.01)
    np.testing.assert_allclose(first, defined_row(law.weights[0], READY_ROWS), rtol=2e-3, atol=1e-9)


def test_the_even_law_prefers_no_component_and_no_side_of_a_line() -> None:
    plane = HalvingTree.of(Schema([Ordinal("a", 1, 4), Ordinal("b", 1, 3)]))
    np.testing.assert_allclose(SplitLaw.even(plane).weights, 1 / COMPONENTS)
    line = SplitLaw.even(HalvingTree.of(Schema([Ordinal("a", 1, 4), Ordinal("b", 1, 1)])))
    np.testing.assert_allclose(line.weights[:, :ALL_LEFT], 1 / (COMPONENTS - 2))
    np.testing.assert_array_equal(line.weights[:, ALL_LEFT:], 0.0)
