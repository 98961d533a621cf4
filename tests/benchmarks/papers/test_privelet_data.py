"""The Privelet benchmark's tables and questions: what is drawn, and that it is the same every time."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from benchmarks.papers.privelet import census as census_module
from benchmarks.papers.privelet.census import BRAZIL, SMALL, UNITED_STATES
from benchmarks.papers.privelet.questions import nodes_below, quintiles, random_questions

import veilcube as vc

TINY = replace(SMALL, rows=20_000)


@pytest.mark.parametrize(
    ("census", "shape", "rows"),
    [(BRAZIL, (101, 2, 512, 1001), 10_000_000), (UNITED_STATES, (96, 2, 511, 1020), 8_000_000)],
)
def test_the_censuses_have_the_shapes_of_the_paper_and_three_levels_of_occupations(census, shape, rows):
    assert census.schema.shape == shape
    assert census.rows == rows
    root = census.schema["occupation"].hierarchy.root
    assert all(group.children and all(job.is_leaf for job in group.children) for group in root.children)
    assert len(set(census.group_sizes.tolist())) > 2


def test_the_rows_of_a_census_are_the_same_every_time_and_differ_between_seeds():
    counts = TINY.count().exact_counts
    assert counts.sum() == TINY.rows
    assert np.array_equal(counts, TINY.count().exact_counts)
    assert not np.array_equal(counts, replace(TINY, seed=9).count().exact_counts)


def test_a_longer_census_begins_with_the_rows_of_a_shorter_one_and_goes_on_with_others(monkeypatch):
    monkeypatch.setattr(census_module, "ROWS_PER_BATCH", 500)
    first, second = list(replace(TINY, rows=1000).batches())
    (alone,) = replace(TINY, rows=500).batches()
    assert all(np.array_equal(one, other) for one, other in zip(first, alone, strict=True))
    assert not np.array_equal(first[3], second[3])


def test_columns_are_small_integers_inside_the_schema():
    for columns in TINY.batches():
        for column, size in zip(columns, TINY.schema.shape, strict=True):
            assert column.dtype == np.int16
            assert column.min() >= 0
            assert column.max() < size


def test_occupations_are_skewed_and_incomes_depend_on_gender_age_and_group():
    ages, genders, jobs, incomes = (np.concatenate(parts) for parts in zip(*TINY.batches(), strict=True))
    grown = ages >= census_module.CHILDHOOD * TINY.ages
    by_job = np.sort(np.bincount(jobs[grown], minlength=TINY.occupations))[::-1]
    assert by_job[:5].sum() > 3 * by_job[-24:].sum()
    middle = grown & (ages > 8) & (ages < 12)
    assert incomes[middle & (genders == 1)].mean() > 1.1 * incomes[middle & (genders == 0)].mean()
    assert incomes[middle].mean() > 1.2 * incomes[ages > 20].mean()
    groups = np.repeat(np.arange(TINY.groups), TINY.group_sizes)[jobs]
    by_group = [incomes[grown & (groups == group)].mean() for group in range(TINY.groups)]
    assert max(by_group) > 1.5 * min(by_group)
    assert (incomes[~grown] == 0).all()


def test_the_parquet_file_of_a_census_counts_to_its_cube(tmp_path):
    TINY.write_parquet(tmp_path / "tiny.parquet")
    counted = vc.count(tmp_path / "tiny.parquet", TINY.schema)
    assert np.array_equal(counted.exact_counts, TINY.count().exact_counts)


def test_questions_bind_one_to_four_attributes_evenly_by_ranges_and_nodes():
    questions = random_questions(TINY.schema, 4000, seed=5)
    low, high, sizes = questions.workload.low, questions.workload.high, np.array(TINY.schema.shape)
    bound = (high - low + 1) < sizes
    # A range may by chance be the whole attribute, so a little fewer are seen to be bound.
    assert bound.mean() == pytest.approx(2.5 / 4, abs=0.02)
    root = TINY.schema["occupation"].hierarchy.root
    nodes = {(node.first, node.end - 1) for node in nodes_below(root)} | {(0, TINY.occupations - 1)}
    assert len(nodes) == TINY.occupations + TINY.groups + 1
    assert set(zip(low[:, 2].tolist(), high[:, 2].tolist(), strict=True)) <= nodes
    cells = (high - low + 1).prod(axis=1)
    assert np.allclose(questions.coverage, cells / TINY.schema.cells)


def test_quintiles_part_the_queries_into_five_equal_groups_in_order():
    values = np.random.default_rng(6).random(1000)
    groups = quintiles(values)
    assert [len(group) for group in groups] == [200] * 5
    assert all(values[one].max() <= values[other].min() for one, other in pairwise(groups))
