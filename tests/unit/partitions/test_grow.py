"""Region growing against a graph search and the paper's worked cube; blocks against their definition."""

from collections import deque
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from veilcube.errors import QueryError
from veilcube.partitions import block_regions, grow_regions

EQUATION_1 = [[10, 21, 37], [20, 0, 0], [53, 0, 0]]


def searched(cells: np.ndarray, threshold: float, ordered: Sequence[int] | None = None) -> np.ndarray:
    """Breadth-first search from each unvisited cell in scan order."""
    ends = cells.shape if ordered is None else ordered
    labels = np.full(cells.shape, -1)
    regions = 0
    for seed in np.ndindex(*cells.shape):
        if labels[seed] >= 0:
            continue
        labels[seed] = regions
        queue = deque([seed])
        while queue:
            here = queue.popleft()
            for axis, step in ((axis, step) for axis in range(cells.ndim) for step in (-1, 1)):
                there = tuple(place + step * (other == axis) for other, place in enumerate(here))
                inside = min(there[axis], here[axis]) >= 0 and max(there[axis], here[axis]) < ends[axis]
                if inside and labels[there] < 0 and abs(cells[there] - cells[here]) < threshold:
                    labels[there] = regions
                    queue.append(there)
        regions += 1
    return labels


def test_the_cube_of_equation_1_gives_the_papers_four_regions() -> None:
    assert grow_regions(EQUATION_1, 12).tolist() == [[0, 0, 1], [0, 2, 2], [3, 2, 2]]


def test_a_difference_equal_to_the_threshold_separates() -> None:
    assert grow_regions([0, 12, 23], 12).tolist() == [0, 1, 1]


@given(
    arrays(np.int64, array_shapes(min_dims=1, max_dims=4, max_side=6), elements=st.integers(-9, 9)), st.integers(1, 12)
)
def test_equals_a_graph_search_in_any_number_of_dimensions(cells: np.ndarray, threshold: int) -> None:
    np.testing.assert_array_equal(grow_regions(cells, threshold), searched(cells, threshold))


@given(arrays(np.int64, array_shapes(max_dims=4, max_side=6), elements=st.integers(-9, 9)), st.data())
def test_only_cells_in_order_are_neighbours(cells: np.ndarray, data: st.DataObject) -> None:
    ordered = [data.draw(st.integers(0, size)) for size in cells.shape]
    np.testing.assert_array_equal(grow_regions(cells, 4, ordered=ordered), searched(cells, 4, ordered))


@pytest.mark.parametrize("ordered", [[4, 3], [3], [3, -1], [3, 1.5], 3, "33", [3, None]])
def test_cells_in_order_are_so_many_of_each_axis(ordered: object) -> None:
    with pytest.raises(QueryError, match="ordered"):
        grow_regions(EQUATION_1, 1, ordered=ordered)  # type: ignore[arg-type]


def test_a_winding_region_is_one() -> None:
    """A snake joins late what began as many separate runs, the hard case of union-find."""
    cells = np.zeros((41, 41))
    cells[1::2, :] = 100
    cells[1::4, -1] = 0
    cells[3::4, 0] = 0
    labels = grow_regions(cells, 1)
    assert np.all(labels[cells == 0] == 0)
    np.testing.assert_array_equal(labels, searched(cells, 1))


def test_one_cell_and_equal_cells_are_one_region_and_a_small_threshold_gives_each_cell_its_own() -> None:
    assert grow_regions([[4.5]], 1).tolist() == [[0]]
    assert not grow_regions(np.full((3, 4), 2), 1e-9).any()
    assert grow_regions(np.arange(6).reshape(2, 3), 0.5).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_cells_in_any_memory_order_give_the_same_regions() -> None:
    cells = np.random.default_rng(1).integers(0, 5, (6, 7, 8))
    expected = grow_regions(cells, 2)
    np.testing.assert_array_equal(grow_regions(np.asfortranarray(cells), 2), expected)
    assert expected.dtype == np.int64


@pytest.mark.parametrize("threshold", [0, -3, np.nan, np.inf, True, "12", None])
def test_a_threshold_must_be_positive_and_finite(threshold: object) -> None:
    with pytest.raises(QueryError, match="threshold must be a finite number above 0"):
        grow_regions(EQUATION_1, threshold)  # type: ignore[arg-type]


@pytest.mark.parametrize("cells", [[], [[]], 5, [["a"]], [[1, 2], [3]], [np.nan, 1]])
def test_bad_cells_are_refused(cells: object) -> None:
    with pytest.raises(QueryError, match="cells must"):
        grow_regions(cells, 1)  # type: ignore[arg-type]


class TestBlocks:
    @pytest.mark.parametrize(("shape", "sides"), [((7,), 3), ((4, 6), (2, 3)), ((5, 4, 3), (2, 4, 5)), ((2, 2), 1)])
    def test_cells_share_a_block_exactly_when_all_their_quotients_agree(
        self, shape: tuple[int, ...], sides: int | tuple[int, ...]
    ) -> None:
        labels = block_regions(shape, sides)
        lengths = (sides,) * len(shape) if isinstance(sides, int) else sides
        seen: dict[tuple[int, ...], int] = {}
        for cell in np.ndindex(*shape):
            corner = tuple(place // side for place, side in zip(cell, lengths, strict=True))
            assert labels[cell] == seen.setdefault(corner, len(seen))
        assert labels.shape == shape

    @pytest.mark.parametrize(
        ("shape", "sides"),
        [((), 1), ((0,), 1), ((3, 4), 0), ((3, 4), (2,)), ((3, 4), (2, -1)), ((3, 4), 1.5), ((2.5,), 1), ((3,), True)],
    )
    def test_shapes_and_sides_must_be_whole_positive_and_match(self, shape: tuple[int, ...], sides: int) -> None:
        with pytest.raises(QueryError):
            block_regions(shape, sides)


def test_a_threshold_beyond_all_floats_is_refused() -> None:
    with pytest.raises(QueryError, match="threshold must be a finite number above 0"):
        grow_regions([1, 2], 10**400)
