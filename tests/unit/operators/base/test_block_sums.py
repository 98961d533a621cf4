"""Block sums equal sums over slices, by either way of computing them."""

import numpy as np
import pytest

from veilcube.operators.base.block_sums import BlockSums


@pytest.mark.parametrize("shape", [(7,), (5, 6), (3, 4, 5), (2, 3, 2, 3)])
@pytest.mark.parametrize("blocks", [3, 20_000])
def test_block_sums_equal_slices(shape: tuple[int, ...], blocks: int) -> None:
    generator = np.random.default_rng(len(shape))
    cells = generator.integers(-50, 50, shape)
    ends = np.sort(generator.integers(0, np.array(shape)[None, :, None], (blocks, len(shape), 2)), axis=2)
    low, high = np.ascontiguousarray(ends[..., 0]), np.ascontiguousarray(ends[..., 1])
    expected = [cells[tuple(map(slice, a, b + 1))].sum() for a, b in zip(low, high, strict=True)]
    assert BlockSums(cells)(low, high).tolist() == expected


def test_an_empty_block_sums_to_zero_by_either_way() -> None:
    cells = np.arange(12).reshape(3, 4)
    empty = np.array([[0, 0]]), np.array([[-1, -1]])
    assert BlockSums(cells)(*empty).tolist() == [0]
    many = np.repeat(empty[0], 20_000, axis=0), np.repeat(empty[1], 20_000, axis=0)
    assert not BlockSums(cells)(*many).any()


def test_many_short_axes_never_build_a_table_that_dwarfs_the_cube() -> None:
    cells = np.random.default_rng(1).integers(0, 9, (2,) * 14)
    sums = BlockSums(cells)
    low = np.random.default_rng(2).integers(0, 2, (20_000, 14))
    assert sums(low, low).tolist() == cells[tuple(low.T)].tolist()
    high = np.ones_like(low)
    expected = [cells[tuple(slice(first, 2) for first in row)].sum() for row in low[:200]]
    assert sums(low, high)[:200].tolist() == expected
    assert sums._table is None
