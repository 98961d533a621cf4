"""How the answers of marginals to the parts of one block err together.

A block that narrows the attributes T has parts U ⊆ T: the blocks that narrow U only. With shares s_i of the cells of an
attribute, the least-squares answers to the parts U and V have the covariance Σ_{R ⊆ U∩V} c_R(U, V) / π_R, in units of
the noise's variance, where c_R(U, V) = Π_{i∈U∖R} s_i Π_{i∈V∖R} s_i Π_{i∈R} n_i s_i (1 - s_i).
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from veilcube.operators.components import Axes, components_of

Floats = NDArray[np.float64]


def part_covariances(
    shape: Sequence[int], precisions: Mapping[Axes, float], parts: Sequence[Axes], lengths: Floats
) -> Floats:
    """Return (blocks, parts, parts) for blocks with so many cells on each axis."""
    sizes = np.array(shape, dtype=np.float64)
    shares = lengths / sizes
    found = np.zeros((len(lengths), len(parts), len(parts)))
    for row, first in enumerate(parts):
        for column, second in enumerate(parts[: row + 1]):
            common = tuple(axis for axis in first if axis in second)
            total = np.zeros(len(lengths))
            for component in components_of([common]):
                outside = [axis for part in (first, second) for axis in part if axis not in component]
                spread = sizes[list(component)] * shares[:, component] * (1 - shares[:, component])
                total += shares[:, outside].prod(axis=1) * spread.prod(axis=1) / precisions[component]
            found[:, row, column] = found[:, column, row] = total
    return found
