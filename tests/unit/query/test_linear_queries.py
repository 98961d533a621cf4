"""Linear queries in product form, each kind against its definition on every cell of a small cube."""

import json
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from veilcube.errors import QueryError
from veilcube.query import LinearQueries, Workload
from veilcube.schema import Nominal, Ordinal, Schema

SCHEMA = Schema(
    [Ordinal("height", 1, 4), Ordinal("weight", edges=[0, 2, 6, 7]), Nominal("sex", ["Female", "Male"], missing="cell")]
)
CELLS = np.array(list(product(*(range(size) for size in SCHEMA.shape))))
CUBE = np.random.default_rng(5).integers(0, 9, SCHEMA.shape)


def dense(queries: LinearQueries) -> np.ndarray:
    """Write every query out on every cell from the full factors alone."""
    weights = np.ones((queries.owner.size, len(CELLS)))
    for axis, factor in enumerate(queries.factors):
        weights *= factor[:, CELLS[:, axis]]
    written = np.zeros((len(queries), len(CELLS)))
    np.add.at(written, queries.owner, weights)
    return written


def mixed() -> LinearQueries:
    return LinearQueries.concatenate(
        [
            LinearQueries.conditions(SCHEMA, [{"height": (2, 3)}, "height = 1 OR sex = 'Male'", {"sex": None}]),
            LinearQueries.moments(SCHEMA, [{"height": 1, "weight": 2}]),
            LinearQueries.function(SCHEMA, {("height", "sex"): np.arange(12).reshape(4, 3) % 5}),
            LinearQueries.everything(SCHEMA),
        ]
    )


def test_ranges_sets_and_boolean_expressions_weigh_the_cells_they_select():
    texts = ["height BETWEEN 2 AND 3", "height IN (1, 3) AND sex = 'Male'", "height = 1 OR weight >= 2"]
    queries = LinearQueries.conditions(SCHEMA, texts)
    height, weight, sex = CELLS.T
    expected = [(height >= 1) & (height <= 2), np.isin(height, [0, 2]) & (sex == 1), (height == 0) | (weight >= 1)]
    assert np.array_equal(queries.evaluate(CELLS).T, np.array(expected, dtype=float))


def test_moments_multiply_powers_of_the_numbers_that_stand_for_cells():
    queries = LinearQueries.moments(SCHEMA, [{"height": 1, "weight": 2}, {"height": 0}, {}])
    height, middle = CELLS[:, 0] + 1.0, np.array([1.0, 4.0, 6.5])[CELLS[:, 1]]
    assert np.allclose(queries.evaluate(CELLS).T, [height * middle**2, np.ones(len(CELLS)), np.ones(len(CELLS))])


def test_fourier_terms_have_signs_of_parity_and_wavelet_terms_signs_of_halves():
    height, _, sex = CELLS.T
    parity = LinearQueries.fourier(SCHEMA, [["height", "sex"], []])
    assert np.array_equal(parity.evaluate(CELLS).T, [(-1.0) ** (height + sex), np.ones(len(CELLS))])
    wavelet = LinearQueries.wavelet(SCHEMA, [{"height": (0, 2, 4), "sex": (1, 2, 3)}])
    expected = np.array([1, 1, -1, -1])[height] * np.array([0, 1, -1])[sex]
    assert np.array_equal(wavelet.evaluate(CELLS)[:, 0], expected)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_arbitrary_functions_of_two_attributes_need_as_many_terms_as_their_rank(rank):
    random = np.random.default_rng(rank)
    table = random.normal(size=(4, rank)) @ random.normal(size=(rank, 3))
    queries = LinearQueries.function(SCHEMA, [{("height", "sex"): table}, {("sex", "height"): table.T}])
    assert np.bincount(queries.owner).tolist() == [rank, rank]
    assert np.allclose(queries.evaluate(CELLS).T, table[CELLS[:, 0], CELLS[:, 2]])


@pytest.mark.parametrize("size", [1e-308, 1.0, 1e308, 1.7e308])
@pytest.mark.parametrize("table", [np.ones((4, 3)), np.arange(1, 13).reshape(4, 3) / 12, np.eye(4, 3)])
def test_functions_of_two_attributes_keep_their_values_at_any_size(table, size):
    queries = LinearQueries.function(SCHEMA, {("height", "sex"): table * size})
    each_cell = np.array([[height, 0, sex] for height in range(4) for sex in range(3)])
    np.testing.assert_allclose(queries.evaluate(each_cell)[:, 0] / size, table.ravel(), atol=1e-12)


