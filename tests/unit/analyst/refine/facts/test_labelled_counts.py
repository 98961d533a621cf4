"""Known marginals that bring labels go where their labels say."""

import numpy as np
import pandas as pd
import pytest

import veilcube as vc
from veilcube.errors import QueryError

SCHEMA = vc.Schema([vc.Nominal("region", ["North", "South", "East"]), vc.Ordinal("age", 0, 1)])
RELEASE = vc.release(vc.Cube(SCHEMA, [[10, 20], [30, 40], [50, 60]]), 1, "identity")


def test_a_series_is_aligned_by_its_index_and_a_mapping_by_its_keys() -> None:
    rows = pd.DataFrame({"region": ["South"] * 70 + ["North"] * 30 + ["East"] * 110})
    for known in (rows.groupby("region").size(), {"East": 110, "North": 30, "South": 70}):
        refined = vc.refine(RELEASE, B="region", c=known)
        np.testing.assert_allclose(refined.marginal("region").value, [30, 70, 110], atol=1e-6)
    order = ("East", "North", "South")
    pairs = {(region, age): 10.0 * (place + 1) for place, region in enumerate(order) for age in (0, 1)}
    refined = vc.refine(RELEASE, B=["region", "age"], c=pairs)
    np.testing.assert_allclose(refined.marginal("region").value, [40, 60, 20], atol=1e-6)


def test_plain_arrays_and_frames_without_labels_keep_their_order() -> None:
    for known in ([30, 70, 110], pd.Series([30, 70, 110])):
        refined = vc.refine(RELEASE, B="region", c=known)
        np.testing.assert_allclose(refined.marginal("region").value, [30, 70, 110], atol=1e-6)


@pytest.mark.parametrize(
    "known", [{"East": 1, "North": 2}, {"East": 1, "North": 2, "West": 3}, {"East": "x", "North": 2, "South": 3}]
)
def test_labels_that_are_not_the_cells_are_refused(known: dict[str, object]) -> None:
    with pytest.raises(QueryError, match=r"^c "):
        vc.refine(RELEASE, B="region", c=known)  # type: ignore[arg-type]
