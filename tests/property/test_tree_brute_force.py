"""Any tree of runs, against dense linear algebra.

What is proved in docs/proofs/linear.md is tested here.
"""

import numpy as np
from hypothesis import given, settings, strategies as st

from support.dense_axes import check_axis
from veilcube.operators import TreeAxis, read_axis


@st.composite
def trees(draw: st.DrawFn) -> TreeAxis:
    """Draw nested sets of boundaries, with or without a root, with levels that split little or nothing."""
    size = draw(st.integers(1, 14))
    inside: set[int] = set()
    levels = [np.array([0, size])] if draw(st.booleans()) else []
    for _ in range(draw(st.integers(0, 4))):
        inside |= draw(st.sets(st.integers(1, size - 1), max_size=4)) if size > 1 else set()
        levels.append(np.array(sorted({0, size} | inside)))
    levels.append(np.arange(size + 1))
    multipliers = draw(st.lists(st.integers(1, 9), min_size=len(levels), max_size=len(levels)))
    return TreeAxis(size, levels, multipliers)


@settings(max_examples=100, deadline=None)
@given(trees(), st.integers(0, 2**32))
def test_every_tree_agrees_with_dense_matrices_and_comes_back_from_its_plain_data(axis: TreeAxis, seed: int) -> None:
    check_axis(axis, seed)
    assert read_axis(axis.to_dict()) == axis
    assert axis.rows == axis.shape.rows
