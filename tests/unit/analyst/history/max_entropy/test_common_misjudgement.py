"""What cells of a model are misjudged together: found in noisy tables, and told in intervals."""

import numpy as np
import pytest

import veilcube as vc
from veilcube.analyst.history.max_entropy.error import MeasuredCells, common_rate
from veilcube.query import LinearQueries

SHAPE = (30, 20)


def table_with(common: float, noise: float, seed: int, *, held: bool = True) -> MeasuredCells:
    """Return a model that expects too much in one half of its rows, and too little in the other, by this share."""
    random = np.random.default_rng(seed)
    counts = random.uniform(50, 150, SHAPE)
    truth = counts.copy()
    truth[:15] *= 1 + common / 2
    truth[15:] *= 1 - common / 2
    truth *= counts.sum() / truth.sum()
    gaps = truth - counts + random.normal(scale=noise, size=SHAPE)
    return MeasuredCells(counts, gaps, np.full(SHAPE, noise**2), np.full(SHAPE, held))


def test_noise_alone_is_not_taken_for_a_misjudgement() -> None:
    found = [common_rate([table_with(0.0, 20.0, seed) for seed in range(first, first + 20)]) for first in (0, 20, 40)]
    assert max(found) < 0.02


def test_a_misjudgement_that_many_cells_share_is_found() -> None:
    found = common_rate([table_with(0.1, 10.0, seed) for seed in range(20)])
    # Up to a fixed factor for what a model that follows the noise would hide.
    assert 0.035 < found / np.sqrt(2) < 0.065


def test_tables_whose_answers_are_all_met_say_nothing() -> None:
    assert common_rate([table_with(0.1, 20.0, 1, held=False)]) == 0.0
    assert common_rate([]) == 0.0


def test_a_few_cells_at_the_edge_do_not_speak_for_all_of_the_table() -> None:
    met = table_with(0.0, 10.0, 1, held=False)
    held, gaps, counts = np.zeros(SHAPE, dtype=bool), np.zeros(SHAPE), met.counts.copy()
    held[0], counts[0], gaps[0] = True, 0.01, 15.0
    assert common_rate([MeasuredCells(counts, gaps, met.variances, held)]) < 0.02


@pytest.mark.parametrize("variance", [64.0, 64.000000064, 64.000064])
def test_rounding_decides_nothing(variance: float) -> None:
    table = table_with(0.2, 8.0, 2)
    table.held[:10] = False
    table.gaps[:10] = 0.0
    found = common_rate([MeasuredCells(table.counts, table.gaps, np.full(SHAPE, variance), table.held)])
    assert found == pytest.approx(
        common_rate([MeasuredCells(table.counts, table.gaps, np.full(SHAPE, 64.0), table.held)]), rel=1e-5
    )


@pytest.mark.parametrize("rows", [1_000, 20_000])
def test_intervals_of_ranges_hold_whatever_the_noise(rows: int) -> None:
    random = np.random.default_rng(3)
    hidden, sizes = random.normal(size=rows), (12, 8, 20, 5)
    codes = np.column_stack(
        [
            np.clip((0.5 + 0.14 * (hidden + random.normal(size=rows))) * size, 0, size - 1).astype(np.int64)
            for size in sizes
        ]
    )
    schema = vc.Schema([vc.Ordinal(f"a{axis}", 0, size - 1) for axis, size in enumerate(sizes)])
    queries = LinearQueries.of(vc.Workload.marginals(schema, 2))
    truth = queries.count_rows(codes)
    history = vc.History(schema, queries, truth + random.laplace(0, 6, truth.size), np.full(truth.size, 72.0))
    model = vc.MaxEntropy().fit(history, total=rows)
    asked = vc.Workload.random_ranges(schema, 400, seed=1)
    # Ranges on one to four attributes: the others are opened.
    low, high = asked.low.copy(), asked.high.copy()
    for row in range(len(low)):
        opened = random.choice(4, row % 4, replace=False)
        low[row, opened], high[row, opened] = 0, np.array(sizes)[opened] - 1
    asked = vc.Workload.ranges(schema, low, high)
    answers, exact = model.answer(asked), LinearQueries.of(asked).count_rows(codes)
    assert np.mean((answers.low - 1e-6 <= exact) & (exact <= answers.high + 1e-6)) >= 0.94


def test_what_no_chain_met_is_not_certain_to_be_nowhere() -> None:
    random = np.random.default_rng(5)
    schema = vc.Schema([vc.Ordinal(f"a{axis}", 0, 19) for axis in range(3)])
    codes = random.binomial(19, 0.5, (2_000, 3))
    queries = LinearQueries.of(vc.Workload.marginals(schema, 1))
    truth = queries.count_rows(codes)
    history = vc.History(schema, queries, truth + random.laplace(0, 3, truth.size), np.full(truth.size, 18.0))
    model = vc.MaxEntropy(engine="gibbs").fit(history, total=2_000)
    cells = random.integers(0, 20, (200, 3))
    answers = model.answer(vc.Workload.ranges(schema, cells, cells))
    assert (answers.value == 0).any()
    assert (answers.stddev > 0).all()
