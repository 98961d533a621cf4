import numpy as np
import pytest
from numpy.typing import NDArray

from veilcube.errors import CapacityError, QueryError
from veilcube.schema import Box, Region
from veilcube.schema.region import MAX_BOXES

SHAPE = (4, 3, 5)


def _mask(size: int, *cells: int) -> NDArray[np.bool_]:
    mask = np.zeros(size, dtype=np.bool_)
    mask[list(cells)] = True
    return mask


def _on(axis: int, *cells: int, shape: tuple[int, ...] = SHAPE) -> Region:
    return Region.on_axis(shape, axis, _mask(shape[axis], *cells))


class TestBox:
    def test_counts_its_cells_by_axis(self) -> None:
        box = Box(SHAPE, (_mask(4, 0, 2), None, _mask(5, 1)))
        assert box.sizes == (2, 3, 1)
        assert box.cells == 6

    def test_an_open_axis_is_all_its_cells(self) -> None:
        box = Box(SHAPE, (None, None, _mask(5, 1, 4)))
        assert box.mask(0).tolist() == [True] * 4
        assert box.indices(2).tolist() == [1, 4]

    def test_another_choice_on_an_axis_makes_a_new_box(self) -> None:
        box = Box(SHAPE, (_mask(4, 0), None, None))
        changed = box.with_axis(0, _mask(4, 1, 2))
        assert (box.indices(0).tolist(), changed.indices(0).tolist()) == ([0], [1, 2])
        assert box.with_axis(0, np.ones(4, dtype=np.bool_)).axes == (None, None, None)

    def test_intersects_axis_by_axis(self) -> None:
        met = Box(SHAPE, (_mask(4, 0, 1), None, _mask(5, 1))).intersect(Box(SHAPE, (_mask(4, 1, 2), _mask(3, 0), None)))
        assert [met.indices(axis).tolist() for axis in range(3)] == [[1], [0], [1]]


class TestRegion:
    def test_everything_and_nothing(self) -> None:
        assert Region.everything(SHAPE).cells == 60
        assert Region.nothing(SHAPE).cells == 0
        assert Region.on_axis(SHAPE, 0, _mask(4)).boxes == ()
        assert Region.on_axis(SHAPE, 0, np.ones(4, dtype=np.bool_)).boxes[0].axes == (None, None, None)

    def test_intersection_with_everything_and_nothing(self) -> None:
        region = _on(0, 1, 2).union(_on(1, 0))
        assert region.intersect(Region.everything(SHAPE)).cells == region.cells == 40
        assert region.intersect(Region.nothing(SHAPE)).boxes == ()
        assert Region.nothing(SHAPE).intersect(Region.nothing(SHAPE)).boxes == ()

    def test_union_with_everything_and_nothing(self) -> None:
        region = _on(0, 1, 2)
        assert region.union(Region.nothing(SHAPE)).cells == region.cells
        assert region.union(Region.everything(SHAPE)).boxes[0].axes == (None, None, None)
        assert Region.nothing(SHAPE).union().boxes == ()

    def test_disjoint_boxes_meet_nowhere(self) -> None:
        assert _on(0, 1).intersect(_on(0, 2)).boxes == ()

    def test_several_regions_at_once(self) -> None:
        assert _on(0, 1, 2).intersect(_on(1, 0), _on(2, 3, 4)).cells == 4
        assert _on(0, 0).union(_on(0, 1), _on(0, 2)).cells == 45

    def test_values_of_one_attribute_stay_one_box(self) -> None:
        assert len(_on(0, 0).union(_on(0, 1), _on(0, 3)).boxes) == 1

    def test_pieces_that_fill_an_axis_become_open_again(self) -> None:
        whole = _on(0, 0, 1).union(_on(0, 2, 3))
        assert whole.boxes[0].axes == (None, None, None)

    def test_a_union_counts_shared_cells_once(self) -> None:
        cross = _on(0, 1).union(_on(1, 1))
        assert cross.cells == 15 + 20 - 5
        assert len(cross.boxes) == 2

    def test_a_box_inside_another_vanishes(self) -> None:
        assert len(_on(0, 1).intersect(_on(1, 2)).union(_on(0, 1, 2)).boxes) == 1

    def test_regions_do_not_change_when_they_are_combined(self) -> None:
        one, other = _on(0, 1), _on(1, 1)
        one.union(other)
        one.intersect(other)
        assert (one.cells, other.cells) == (15, 20)

    def test_axes_longer_than_a_machine_word_are_exact(self) -> None:
        shape = (1001, 3)
        region = _on(0, 0, 63, 64, 1000, shape=shape).union(_on(1, 2, shape=shape).intersect(_on(0, 7, shape=shape)))
        assert region.cells == 4 * 3 + 1
        chosen = sorted({int(cell) for box in region.boxes for cell in box.indices(0)})
        assert chosen == [0, 7, 63, 64, 1000]


