"""How much one row weighs in a question: against all cells, one by one, and all pairs of them."""

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

import veilcube as vc
from veilcube.errors import QueryError
from veilcube.query import read_query
from veilcube.record import Moment

SCHEMA = vc.Schema([vc.Ordinal("x", -3, 2), vc.Nominal("sex", ["Female", "Male"]), vc.Ordinal("y", edges=[0, 1, 2, 5])])
CONDITIONS = ["", "x > 0", "x < 0", "sex = 'Male'", "x = 1 OR sex = 'Male'", "x = -3", "y > 1", "x >= 1 AND y < 1"]
powers = st.dictionaries(st.sampled_from(["x", "y"]), st.integers(1, 3), max_size=2)
groups = st.sampled_from([(), ("x",), ("sex",), ("y",), ("x", "sex"), ("sex", "y")])


def weights_of_rows(moment: Moment) -> np.ndarray:
    """Return, for every cell, what one row in it adds to each of the measured integers."""
    found = []
    for cell in product(*map(range, SCHEMA.shape)):
        counts = np.zeros(SCHEMA.shape, dtype=np.int64)
        counts[cell] = moment.region.mask()[cell]
        others = tuple(axis for axis in range(len(SCHEMA)) if axis not in moment.axes)
        found.append(moment.exact(counts.sum(axis=others)))
    return np.array(found, dtype=object)


@settings(max_examples=150, deadline=None)
@given(powers, groups, st.sampled_from(CONDITIONS), st.booleans())
def test_weights_are_bounded_for_every_cell_and_pair_of_cells_and_reached_where_groups_tell_nothing(
    powers: dict[str, int], by: tuple[str, ...], condition: str, is_mean: bool
) -> None:
    assume(not is_mean or list(powers.values()) == [1])
    region = read_query(SCHEMA, condition or {})
    try:
        moment = Moment.ask(SCHEMA, region, powers, by, is_mean=is_mean)
        rows = weights_of_rows(moment)
    except QueryError:
        return
    apart = rows[:, None, :] - rows[None, :, :]
    squares, exchanges = (rows**2).sum(axis=1), (apart**2).sum(axis=2)
    assert squares.max() == moment.heaviest_squared == moment.heaviest**2
    assert np.abs(apart).sum(axis=2).max() <= moment.heaviest_exchange
    assert exchanges.max() <= moment.heaviest_exchange_squared
    if not set(powers) & set(by) and len(region.boxes) == 1:
        assert exchanges.max() == moment.heaviest_exchange_squared


@pytest.mark.parametrize(
    ("powers", "by", "is_mean", "squared"),
    [
        ({"x": 1}, (), False, 5**2),  # from -3 to 2
        ({"x": 1}, ("sex",), False, 5**2),  # more than 2 · 3², for one group holds both signs
        ({"x": 1}, ("x",), False, 2 * 3**2),  # a group holds one number only
        ({"x": 2}, ("sex",), False, 2 * 9**2),
        ({}, (), False, 0),
        ({}, ("sex",), False, 2),
        ({"x": 1}, (), True, 2 * 5**2),
        ({"x": 1}, ("sex",), True, 2 * 5**2),
    ],
)
def test_squared_exchanges_by_hand(powers: dict[str, int], by: tuple[str, ...], is_mean: bool, squared: int) -> None:
    asked = Moment.ask(SCHEMA, read_query(SCHEMA, {}), powers, by, is_mean=is_mean)
    assert asked.heaviest_exchange_squared == squared
