"""Segments that the history tells apart: the same model as cell by cell, on domains of any size."""

import numpy as np
import pytest

import veilcube as vc
from veilcube.analyst.history.max_entropy import fitting
from veilcube.errors import QueryError
from veilcube.query import LinearQueries

SCHEMA = vc.Schema([vc.Ordinal("x", 0, 39), vc.Ordinal("y", 0, 8)])
RANDOM = np.random.default_rng(24)
PRIOR = {"x": RANDOM.uniform(0.2, 1, 40), "y": RANDOM.uniform(0.2, 1, 9)}
CELLS = RANDOM.integers(0, 30, SCHEMA.shape)
# Ranges whose ends leave segments of several sizes.
EDGES = [{"x": (low, low + 7), "y": (cut, 8)} for low in range(4, 30, 6) for cut in (0, 3, 5)]


def history(queries: LinearQueries | vc.Workload) -> vc.History:
    asked = LinearQueries.of(queries)
    noise = np.random.default_rng(5).laplace(0, 20, len(asked))
    return vc.History(SCHEMA, asked, asked.apply(CELLS) + noise, np.full(len(asked), 800.0))


RANGES = history(vc.Workload(SCHEMA, EDGES))
OTHERS = LinearQueries.concatenate(
    [
        LinearQueries.of(vc.Workload(SCHEMA, [*EDGES, "x IN (3, 9, 20) AND y > 2"])),
        LinearQueries.function(SCHEMA, {("y",): np.arange(9.0)}),
    ]
)
NEW = LinearQueries.concatenate(
    [
        LinearQueries.of(vc.Workload.random_ranges(SCHEMA, 30, 2)),
        LinearQueries.of(
            vc.Workload(SCHEMA, [{"x": 7}, {"x": 7, "y": 4}, {"y": (0, 2)}, "x IN (0, 9, 21) OR y = 1", {}])
        ),
        LinearQueries.moments(SCHEMA, [{"x": 1}]),
    ]
)


@pytest.fixture
def merging(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "MOST_CELLS_ONE_BY_ONE", 0)


@pytest.mark.parametrize("prior", [None, PRIOR], ids=["even", "given"])
@pytest.mark.parametrize("past", [RANGES, history(OTHERS)], ids=["ranges", "others"])
@pytest.mark.parametrize("alpha", [1e-4, 0.02])
def test_merged_cells_give_the_answers_of_all_cells(prior, past, alpha, monkeypatch):
    settings = vc.MaxEntropy(alpha=alpha, prior=prior)
    expected = settings.fit(past, total=int(CELLS.sum())).answer(NEW)
    monkeypatch.setattr(fitting, "MOST_CELLS_ONE_BY_ONE", 0)
    model = settings.fit(past, total=int(CELLS.sum()))
    found = model.answer(NEW)
    np.testing.assert_allclose(found.value, expected.value, rtol=2e-4, atol=0.05)
    np.testing.assert_allclose(found.stddev, expected.stddev, rtol=5e-3, atol=1e-6)
    np.testing.assert_allclose(found.high, expected.high, rtol=5e-3)


def test_rows_and_distributions_of_merged_cells_are_those_of_cells(merging: None) -> None:
    model = vc.MaxEntropy(alpha=0.02, prior=PRIOR).fit(RANGES, total=int(CELLS.sum()))
    rows = np.concatenate(list(model.rows(200_000)))
    table = model.distribution(["y", "x"])
    assert table.shape == (9, 40)
    assert table.sum() == pytest.approx(1)
    counted = np.bincount(rows[:, 1] * 40 + rows[:, 0], minlength=360).reshape(9, 40) / 200_000
    np.testing.assert_allclose(counted, table, atol=6 * np.sqrt(table.max() / 200_000))
    asked = vc.Workload(SCHEMA, [{"x": cell} for cell in range(40)])
    np.testing.assert_allclose(model.answer(asked).value, table.sum(axis=0) * CELLS.sum(), rtol=1e-9)


def test_chains_over_segments_find_the_exact_distribution(merging: None) -> None:
    exact, chains = (
        vc.MaxEntropy(alpha=0.02, engine=engine).fit(RANGES, total=int(CELLS.sum())).answer(RANGES.queries)
        for engine in ("exact", "gibbs")
    )
    assert np.abs(chains.value - exact.value).max() < 0.02 * CELLS.sum()


@pytest.mark.parametrize("alpha", ["auto", 0.02])
def test_a_trillion_cells_answer_like_a_thousand_of_the_same_ranges(alpha) -> None:
    few, many = vc.Schema([vc.Ordinal("x", 0, 999)]), vc.Schema([vc.Ordinal("x", 0, 10**12 - 1)])
    past, new = vc.Workload.random_ranges(few, 40, 3), vc.Workload.random_ranges(few, 20, 4)
    values = np.random.default_rng(5).normal(300, 60, 40)

    def answers(schema: vc.Schema, cells: int) -> np.ndarray:
        asked, later = (
            vc.Workload.ranges(schema, work.low * cells, (work.high + 1) * cells - 1) for work in (past, new)
        )
        model = vc.MaxEntropy(alpha=alpha).fit(vc.History(schema, asked, values, 3600.0), total=700)
        assert model.convergence.engine == "exact"
        return model.answer(later).value

    np.testing.assert_allclose(answers(many, 10**9), answers(few, 1), rtol=1e-3, atol=0.5)


def test_what_history_tells_apart_is_refused_beyond_what_can_be_held() -> None:
    schema = vc.Schema([vc.Ordinal("x", 0, 10**6 - 1), vc.Ordinal("y", 0, 10**6 - 1)])
    asked = vc.Workload.random_ranges(schema, 1500, 1)
    with pytest.raises(QueryError, match="more than 2,097,152 cells together, those that no query tells apart"):
        vc.MaxEntropy(alpha=0.1).fit(vc.History(schema, asked, np.ones(1500), 1.0), total=10)
