"""Inner products of random linear queries on random small schemas, against sums over every cell."""

from itertools import product

import numpy as np
from hypothesis import given, settings, strategies as st

from veilcube.analyst.history.base.kernel import ProductKernel
from veilcube.query import LinearQueries
from veilcube.schema import Ordinal, Schema

WEIGHTS = st.sampled_from([-2.0, -1.0, 0.0, 0.5, 1.0, 1.0, 3.0])


@st.composite
def queries_on_a_schema(draw: st.DrawFn) -> tuple[LinearQueries, LinearQueries, tuple[np.ndarray, ...]]:
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    schema = Schema([Ordinal(f"a{axis}", 0, size - 1) for axis, size in enumerate(sizes)])

    def term() -> dict[int, np.ndarray]:
        axes = draw(st.sets(st.integers(0, len(sizes) - 1)))
        return {axis: np.array(draw(st.lists(WEIGHTS, min_size=sizes[axis], max_size=sizes[axis]))) for axis in axes}

    def several() -> LinearQueries:
        counts = draw(st.lists(st.integers(0, 3), min_size=1, max_size=5))
        return LinearQueries.of_terms(schema, [[term() for _ in range(count)] for count in counts])

    shares = [np.array(draw(st.lists(st.integers(1, 9), min_size=size, max_size=size)), dtype=float) for size in sizes]
    return several(), several(), tuple(part / part.sum() for part in shares)


@settings(max_examples=150, deadline=None)
@given(queries_on_a_schema())
def test_inner_products_are_sums_over_all_cells(drawn):
    left, right, prior = drawn
    cells = np.array(list(product(*(range(size) for size in left.schema.shape))))
    chances = np.prod([part[cells[:, axis]] for axis, part in enumerate(prior)], axis=0)
    ours, theirs = left.evaluate(cells).T, right.evaluate(cells).T
    kernel = ProductKernel(prior)
    assert np.allclose(kernel.between(left, right), (ours * chances) @ theirs.T)
    assert np.allclose(kernel.norms(left), np.square(ours) @ chances)
    assert np.allclose(kernel.means(left), ours @ chances)


@settings(max_examples=100, deadline=None)
@given(queries_on_a_schema())
def test_answers_and_plain_data_agree_with_evaluating_every_cell(drawn):
    queries, _, _ = drawn
    shape = queries.schema.shape
    cells = np.array(list(product(*(range(size) for size in shape))))
    counts = np.arange(len(cells)) % 5
    expected = queries.evaluate(cells).T @ counts
    assert np.allclose(queries.apply(counts.reshape(shape)), expected)
    assert np.allclose(queries.count_rows(np.repeat(cells, counts, axis=0)), expected)
    again = LinearQueries.from_dict(queries.schema, queries.to_dict())
    assert np.allclose(again.evaluate(cells), queries.evaluate(cells))