def test_terms_may_name_axes_with_numbers_of_numpy():
    queries = LinearQueries.of_terms(SCHEMA, [[{np.int64(0): [0, 1, 1, 0]}]])
    assert queries.evaluate([[1, 0, 0], [3, 0, 0]]).tolist() == [[1.0], [0.0]]


def test_whole_number_functions_of_full_rank_keep_exact_weights():
    table = np.array([[1, 0, 1], [0, 1, 1], [1, 1, 0], [0, 0, 1]])
    queries = LinearQueries.function(SCHEMA, {("height", "sex"): table})
    assert np.array_equal(queries.evaluate(CELLS)[:, 0], table[CELLS[:, 0], CELLS[:, 2]])


def test_a_workload_keeps_its_order_whatever_mixes_blocks_and_regions():
    queries = [{"sex": ["Female", None]}, {"height": 2}, "height = 4 OR sex = 'Male'", {}, "height = 1 AND height = 2"]
    workload = Workload(SCHEMA, queries)
    assert 0 in workload.regions
    assert 1 not in workload.regions
    found = LinearQueries.of(workload).evaluate(CELLS)
    for number, query in enumerate(queries):
        alone = LinearQueries.conditions(SCHEMA, [query]).evaluate(CELLS)[:, 0]
        assert np.array_equal(found[:, number], alone)
    assert found[:, 4].sum() == 0


def test_apply_and_count_rows_are_the_sums_over_all_cells_and_rows():
    queries = mixed()
    assert np.allclose(queries.evaluate(CELLS).T, dense(queries))
    expected = dense(queries) @ CUBE.ravel()
    assert np.allclose(queries.apply(CUBE), expected)
    assert np.allclose(queries.count_rows(np.repeat(CELLS, CUBE.ravel(), axis=0)), expected)


def test_queries_that_select_nothing_are_answered_with_0():
    nothing = LinearQueries.conditions(SCHEMA, ["height = 1 AND height = 2", "height = 2 AND height = 3"])
    assert nothing.apply(CUBE).tolist() == [0.0, 0.0]
    assert nothing.evaluate(CELLS).shape == (len(CELLS), 2)
    assert nothing.supports() == ()


def test_rows_are_weighed_one_by_one_where_a_table_over_their_attributes_would_not_fit(monkeypatch):
    monkeypatch.setattr("veilcube.query.linear._LARGEST_TABLE", 3)
    expected = dense(mixed()) @ CUBE.ravel()
    assert np.allclose(mixed().count_rows(np.repeat(CELLS, CUBE.ravel(), axis=0)), expected)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 5), max_size=8))
def test_choosing_queries_chooses_their_terms_in_that_order(chosen):
    queries = mixed()
    assert np.allclose(dense(queries[np.array(chosen, dtype=int)]), dense(queries)[chosen])


def test_slices_and_masks_choose_like_arrays():
    queries = mixed()
    mask = np.array([True, False, True, True, False, True])
    assert np.allclose(dense(queries[1:5:2]), dense(queries)[1:5:2])
    assert np.allclose(dense(queries[mask]), dense(queries)[mask])


def test_supports_name_the_attributes_that_a_term_weighs():
    queries = LinearQueries.conditions(SCHEMA, [{"sex": "Male", "height": 2}, {"height": (1, 4)}, {}])
    assert queries.supports() == ((0, 2), (), ())


def test_constant_factors_take_no_memory_in_wide_tables():
    wide = Schema([Ordinal(f"a{number}", 0, 99) for number in range(30)])
    low = np.zeros((1000, 30), dtype=int)
    high = np.full((1000, 30), 99)
    high[:, 0] = 5
    queries = LinearQueries.of(Workload.ranges(wide, low, high))
    assert sum(part.rows.nbytes for part in queries.parts) == 1000 * 100 * 8


def test_plain_data_survives_json_and_says_ranges_in_two_numbers():
    queries = mixed()
    data = json.loads(json.dumps(queries.to_dict()))
    assert data["queries"][0] == [{"height": [1, 2]}]
    assert data["queries"][-1] == [{}]
    assert np.array_equal(dense(LinearQueries.from_dict(SCHEMA, data)), dense(queries))


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"queries": 3},
        {"queries": [3]},
        {"queries": [[3]]},
        {"queries": [[{"height": [0, 4]}]]},
        {"queries": [[{"height": [2, 1]}]]},
        {"queries": [[{"height": {"cells": [-1]}}]]},
        {"queries": [[{"height": {"cells": [True]}}]]},
        {"queries": [[{"height": {"weights": [1.0]}}]]},
        {"queries": [[{"height": {"weights": ["1", 2, 3, 4]}}]]},
        {"queries": [[{"height": {"weights": [float("nan"), 2, 3, 4]}}]]},
        {"queries": [[{"size": [0, 1]}]]},
        {"queries": [[{"height": None}]]},
    ],
)
def test_plain_data_that_is_not_well_formed_is_refused(data):
    with pytest.raises(QueryError):
        LinearQueries.from_dict(SCHEMA, data)


