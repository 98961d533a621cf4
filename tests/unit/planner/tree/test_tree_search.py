"""The search finds good trees, says what it searched, and never needs the data."""

import itertools

import numpy as np
import pytest

from veilcube.planner import Tree, plan
from veilcube.planner.tree.axis_options import AxisTree, merge_levels, options_for
from veilcube.planner.tree.search import QuerySample, search_trees
from veilcube.query import Workload
from veilcube.schema import Nominal, Ordinal, Schema

CENSUS = Schema(
    [
        Ordinal("age", 0, 100),
        Nominal("gender", ["Female", "Male"]),
        Nominal("job", hierarchy={f"group {g}": [f"{g}.{j}" for j in range(24 if g < 6 else 23)] for g in range(22)}),
        Ordinal("income", 0, 1000),
    ]
)


def census_queries(count: int) -> Workload:
    """Draw queries of one to four predicates: an interval, or a node of the hierarchy that is not the root."""
    generator = np.random.default_rng(11)
    shape = np.array(CENSUS.shape)
    job = CENSUS["job"]
    runs = np.array([(first, end - 1) for first, end in job.hierarchy.runs.values()])
    ends = np.sort(generator.integers(0, shape[:, None], size=(count, 4, 2)), axis=2)
    ends[:, 1, 1] = ends[:, 1, 0]
    ends[:, 2] = runs[generator.integers(0, len(runs), count)]
    rank = generator.random((count, 4)).argsort(axis=1).argsort(axis=1)
    asked = rank < generator.integers(1, 4, count, endpoint=True)[:, None]
    return Workload.ranges(CENSUS, np.where(asked, ends[..., 0], 0), np.where(asked, ends[..., 1], shape - 1))


def test_the_census_cube_reaches_its_bar() -> None:
    chosen = plan(CENSUS, 1, Tree(refine=False), census_queries(10_000), neighbours="replace")
    assert chosen.expected_error <= 0.31 * 1766
    assert "4,000 of the 10,000 queries" in chosen.searched


@pytest.mark.parametrize(
    ("workload", "hdmm"),
    [(Workload.prefixes, 141.4), (lambda schema: Workload.random_ranges(schema, 4000, seed=5), 174.4)],
    ids=["prefixes", "random ranges"],
)
def test_a_line_of_4096_cells_is_within_three_percent_of_the_matrix_mechanism(workload: object, hdmm: float) -> None:
    schema = Schema([Ordinal("x", 1, 4096)])
    assert plan(schema, 0.1, "tree", workload(schema)).expected_error <= 1.03 * hdmm


def test_two_small_attributes_are_no_worse_than_the_best_of_a_grid() -> None:
    schema = Schema([Ordinal("x", 1, 9), Ordinal("y", 1, 12)])
    workload = Workload.random_ranges(schema, 300, seed=1)
    found = plan(schema, 1, "tree", workload).expected_error
    shapes = [("flat", (1,))] + [
        (branches, weights)
        for branches in ((), (3,), (2, 2))
        for weights in itertools.product((1, 2, 3), repeat=len(branches) + 2)
    ]
    trees = [AxisTree(*shape) for shape in shapes]
    operators = [[tree.operator(attribute) for tree in trees] for attribute in schema]
    ends = [(workload.low[:, axis], workload.high[:, axis]) for axis in range(2)]
    errors = [
        [int(axis.column_sums()[0]) ** 2 * axis.variance_of_ranges(*ends[number]) for axis in axes]
        for number, axes in enumerate(operators)
    ]
    least = min(float((x * y).mean()) for x, y in itertools.product(*errors))
    assert found <= 1.01 * np.sqrt(2 * least)


def test_queries_with_gaps_guide_the_search_by_their_own_blocks() -> None:
    schema = Schema([Ordinal("x", 1, 40), Ordinal("y", 1, 40)])
    workload = Workload(schema, ["x <= 20 OR y > 30", "x IN (1, 2, 3, 9, 10)", "x = 1 AND x = 2"])
    sample = QuerySample(workload)
    assert {(*low, *high) for low, high in zip(sample.low.tolist(), sample.high.tolist(), strict=True)} >= {
        (0, 0, 2, 39),
        (8, 0, 9, 39),
    }
    assert plan(schema, 1, "tree", workload).expected_error < plan(schema, 1, "identity", workload).expected_error


def test_a_workload_of_empty_queries_is_planned_for() -> None:
    schema = Schema([Ordinal("x", 1, 40)])
    assert plan(schema, 1, "tree", Workload(schema, ["x = 1 AND x = 2"])).expected_error == 0


def test_a_domain_too_large_to_search_fully_says_what_was_searched() -> None:
    schema = Schema([Ordinal("x", 1, 2**19)])
    chosen = plan(schema, 1, "tree")
    assert "'x' has more than 262,144 cells, so only fan-outs 16, 32, 64 were tried" in chosen.searched
    assert chosen.expected_error < plan(schema, 1, "identity").expected_error / 10


def test_a_domain_too_large_to_optimise_gets_equal_weights() -> None:
    schema = Schema([Ordinal("x", 1, 2**24 + 1)])
    (branches,) = options_for(schema["x"])
    assert max(branches) <= 16
    chosen = Tree(refine=False).resolve(schema, Workload(schema, [{"x": (1, 5)}]))
    assert "not searched" in chosen.searched
    assert len(set(chosen.weights["x"])) == 1


def test_the_same_public_facts_are_searched_once() -> None:
    schema = Schema([Ordinal("x", 1, 77)])
    first = Tree(refine=False).resolve(schema, Workload.random_ranges(schema, 500, seed=8))
    before = search_trees.cache_info().hits
    second = Tree(refine=False).resolve(Schema([Ordinal("x", 1, 77)]), Workload.random_ranges(schema, 500, seed=8))
    assert second == first
    assert search_trees.cache_info().hits == before + 1


def test_merging_joins_the_fan_outs_of_levels_that_go() -> None:
    assert merge_levels((2, 3, 4), (False, True, False)) == (2, 12)
    assert merge_levels((2, 3, 4), (True, True, True)) == ()
