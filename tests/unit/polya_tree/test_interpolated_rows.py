"""Rows interpolated along lines against the rows themselves, and which lines are chosen for which halves."""

import numpy as np
import pytest

from veilcube.polya_tree import SplitLaw
from veilcube.polya_tree.messages import (
    EQUAL_DIFFERENCE,
    EQUAL_LEFT,
    EQUAL_RIGHT,
    NO_LINES,
    Frame,
    enter_band,
    frame_of,
    new_band,
    place_in_band,
)
from veilcube.polya_tree.split_law import COMPONENTS, READY_ROWS, fill_row, logarithms

# The windows of the two halves, first and last, and the lines that suit them.
HALVES = {
    "alike": ((300, 340), (310, 345), EQUAL_DIFFERENCE),
    "one larger": ((150, 190), (420, 465), EQUAL_DIFFERENCE),
    "both just large enough": ((60, 75), (70, 90), EQUAL_DIFFERENCE),
    "little on the left": ((0, 30), (400, 440), EQUAL_LEFT),
    "little on the right": ((900, 960), (3, 40), EQUAL_RIGHT),
    "far beyond the table of logarithms": ((10**6, 10**6 + 30), (10**6, 10**6 + 30), EQUAL_DIFFERENCE),
    "anything": ((0, 200), (0, 200), NO_LINES),
}


def frame_for(name: str) -> Frame:
    (first, last), (bottom, top), _ = HALVES[name]
    return frame_of(first, last, bottom, top)


def rows_of(frame: Frame, seed: int | None) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return for every count that bands serve the row made from a band and the row itself."""
    weights = np.full((1, COMPONENTS), 1 / COMPONENTS)
    if seed is not None:
        weights = np.random.default_rng(seed).dirichlet(np.full(COMPONENTS, 0.3), size=1)
    shares, band, found = SplitLaw.of(weights).shares[0], new_band(2000), []
    for j in range(max(frame.first + frame.bottom, READY_ROWS), frame.last + frame.top + 1):
        low, high = max(frame.first, j - frame.top), min(frame.last, j - frame.bottom)
        if not band.borders[0] <= j < band.borders[1]:
            enter_band(shares, logarithms(), j, low, high, frame, band)
        part = (j - band.borders[0]) / (band.borders[1] - band.borders[0])
        here = slice(place_in_band(j, low, frame), place_in_band(j, low, frame) + high - low + 1)
        exact = np.empty(high - low + 1)
        fill_row(shares, logarithms(), j, low, high, exact)
        found.append((band.lower[here] + part * (band.upper[here] - band.lower[here]), exact))
    return found


@pytest.mark.parametrize("name", HALVES)
def test_lines_are_those_along_which_shares_hardly_change(name: str) -> None:
    assert frame_for(name).lines == HALVES[name][2]


def test_small_counts_need_no_lines() -> None:
    assert frame_of(10, READY_ROWS - 21, 10, 20).lines == NO_LINES


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
@pytest.mark.parametrize("name", HALVES)
def test_rows_between_the_borders_of_bands_are_nearly_the_rows_themselves(name: str, seed: int | None) -> None:
    rows = rows_of(frame_for(name), seed)
    assert len(rows) > 25
    for found, exact in rows:
        np.testing.assert_allclose(found, exact, rtol=0.03, atol=1e-3 * exact.max())
    assert np.mean([np.abs(found - exact).sum() / exact.sum() for found, exact in rows]) < 0.01


@pytest.mark.parametrize("seed", [None, 1])
def test_a_row_alone_is_exact_where_there_are_no_lines(seed: int | None) -> None:
    for found, exact in rows_of(frame_for("anything"), seed):
        np.testing.assert_array_equal(found, exact)
