"""Fixed blocks: the partition that looks at no data."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from veilcube.errors import QueryError
from veilcube.system.arguments import read_whole


def block_regions(shape: Sequence[int], sides: int | Sequence[int]) -> NDArray[np.int64]:
    """Return the block of each cell, numbered in scan order; ``sides`` says how many cells a block has along each axis.

    One number stands for all axes. The last block of an axis is shorter where the side does not divide its size.

    >>> block_regions((3, 4), (2, 3))
    array([[0, 0, 0, 1],
           [0, 0, 0, 1],
           [2, 2, 2, 3]])
    """
    sizes = [read_whole(size, "each size of the shape", 1) for size in shape]
    given = list(sides) if isinstance(sides, Sequence | np.ndarray) else [sides] * len(sizes)
    lengths = [read_whole(side, "each side of a block", 1) for side in given]
    if not sizes or len(lengths) != len(sizes):
        raise QueryError(
            f"sides must be one whole number, or one for each of the {len(sizes)} axes, not {len(lengths)}: match them"
        )
    labels = np.zeros((1,) * len(sizes), dtype=np.int64)
    for axis, (size, side) in enumerate(zip(sizes, lengths, strict=True)):
        along = np.arange(size, dtype=np.int64) // side
        blocks = -(-size // side)
        labels = labels * blocks + along.reshape([-1 if other == axis else 1 for other in range(len(sizes))])
    return labels