@pytest.mark.parametrize(
    "build",
    [
        lambda: LinearQueries.moments(SCHEMA, [{"sex": 1}]),
        lambda: LinearQueries.moments(SCHEMA, [{"height": -1}]),
        lambda: LinearQueries.moments(SCHEMA, [{"height": 0.5}]),
        lambda: LinearQueries.moments(SCHEMA, ["height"]),
        lambda: LinearQueries.fourier(SCHEMA, ["height"]),
        lambda: LinearQueries.fourier(SCHEMA, [["income"]]),
        lambda: LinearQueries.fourier(SCHEMA, [["sex", "sex"]]),
        lambda: LinearQueries.fourier(SCHEMA, [["sex", "SEX"]]),
        lambda: LinearQueries.moments(SCHEMA, [{"height": 1, "Height": 2}]),
        lambda: LinearQueries.wavelet(SCHEMA, [{"height": (0, 2, 4), "Height": (0, 1, 2)}]),
        lambda: LinearQueries.from_dict(SCHEMA, {"queries": [[{"height": [0, 1], "Height": [2, 3]}]]}),
        lambda: LinearQueries.of_terms(SCHEMA, [[{3: np.ones(4)}]]),
        lambda: LinearQueries.of_terms(SCHEMA, [[{-1: np.ones(3)}]]),
        lambda: LinearQueries.of_terms(SCHEMA, [[{"height": np.ones(4)}]]),
        lambda: LinearQueries.of_terms(SCHEMA, [[{0: np.ones(4)}, {0.5: np.ones(4)}]]),
        lambda: LinearQueries.of_terms(SCHEMA, [[{True: np.ones(3)}]]),
        lambda: LinearQueries.of_terms(SCHEMA, [[None]]),
        lambda: LinearQueries.of_terms(SCHEMA, [None]),
        lambda: LinearQueries.of_terms(SCHEMA, None),
        lambda: LinearQueries.of_terms(SCHEMA, [[{0: "tall"}]]),
        lambda: LinearQueries.wavelet(SCHEMA, [{"height": (0, 0, 4)}]),
        lambda: LinearQueries.wavelet(SCHEMA, [{"height": (0, 2)}]),
        lambda: LinearQueries.function(SCHEMA, {("height", "sex"): np.ones((3, 4))}),
        lambda: LinearQueries.function(SCHEMA, {("height", "height"): np.ones((4, 4))}),
        lambda: LinearQueries.function(SCHEMA, {("height",): [1, 2, 3, np.inf]}),
        lambda: LinearQueries.function(SCHEMA, {("height", "sex"): "abc"}),
        lambda: LinearQueries.function(SCHEMA, {("height", "sex"): [[1], [1, 2]]}),
        lambda: LinearQueries.function(SCHEMA, {("height", "sex"): None}),
        lambda: LinearQueries.function(SCHEMA, {3: [1.0]}),
        lambda: LinearQueries.function(SCHEMA, None),
        lambda: LinearQueries.wavelet(SCHEMA, [{"height": 3}]),
        lambda: LinearQueries.fourier(SCHEMA, [3]),
        lambda: LinearQueries.moments(SCHEMA, [{"height": 10**400}]),
        lambda: LinearQueries.from_dict(SCHEMA, {"queries": [[{"height": {"weights": [10**400] * 4}}]]}),
        lambda: mixed()[[100]],
        lambda: mixed()[np.array([True])],
        lambda: LinearQueries.of([{"height": 1}]),
        lambda: LinearQueries.concatenate([]),
        lambda: LinearQueries.concatenate([mixed(), LinearQueries.everything(Schema([Ordinal("height", 1, 4)]))]),
        lambda: mixed().evaluate([[0, 0, 3]]),
        lambda: mixed().evaluate([[0.0, 0.0, 0.0]]),
        lambda: mixed().apply(np.ones((2, 2))),
    ],
)
def test_bad_input_is_refused_with_one_sentence(build):
    with pytest.raises(QueryError) as refusal:
        build()
    assert "\n" not in str(refusal.value)