class TestRectangle:
    def test_a_block_has_inclusive_corners(self) -> None:
        low, high = _on(0, 1, 2).intersect(_on(2, 4)).rectangle()
        assert (low.tolist(), high.tolist()) == ([1, 0, 4], [2, 2, 4])

    @pytest.mark.parametrize("region", [Region.nothing(SHAPE), _on(0, 0, 2), _on(0, 1).union(_on(1, 1))])
    def test_anything_else_is_no_block(self, region: Region) -> None:
        assert region.rectangle() is None


class TestLimits:
    SIZE = MAX_BOXES + 1

    def _diagonal(self, count: int) -> list[Region]:
        shape = (self.SIZE, self.SIZE)
        return [_on(0, cell, shape=shape).intersect(_on(1, cell, shape=shape)) for cell in range(count)]

    def test_a_union_in_too_many_pieces_is_refused(self) -> None:
        first, *others = self._diagonal(self.SIZE)
        with pytest.raises(QueryError, match=f"more than {MAX_BOXES} separate blocks of cells; split it"):
            first.union(*others)

    def test_an_intersection_in_too_many_pieces_is_refused(self) -> None:
        shape = (300, 300, 300, 300)
        diagonal = [
            [_on(axis, cell, shape=shape).intersect(_on(axis + 1, cell, shape=shape)) for cell in range(300)]
            for axis in (0, 2)
        ]
        one, other = (boxes[0].union(*boxes[1:]) for boxes in diagonal)
        with pytest.raises(QueryError, match="separate blocks"):
            one.intersect(other)

    def test_a_union_that_merges_back_is_not_refused(self) -> None:
        shape = (100, 100)
        cells = [
            _on(0, row, shape=shape).intersect(_on(1, column, shape=shape)) for row in range(99) for column in range(99)
        ]
        assert len(cells[0].union(*cells[1:]).boxes) == 1


def test_a_mask_marks_the_cells_of_all_boxes() -> None:
    shape = (3, 4)
    corner = Region.on_axis(shape, 0, _mask(3, 0)).intersect(Region.on_axis(shape, 1, _mask(4, 1, 3)))
    region = corner.union(Region.on_axis(shape, 0, _mask(3, 2)))
    assert region.mask().astype(int).tolist() == [[0, 1, 0, 1], [0, 0, 0, 0], [1, 1, 1, 1]]
    assert not Region.nothing(shape).mask().any()


def test_runs_of_cells_are_what_their_masks_are() -> None:
    shape, random = (9, 4), np.random.default_rng(24)
    for _ in range(200):
        boxes = []
        for _ in range(2):
            first, end = sorted(random.integers(0, 10, 2).tolist())
            mask = np.zeros(9, dtype=bool)
            mask[first:end] = True
            other = random.random(4) < 0.7
            both = [Region.on_axis(shape, 0, chosen) for chosen in (mask, range(first, end))]
            pair = [one.intersect(Region.on_axis(shape, 1, other)) for one in both]
            assert np.array_equal(pair[0].mask(), pair[1].mask())
            boxes.append(pair)
        (one, one_run), (two, two_run) = boxes
        for found, expected in (
            (one_run.intersect(two_run), one.mask() & two.mask()),
            (one_run.union(two_run), one.mask() | two.mask()),
            (one_run.intersect(two), one.mask() & two.mask()),
        ):
            assert np.array_equal(found.mask(), expected)
            assert found.cells == expected.sum()
            assert np.array_equal(found.reached(0), expected.any(axis=1))


def test_a_run_is_known_without_its_cells() -> None:
    region = Region.on_axis((10**12, 3), 0, range(5, 10**11))
    assert region.cells == 3 * (10**11 - 5)
    assert [end.tolist() for end in region.rectangle() or ()] == [[5, 0], [10**11 - 1, 2]]
    assert region.boxes[0].holds(0, 7)
    assert not region.boxes[0].holds(0, 10**11)
    with pytest.raises(CapacityError):
        region.boxes[0].mask(0)
