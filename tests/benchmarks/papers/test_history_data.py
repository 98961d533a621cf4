"""The census-shaped table of the history benchmark, its questions, and the reader of the KDD table."""

import numpy as np
from benchmarks.papers.history.asking import FUNCTIONS, RANGES, ask, draw_queries
from benchmarks.papers.history.census import NAMES, SIZES, PeopleTable, random_attribute_ranges
from benchmarks.papers.history.kdd import COLUMNS, FILE, CensusIncome

TABLE = PeopleTable(rows=20_000)


def test_the_table_has_the_sizes_of_the_paper_and_fills_its_domains():
    assert TABLE.schema.shape == SIZES == (79, 2, 17, 51, 9, 7, 6, 50, 50)
    assert sum(a * b for i, a in enumerate(SIZES) for b in SIZES[i + 1 :]) == 29_570
    assert TABLE.codes.shape == (20_000, 9)
    assert (TABLE.codes.min(axis=0) == 0).all()
    assert (TABLE.codes.max(axis=0) < SIZES).all()


def test_the_same_seed_gives_the_same_rows_and_another_seed_does_not():
    assert np.array_equal(TABLE.codes, PeopleTable(rows=20_000).codes)
    assert not np.array_equal(TABLE.codes, PeopleTable(rows=20_000, seed=8).codes)


def test_attributes_are_correlated_far_beyond_chance():
    pair = TABLE.marginal(NAMES.index("education"), NAMES.index("salary")) / TABLE.rows
    independent = np.outer(pair.sum(axis=1), pair.sum(axis=0))
    assert np.abs(pair - independent).sum() > 0.2


def test_ranges_narrow_two_attributes_and_all_pairs_come_up():
    workload = random_attribute_ranges(TABLE.schema, 2000, seed=1)
    is_narrow = (workload.high - workload.low + 1) < np.array(SIZES)
    assert is_narrow.sum(axis=1).max() == 2
    pairs = {tuple(np.flatnonzero(row)) for row in is_narrow if row.sum() == 2}
    assert len(pairs) == 36


def test_functions_weigh_cells_by_0_or_1():
    weights = draw_queries(TABLE.schema, FUNCTIONS, 20, seed=3).evaluate(TABLE.codes[:500])
    assert np.allclose(weights, np.round(weights), atol=1e-9)
    assert 0.4 < weights.mean() < 0.6


def test_what_was_asked_has_the_noise_that_the_history_says():
    asked = ask(TABLE, RANGES, queries=2000, scale=100.0, new=10)
    noise = asked.history.values - asked.truth
    assert np.allclose(asked.history.variances, 2 * 100.0**2)
    assert 0.85 < asked.noisy_rmse / (100 * np.sqrt(2)) < 1.15
    assert abs(noise.mean()) < 15
    assert set(asked.prior) == set(NAMES)


def test_the_kdd_table_is_read_from_the_folder_of_its_package(tmp_path):
    rows = [[f"{column} {value}" for column in range(42)] for value in ("a", "b", "b")]
    for row, age, weeks in zip(rows, (30, 0, 90), (52, 0, 10), strict=True):
        row[COLUMNS["age"][0]], row[COLUMNS["weeks"][0]] = str(age), str(weeks)
    path = tmp_path / FILE
    path.parent.mkdir(parents=True)
    path.write_text("\n".join(", ".join(row) for row in rows), encoding="utf-8")
    table = CensusIncome(tmp_path)
    assert table.schema.shape == (91, 2, 2, 2, 2, 2, 2, 2, 53)
    assert table.codes.tolist() == [[30, 0, 0, 0, 0, 0, 0, 0, 52], [0, *[1] * 7, 0], [90, *[1] * 7, 10]]
    assert table.marginal(1).tolist() == [1, 2]
