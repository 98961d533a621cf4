"""One Gibbs sweep over many chains, compiled: each attribute in turn is drawn given all others.

Log-weights come as tables over a few attributes. For each attribute k and each table that holds it there is one entry:
a copy of exp(table) with k as its last axis, so that the weights of all cells of k, given the other attributes of a
row, are one run of numbers. The chance of a cell of k is the product of the runs of k's entries.

While a cell is drawn, all chances of the others are known too. ``sums`` collects them in the layout of the entries, so
expectations are averages of chances (Rao and Blackwell) and have less noise than counts of the rows drawn.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilcube.operators.parallel import compiled_fast

Rows = NDArray[np.int32]
Integers = NDArray[np.int64]
Reals = NDArray[Any]  # float32 where the weights allow it, else float64


@compiled_fast
def sweep_rows(
    rows: Rows,
    uniforms: Reals,
    start: int,
    stop: int,
    base: Reals,
    base_start: Integers,
    sizes: Integers,
    entry_first: Integers,
    entry_start: Integers,
    entry_axes: Integers,
    entry_strides: Integers,
    weights: Reals,
    sums: Reals,
    chances: Reals,
    collecting: bool,
) -> None:
    """Draw every attribute of the rows ``start`` to ``stop - 1`` once, in place.

    ``base`` holds each attribute's own weights. Entry e belongs to attribute k if entry_first[k] <= e <
    entry_first[k + 1]; its run for a row begins at entry_start[e] + Σ_j entry_strides[e, j] · row[entry_axes[e, j]].
    """
    found = np.zeros(entry_start.size, dtype=np.uint64)
    for row in range(start, stop):
        for axis in range(sizes.size):
            size, at_base = np.uint64(sizes[axis]), np.uint64(base_start[axis])
            for cell in range(size):
                chances[cell] = base[at_base + cell]
            for entry in range(entry_first[axis], entry_first[axis + 1]):
                place = entry_start[entry]
                for other in range(entry_axes.shape[1]):
                    place += entry_strides[entry, other] * rows[row, entry_axes[entry, other]]
                at = np.uint64(place)
                found[entry] = at
                for cell in range(size):
                    chances[cell] *= weights[at + cell]
            total = chances[0]
            for cell in range(np.uint64(1), size):
                total += chances[cell]
            threshold, running, last = uniforms[row - start, axis] * total, chances[0], sizes[axis] - 1
            drawn = 0
            while running < threshold and drawn < last:
                drawn += 1
                running += chances[drawn]
            rows[row, axis] = drawn
            if collecting:
                share = 1 / total
                for cell in range(size):
                    chances[cell] *= share
                for entry in range(entry_first[axis], entry_first[axis + 1]):
                    at = found[entry]
                    for cell in range(size):
                        sums[at + cell] += chances[cell]
