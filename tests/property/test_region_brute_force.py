"""Regions against brute force: every combination of boxes must hold exactly the cells of the boolean arrays."""

from collections.abc import Callable
from math import prod

import numpy as np
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from veilcube.schema import Region

Cells = NDArray[np.bool_]
SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)


def as_array(region: Region) -> Cells:
    """Return the region's cells as a dense array, checking that no two boxes overlap and none is empty."""
    held = np.zeros(region.shape, dtype=np.int64)
    for box in region.boxes:
        assert box.cells > 0
        held[np.ix_(*(box.indices(axis) for axis in range(len(region.shape))))] += 1
    assert held.max(initial=0) <= 1
    return held.astype(np.bool_)


@st.composite
def boxes(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[Region, Cells]:
    region, dense = Region.everything(shape), np.ones(shape, dtype=np.bool_)
    for axis, size in enumerate(shape):
        mask = np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)), dtype=np.bool_)
        region = region.intersect(Region.on_axis(shape, axis, mask))
        dense &= mask.reshape([-1 if other == axis else 1 for other in range(len(shape))])
    return region, dense


@st.composite
def combinations(draw: st.DrawFn) -> tuple[Region, Cells]:
    shape = draw(SHAPES)
    region, dense = draw(boxes(shape))
    for _ in range(draw(st.integers(0, 6))):
        others = draw(st.lists(boxes(shape), min_size=1, max_size=3))
        if draw(st.booleans()):
            region = region.union(*(other for other, _ in others))
            dense = np.logical_or.reduce([dense, *(cells for _, cells in others)])
        else:
            united = others[0][0].union(*(other for other, _ in others[1:]))
            region = region.intersect(united)
            dense = dense & np.logical_or.reduce([cells for _, cells in others])
    return region, dense


@given(combinations())
@settings(max_examples=120, deadline=None)
def test_unions_and_intersections_hold_exactly_their_cells_once(case: tuple[Region, Cells]) -> None:
    region, dense = case
    assert np.array_equal(as_array(region), dense)
    assert region.cells == np.count_nonzero(dense)


@given(combinations())
@settings(max_examples=60, deadline=None)
def test_a_rectangle_is_the_whole_region_or_none(case: tuple[Region, Cells]) -> None:
    region, dense = case
    block = region.rectangle()
    if block is not None:
        low, high = block
        assert dense[tuple(slice(a, b + 1) for a, b in zip(low, high, strict=True))].all()
        assert prod((high - low + 1).tolist()) == np.count_nonzero(dense)
    elif len(region.boxes) == 1:
        held = np.argwhere(dense)
        spans = held.max(axis=0) - held.min(axis=0) + 1
        assert prod(spans.tolist()) > len(held)


@given(st.data(), SHAPES)
@settings(max_examples=40, deadline=None)
def test_the_order_of_the_regions_does_not_matter(data: st.DataObject, shape: tuple[int, ...]) -> None:
    drawn = data.draw(st.lists(boxes(shape), min_size=2, max_size=5))
    regions = [region for region, _ in drawn]
    turned: Callable[[list[Region]], list[Region]] = data.draw(st.sampled_from([list, lambda found: found[::-1]]))
    first, *others = turned(regions)
    assert np.array_equal(as_array(first.union(*others)), np.logical_or.reduce([cells for _, cells in drawn]))
    assert np.array_equal(as_array(first.intersect(*others)), np.logical_and.reduce([cells for _, cells in drawn]))
