"""What a history leaves open weighs more where cells are full."""

import numpy as np
import pytest

from veilcube.analyst.history.kernel_pca import KernelPCA, KernelPCAModel
from veilcube.analyst.history.kernel_pca.density import MOST_CELLS, CellDensity, places_of_cells
from veilcube.query import LinearQueries, Workload
from veilcube.record import History
from veilcube.schema import Nominal, Ordinal, Schema

SCHEMA = Schema([Ordinal("age", 0, 15), Nominal("sex", ["Female", "Male"])])
PRIOR = {"age": np.linspace(1, 2, 16)}
SHARES = np.outer(np.linspace(1, 2, 16) / 24, [0.5, 0.5]).ravel()
NEW = LinearQueries.concatenate(
    [
        LinearQueries.conditions(SCHEMA, [{"age": (0, 6)}, "age = 3 OR sex = 'Male'"]),
        LinearQueries.moments(SCHEMA, [{"age": 1}]),
    ]
)


def fitted(counts: np.ndarray, total: float | None) -> KernelPCAModel:
    past = LinearQueries.of(Workload.random_ranges(SCHEMA, 10, seed=2))
    history = History(SCHEMA, past, past.apply(counts), np.full(10, 4.0))
    return KernelPCA(alpha=40.0, prior=PRIOR).fit(history, total=total)


def answered_queries() -> tuple[np.ndarray, np.ndarray]:
    """Return NEW and what is really answered in its place, cell by cell, from the answers to tables of one row."""
    asked = NEW.evaluate(np.indices(SCHEMA.shape).reshape(2, -1).T).T
    shape, of_cells = SCHEMA.shape, []
    for cell in range(SCHEMA.cells):
        row = np.zeros(SCHEMA.cells)
        row[cell] = 1.0
        of_cells.append(fitted(row.reshape(shape), total=1.0).answer(NEW).value)
    return asked, np.array(of_cells).T


def test_distances_are_those_of_cells_written_out() -> None:
    counts = np.random.default_rng(1).poisson(20, SCHEMA.shape).astype(float)
    model = fitted(counts, total=counts.sum())
    density, part = model._density, model._project(NEW)
    assert density is not None
    weights = model._spectrum.weights(part.along, part.means, model.alpha)
    asked, answered = answered_queries()
    square = np.square(asked - answered)
    coordinates = np.hstack([part.inside, weights])
    assert density.distances(NEW, coordinates) == pytest.approx(square @ (SHARES * density.fullness))
    even = CellDensity.of(density.places, density.prior, density.answered, density.prior)
    assert even.distances(NEW, coordinates) == pytest.approx(square @ SHARES)
    assert density.prior == pytest.approx(SHARES)
    assert density.prior @ density.fullness == pytest.approx(1.0)


def test_the_spread_grows_where_rows_are_and_shrinks_nowhere() -> None:
    even, heaped = np.full(SCHEMA.shape, 20.0), np.full(SCHEMA.shape, 1.0)
    heaped[0] = 300.0
    for counts in (even, heaped):
        model = fitted(counts, None)
        part = model._project(NEW)
        weights = model._spectrum.weights(part.along, part.means, model.alpha)
        noise, distance, _ = model._spectrum.errors_of(weights, part.along, part.norms)
        assert (model.answer(NEW).stddev ** 2 >= (noise + model.prior_scale**2 * distance) * (1 - 1e-9)).all()
    density = model._density
    assert density is not None
    full = density.fullness.reshape(SCHEMA.shape)
    assert full[0].min() > 5 * full[2:].max()


def test_a_table_without_rows_is_full_nowhere() -> None:
    places = np.zeros((4, 1), dtype=np.int64)
    density = CellDensity.of(places, np.full(4, 0.25), np.zeros((4, 0)), np.array([-1.0, 0.0, -3.0, 0.0]))
    assert density.fullness.tolist() == [1.0, 1.0, 1.0, 1.0]


def test_many_cells_and_many_terms_are_not_written_out() -> None:
    wide = Schema([Ordinal("a", 0, MOST_CELLS)])
    assert places_of_cells(LinearQueries.of(Workload.random_ranges(wide, 3, seed=1))) is None
    narrow = Schema([Ordinal("a", 0, MOST_CELLS - 1)])
    assert places_of_cells(LinearQueries.of(Workload.random_ranges(narrow, 300, seed=1))) is None
    places = places_of_cells(LinearQueries.of(Workload.random_ranges(narrow, 3, seed=1)))
    assert places is not None
    assert places.shape == (MOST_CELLS, 1)
