"""One spelling for each set of cells, whatever boxes it came in."""

import numpy as np
from hypothesis import given, settings, strategies as st

import veilcube as vc
from veilcube.record.questions.canonical_region import canonical_region, region_from_data, region_to_data
from veilcube.schema import Box, Region

SCHEMA = vc.Schema([vc.Ordinal("a", 0, 3), vc.Ordinal("b", 0, 2), vc.Nominal("c", ["x", "y"])])


def cells_as_region(mask: np.ndarray, order: list[int]) -> Region:
    """Return a set of cells as one box for each cell, in some order."""
    boxes = []
    for flat in order:
        cell = np.unravel_index(flat, mask.shape)
        if mask[cell]:
            axes = (np.arange(size) == place for size, place in zip(mask.shape, cell, strict=True))
            boxes.append(Box(mask.shape, tuple(axes)))
    return Region(mask.shape, tuple(boxes))


@settings(max_examples=150, deadline=None)
@given(st.lists(st.booleans(), min_size=24, max_size=24), st.permutations(range(24)))
def test_the_spelling_depends_on_the_cells_alone(chosen: list[bool], order: list[int]) -> None:
    mask = np.array(chosen).reshape(SCHEMA.shape)
    region = canonical_region(cells_as_region(mask, order))
    assert (region.mask() == mask).all()
    assert sum(box.cells for box in region.boxes) == mask.sum()
    plain = region_to_data(SCHEMA, region)
    assert plain == region_to_data(SCHEMA, canonical_region(cells_as_region(mask, list(range(24)))))
    united = Region.nothing(SCHEMA.shape).union(*(Region(mask.shape, (box,)) for box in region.boxes))
    assert plain == region_to_data(SCHEMA, canonical_region(united))
    assert (region_from_data(SCHEMA, plain).mask() == mask).all()


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries(
            {}, optional={"a": st.sampled_from([[[0, 2]], [[0, 1], [1, 3]], []]), "b": st.just([[1, 2]])}
        ),
        max_size=6,
    )
)
def test_boxes_from_anybody_are_read_as_cells_each_of_them_once(plain: list[dict[str, list[list[int]]]]) -> None:
    region, cells = region_from_data(SCHEMA, plain), np.zeros(SCHEMA.shape, dtype=bool)
    for box in plain:
        cells |= region_from_data(SCHEMA, [box]).mask()
    assert sum(box.cells for box in region.boxes) == cells.sum()
    assert (region.mask() == cells).all()
