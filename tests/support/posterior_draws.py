"""Draws of whole cubes from the joint posterior."""

import numpy as np
from numpy.typing import NDArray

from veilcube.polya_tree import Belief
from veilcube.polya_tree.sampling import draw_deviations


def draw_cells(belief: Belief, draws: int) -> NDArray[np.float64]:
    """Return draws (draws, cells) of all cells less their posterior means, flat in the cube's order."""
    found = np.empty((draws, belief.measured.tree.cells))
    for numbers, deviations, scatter in draw_deviations(belief, draws):
        found[numbers] = deviations + scatter
    return found
