"""Which cells a release may grow together: neighbours in an order that means something, and no others."""

import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

import veilcube as vc
from support.releases import release_of
from veilcube.curator.mechanisms.partition import _chosen_regions
from veilcube.operators import RegionCounts
from veilcube.planner.partition.design import AdaptiveDesign
from veilcube.schema import Attribute

GROW = vc.Adaptive(partition="grow", split=0.5)
DESIGN = AdaptiveDesign("grow", Fraction(1, 2), (1,), 2, 2.0)


def labels_of(schema: vc.Schema, counts: np.ndarray) -> np.ndarray:
    """Return the regions of a release with next to no noise."""
    operator = release_of(schema, counts, 10**6, 1, GROW).record.measurements[1].operator
    assert isinstance(operator, RegionCounts)
    return operator.labels.reshape(schema.shape)


@pytest.mark.filterwarnings("ignore:every cell became a region")
def test_names_that_stand_side_by_side_are_no_neighbours() -> None:
    jobs = vc.Schema([vc.Nominal("job", ["aide", "baker", "cook", "driver"])])
    assert labels_of(jobs, np.full(4, 50)).tolist() == [0, 1, 2, 3]


def test_regions_grow_along_ordinal_attributes_within_each_name() -> None:
    schema = vc.Schema([vc.Nominal("sex", ["F", "M"]), vc.Ordinal("age", 0, 4)])
    assert labels_of(schema, np.full((2, 5), 50)).tolist() == [[0] * 5, [1] * 5]


def test_missing_and_stray_values_are_no_neighbours_of_the_largest_one() -> None:
    schema = vc.Schema([vc.Ordinal("age", 0, 4, outside="other", missing="cell"), vc.Ordinal("floor", 0, 1)])
    assert labels_of(schema, np.full((7, 2), 50))[:, 0].tolist() == [0, 0, 0, 0, 0, 1, 2]


@st.composite
def permuted_tables(draw: st.DrawFn) -> tuple[vc.Schema, np.ndarray, list[np.ndarray]]:
    """Draw a schema, noisy cells and an order of each attribute's cells that changes names only."""
    attributes: list[Attribute] = []
    orders = []
    for number in range(draw(st.integers(1, 3))):
        size = draw(st.integers(1, 5))
        if is_nominal := draw(st.booleans()):
            attributes.append(vc.Nominal(f"a{number}", [f"v{value}" for value in range(size)]))
        else:
            attributes.append(vc.Ordinal(f"a{number}", 1, size))
        orders.append(np.array(draw(st.permutations(range(size)))) if is_nominal else np.arange(size))
    schema = vc.Schema(attributes)
    cells = draw(st.lists(st.integers(-20, 20), min_size=schema.cells, max_size=schema.cells))
    return schema, np.array(cells).reshape(schema.shape), orders


@given(permuted_tables())
@pytest.mark.filterwarnings("ignore:every cell became a region")
def test_regions_do_not_depend_on_the_order_of_names(table: tuple[vc.Schema, np.ndarray, list[np.ndarray]]) -> None:
    schema, noisy, orders = table
    found = _chosen_regions(DESIGN, noisy, 3.0, schema)
    other = _chosen_regions(DESIGN, noisy[np.ix_(*orders)], 3.0, schema)
    moved = found[np.ix_(*orders)]
    pairs = set(zip(moved.ravel().tolist(), other.ravel().tolist(), strict=True))
    assert len(pairs) == len(np.unique(found)) == len(np.unique(other))


def test_categories_lose_little_against_the_identity() -> None:
    jobs = vc.Schema([vc.Nominal("job", [f"j{i}" for i in range(200)])])
    counts = np.random.default_rng(4).permutation((2000 / np.arange(1, 201)).astype(np.int64))
    every = vc.Workload.marginals(jobs, 1)

    def missed(strategy: object) -> float:
        found = [release_of(jobs, counts, 0.5, seed, strategy).answer(every).value - counts for seed in range(20)]
        return float(np.sqrt(np.mean(np.square(found))))

    with pytest.warns(UserWarning, match="every cell became a region"):
        grown = missed(vc.Adaptive(partition="grow"))
    assert grown < 1.1 * missed("identity")


def test_a_warning_about_regions_costs_no_release_where_warnings_are_errors(tmp_path: Path) -> None:
    ledger = vc.Ledger(tmp_path / "budget.db")
    ledger.create("people", 1)
    names = vc.Cube(vc.Schema([vc.Nominal("g", list("abcd"))]), [5, 6, 7, 8])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        release = vc.release(names, 1, vc.Adaptive(partition="grow"), ledger=ledger, dataset="people")
    assert release.count().value is not None
    assert ledger.budget("people").spent == 1
