"""Block sums equal sums over slices, by either way of computing them."""

import numpy as np
import pytest

from veilcube.analyst.estimate.block_sums import BlockSums


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
