"""Tables of grouped values against dense matrices and loops over cells.

What is proved in docs/proofs/grouped-tables.md is tested here.
"""

import tracemalloc
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from veilcube.errors import PlanError, QueryError, ReleaseFileError
from veilcube.operators import GroupedTablesOperator, Grouping, IdentityOperator, Operator, RegionCounts, read_operator
from veilcube.schema import Nominal, Ordinal, Region, Schema

SCHEMA = Schema([Ordinal("a", 1, 4), Nominal("b", ["x", "y", "z"]), Ordinal("c", 1, 1), Ordinal("d", 1, 5)])
SEEDS = range(12)


def scattered(size: int, groups: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return labels in no order, every group met; each value its own where there are as many groups as values."""
    if groups == size:
        return np.arange(size)
    return rng.permutation(np.concatenate([np.arange(groups), rng.integers(0, groups, size - groups)]))


def runs(size: int, groups: int, rng: np.random.Generator) -> NDArray[np.int64]:
    return np.sort(scattered(size, groups, rng))


def tables_of(seed: int, labels_of=scattered, schema: Schema = SCHEMA) -> GroupedTablesOperator:
    """Return some random tables: of one to all attributes, some groupings shared, some tables measured twice."""
    rng = np.random.default_rng(seed)
    labelled = []
    for axis, size in enumerate(schema.shape):
        labelled += [(axis, labels_of(size, int(rng.integers(1, size + 1)), rng)) for _ in range(2)]
    tables = []
    for _ in range(int(rng.integers(1, 6))):
        axes = np.flatnonzero(rng.random(len(schema)) < 0.6)
        tables.append(tuple(2 * int(axis) + int(rng.integers(2)) for axis in axes) or (0,))
    multipliers = rng.integers(1, 9, len(tables)).tolist()
    return GroupedTablesOperator.of(schema.shape, labelled, tables, multipliers)


def dense(operator: Operator) -> NDArray[np.int64]:
    """Return the matrix from what groupings and tables say, without ``apply``."""
    columns = []
    for cell in product(*map(range, operator.cell_shape)):
        column = []
        for table, times in zip(operator.tables, operator.multipliers, strict=True):
            own = tuple(
                int(operator.group_of_values(number)[cell[operator.groupings[number].axis]]) for number in table
            )
            column += [times * (place == own) for place in product(*map(range, operator.sizes(table)))]
        columns.append(column)
    return np.array(columns, dtype=np.int64).T


@pytest.mark.parametrize("seed", SEEDS)
def test_every_cell_of_every_table_is_the_multiplied_count_of_its_groups(seed: int) -> None:
    operator = tables_of(seed)
    counts = np.random.default_rng(seed).integers(0, 50, SCHEMA.shape)
    found = operator.apply(counts)
    assert found.dtype == np.int64
    assert operator.measurement_shape == found.shape
    np.testing.assert_array_equal(found, dense(operator) @ counts.ravel())


def test_a_table_of_known_groups_is_counted_by_hand() -> None:
    labelled = [(0, np.array([0, 1, 0])), (1, np.array([0, 1]))]
    operator = GroupedTablesOperator.of((3, 2), labelled, [(0, 1), (0,)], [1, 10])
    assert operator.apply(np.array([[1, 2], [3, 4], [5, 6]])).tolist() == [6, 8, 3, 4, 140, 70]


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.int64])
@pytest.mark.parametrize("rows", [0, 1, 200])
def test_rows_are_measured_as_the_cube_of_them(kind: type[np.integer], rows: int) -> None:
    for seed in SEEDS:
        rng, operator = np.random.default_rng(seed), tables_of(seed)
        columns = [rng.integers(0, size, rows).astype(kind) for size in SCHEMA.shape]
        cube = np.zeros(SCHEMA.shape, dtype=np.int64)
        np.add.at(cube, tuple(column.astype(np.int64) for column in columns), 1)
        found = operator.apply_to_rows(columns)
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, operator.apply(cube))


def test_rows_of_sixty_attributes_need_no_cube() -> None:
    shape = (300,) * 60
    labelled = [(axis, np.arange(300) // 100) for axis in (0, 31, 59)]
    operator = GroupedTablesOperator.of(shape, labelled, [(0, 1, 2)], [7])
    rows = [np.full(11, axis * 5, dtype=np.uint16) for axis in range(60)]
    table = operator.parts(operator.apply_to_rows(rows))[0]
    assert table.shape == (3, 3, 3)
    assert (table[0, 1, 2], table.sum()) == (77, 77)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_adjoint_is_the_transposed_matrix(seed: int) -> None:
    operator = tables_of(seed)
    matrix = dense(operator)
    noisy = np.random.default_rng(seed).normal(size=len(matrix))
    np.testing.assert_allclose(operator.adjoint(noisy).ravel(), matrix.T @ noisy, atol=1e-12)


def largest_changes(operator: GroupedTablesOperator) -> dict[str, tuple[int, int]]:
    """Return the largest L1 and squared L2 changes by one row more, and by one row in another place."""
    columns = dense(operator).T
    exchanged = columns[:, np.newaxis] - columns[np.newaxis]
    return {
        "add-remove": (int(np.abs(columns).sum(axis=1).max()), int(np.square(columns).sum(axis=1).max())),
        "replace": (int(np.abs(exchanged).sum(axis=2).max()), int(np.square(exchanged).sum(axis=2).max())),
    }


def declared(operator: GroupedTablesOperator, neighbours: str) -> tuple[int, int]:
    return operator.sensitivity(neighbours), operator.sensitivity_l2_squared(neighbours)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_sensitivity_is_reached_where_groups_are_runs(neighbours: str, seed: int) -> None:
    operator = tables_of(seed, runs)
    assert declared(operator, neighbours) == largest_changes(operator)[neighbours]


@pytest.mark.parametrize("seed", range(40))
def test_no_groups_change_more_than_the_sensitivity(seed: int) -> None:
    operator = tables_of(seed)
    found = largest_changes(operator)
    assert declared(operator, "add-remove") == found["add-remove"]
    assert all(most >= one for most, one in zip(declared(operator, "replace"), found["replace"], strict=True))


def test_a_table_of_one_cell_tells_nothing_of_an_exchange() -> None:
    operator = GroupedTablesOperator.of((3, 1), [(0, np.zeros(3, dtype=np.int64)), (1, np.arange(1))], [(0, 1)], [5])
    assert declared(operator, "replace") == (0, 0) == largest_changes(operator)["replace"]
    assert declared(operator, "add-remove") == (5, 25)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_query_of_each_measurement_answers_as_it_measures(seed: int) -> None:
    operator = tables_of(seed)
    counts = np.random.default_rng(seed).integers(0, 50, SCHEMA.shape)
    queries, multipliers = operator.queries(SCHEMA)
    np.testing.assert_allclose(queries.apply(counts) * multipliers, operator.apply(counts))
    assert len(queries) == len(multipliers) == operator.measurement_shape[0]


@pytest.mark.parametrize("seed", SEEDS)
def test_plain_data_and_labels_bring_it_back(seed: int) -> None:
    operator = tables_of(seed)
    draft = read_operator(operator.to_dict())
    assert (draft.measurement_shape, draft.array_shapes) == (operator.measurement_shape, operator.array_shapes)
    assert {name: array.shape for name, array in operator.arrays().items()} == operator.array_shapes
    again = draft.with_arrays({name: array.copy() for name, array in operator.arrays().items()})
    assert again.to_dict() == operator.to_dict()
    np.testing.assert_array_equal(dense(again), dense(operator))


def test_what_groups_nothing_is_whole_without_labels() -> None:
    operator = GroupedTablesOperator.of((3, 2), [(0, np.arange(3)), (1, np.arange(2))], [(0, 1)], [2])
    assert operator.array_shapes == operator.array_dimensions == operator.arrays() == {}
    again = read_operator(operator.to_dict())
    assert again.apply(np.arange(6).reshape(3, 2)).tolist() == [0, 2, 4, 6, 8, 10]


def test_before_its_labels_are_read_nothing_is_measured() -> None:
    draft = read_operator(tables_of(1).to_dict())
    for use in (lambda: draft.apply(np.ones(SCHEMA.shape, dtype=np.int64)), draft.arrays):
        with pytest.raises(ValueError, match="not known yet"):
            use()


GROUPED = GroupedTablesOperator.of((4, 3), [(0, np.array([0, 1, 1, 0])), (1, np.arange(3))], [(0, 1), (1,)], [3, 2])


@pytest.mark.parametrize(
    "labels",
    [[0, 1, 1, 2], [0, -1, 1, 0], [0, 1, 1], [0, 1, 1, 0, 0], [[0, 1, 1, 0]], []],
    ids=["above", "below", "short", "long", "two axes", "none"],
)
def test_labels_that_do_not_number_the_groups_are_refused(labels: list[int]) -> None:
    draft = read_operator(GROUPED.to_dict())
    with pytest.raises(ValueError, match="label"):
        draft.with_arrays({"labels": np.array(labels, dtype=np.int64)})


SPOILT = {
    "no shape": {"shape": None},
    "text for a shape": {"shape": "43"},
    "an attribute of no values": {"shape": [4, 0]},
    "a fraction of a value": {"shape": [4, 3.0]},
    "yes for a size": {"shape": [4, True]},
    "fewer attributes than groupings name": {"shape": [4]},
    "more attributes than any table": {"shape": [4, 3] + [2] * 63},
    "groupings that are no list": {"groupings": {"0": 2}},
    "a grouping of three numbers": {"groupings": [[0, 2, 1], [1, 3]]},
    "a grouping of one number": {"groupings": [[0], [1, 3]]},
    "a grouping of text": {"groupings": [["0", 2], [1, 3]]},
    "a grouping of yes": {"groupings": [[0, True], [1, 3]]},
    "an attribute below the first": {"groupings": [[-1, 2], [1, 3]]},
    "an attribute beyond the last": {"groupings": [[2, 2], [1, 3]]},
    "no group": {"groupings": [[0, 0], [1, 3]]},
    "fewer than no groups": {"groupings": [[0, -2], [1, 3]]},
    "more groups than values": {"groupings": [[0, 5], [1, 3]]},
    "tables that are no list": {"tables": "01"},
    "a table that is no list": {"tables": [0, [1]]},
    "a table of text": {"tables": [["0", 1], [1]]},
    "a table of fractions": {"tables": [[0.0, 1], [1]]},
    "a table of nothing": {"tables": [[], [1]]},
    "a grouping that is not there": {"tables": [[0, 2], [1]]},
    "a grouping below the first": {"tables": [[-1], [1]]},
    "attributes out of order": {"tables": [[1, 0], [1]]},
    "an attribute twice": {"tables": [[1, 1], [1]]},
    "no tables": {"tables": [], "multipliers": []},
    "fewer multipliers than tables": {"multipliers": [3]},
    "more multipliers than tables": {"multipliers": [3, 2, 1]},
    "multipliers that are no list": {"multipliers": "32"},
    "a multiplier of zero": {"multipliers": [0, 2]},
    "a multiplier below zero": {"multipliers": [-3, 2]},
    "a fraction for a multiplier": {"multipliers": [3.0, 2]},
    "yes for a multiplier": {"multipliers": [True, 2]},
    "a multiplier beyond 32 bits": {"multipliers": [2**32, 2]},
    "too many tables": {"tables": [[0]] * 100_001, "multipliers": [1] * 100_001},
    "too many groupings": {"groupings": [[0, 2]] * 100_001},
    "a table that no file holds": {
        "shape": [2**16, 2**16, 2**16],
        "groupings": [[0, 2**16], [1, 2**16], [2, 2**16]],
        "tables": [[0, 1, 2]],
        "multipliers": [1],
    },
}


@pytest.mark.parametrize("spoilt", SPOILT.values(), ids=list(SPOILT))
def test_malformed_plain_data_is_refused(spoilt: dict[str, object]) -> None:
    read_operator(GROUPED.to_dict())
    with pytest.raises(ReleaseFileError, match="not well formed"):
        read_operator(GROUPED.to_dict() | spoilt)


@pytest.mark.parametrize("left_out", ["shape", "groupings", "tables", "multipliers"])
def test_plain_data_without_a_part_is_refused(left_out: str) -> None:
    with pytest.raises(ReleaseFileError, match="not well formed"):
        read_operator({key: value for key, value in GROUPED.to_dict().items() if key != left_out})


def test_reading_takes_no_memory_for_values_on_their_own() -> None:
    vast = {"shape": [2**26, 2], "groupings": [[0, 2**26], [1, 2]], "tables": [[1]], "multipliers": [1]}
    tracemalloc.start()
    try:
        whole = read_operator(GROUPED.to_dict() | vast)
        draft = read_operator(GROUPED.to_dict() | vast | {"groupings": [[0, 2**26], [1, 1]]})
        grouped = draft.with_arrays({"labels": np.zeros(2, dtype=np.int64)})
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()
    assert (whole.measurement_shape, grouped.measurement_shape) == ((2,), (1,))


def test_the_memory_to_apply_covers_the_tables_before_and_after_grouping() -> None:
    assert GROUPED.words_to_apply >= GROUPED.measurement_shape[0] + 12
    many = GroupedTablesOperator.of(
        (100,) * 9, [(0, np.zeros(100, dtype=np.int64)), (1, np.arange(100))], [(0, 1)], [1]
    )
    assert 100 + 100**2 <= many.words_to_apply < 100**3


def test_it_answers_nothing_alone_by_least_squares() -> None:
    assert GROUPED.answers is None
    refused = (
        lambda: GROUPED.solve(np.zeros(9, dtype=np.int64)),
        lambda: GROUPED.variance_of_rectangles(np.zeros((1, 2)), np.ones((1, 2))),
        lambda: GROUPED.variance_of_region(Region.everything((4, 3))),
    )
    for ask in refused:
        with pytest.raises(QueryError, match="do not determine every count"):
            ask()


def test_an_operator_that_needs_the_cube_refuses_rows() -> None:
    with pytest.raises(PlanError, match="not its rows"):
        RegionCounts((2, 2), 3).apply_to_rows([np.zeros(1, dtype=np.int64)] * 2)


def test_every_cell_is_counted_from_rows() -> None:
    rows = [np.array([0, 2, 2, 1], dtype=np.uint8), np.array([1, 0, 0, 1], dtype=np.uint16)]
    counted = IdentityOperator((3, 2), ("a", "b")).apply_to_rows(rows)
    np.testing.assert_array_equal(counted, [[0, 1], [0, 1], [2, 0]])


def test_labels_cannot_be_changed_afterwards() -> None:
    with pytest.raises(ValueError, match="read-only"):
        GROUPED.labels[0] = 1


def test_the_groups_of_a_table_are_its_shape() -> None:
    assert [GROUPED.sizes(table) for table in GROUPED.tables] == [(2, 3), (3,)]
    assert [GROUPED.axes(table) for table in GROUPED.tables] == [(0, 1), (1,)]
    assert GROUPED.groupings == (Grouping(0, 2), Grouping(1, 3))
