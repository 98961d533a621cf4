"""What the schema calls impossible holds in refined releases, beside the facts."""

import warnings

import numpy as np
import pytest

import veilcube as vc
from support.dense_refinement import dense_queries, dense_refinement
from support.releases import release_of

ATTRIBUTES = [vc.Ordinal("age", 0, 11), vc.Nominal("sex", ["F", "M"]), vc.Nominal("job", ["none", "nurse", "judge"])]
SCHEMA = vc.Schema(ATTRIBUTES, impossible=[{"age": (0, 3), "job": ["nurse", "judge"]}, {"age": [5, 7], "job": "judge"}])
POSSIBLE = np.ones(SCHEMA.shape, dtype=bool)
POSSIBLE[:4, :, 1:] = POSSIBLE[[5, 7], :, 2] = False
COUNTS = np.random.default_rng(0).poisson(60, SCHEMA.shape) * POSSIBLE
STRATEGIES = {
    "identity": vc.Identity(),
    "tree": vc.Tree(branching=2, refine=False),
    "wavelet": vc.Wavelet(),
    "all cells": vc.Marginals(k=3),
    "blocks": vc.Adaptive(partition="blocks", side=3),
}


@pytest.mark.parametrize("name", STRATEGIES)
def test_impossible_cells_are_0_and_the_others_are_those_of_dense_matrices(name: str) -> None:
    release = release_of(SCHEMA, COUNTS, seed=3, strategy=STRATEGIES[name])
    refined = vc.refine(release, f"total = {COUNTS.sum()}")
    rows = np.concatenate([np.ones((1, SCHEMA.cells)), np.eye(SCHEMA.cells)[~POSSIBLE.ravel()]])
    dense = dense_refinement(release, rows, rows @ COUNTS.ravel())
    cells = refined.marginal(*SCHEMA.names)
    np.testing.assert_allclose(cells.value.ravel(), dense.cells, atol=1e-7)
    for part in (cells.value, cells.low, cells.high, cells.stddev):
        assert (part[~POSSIBLE] == 0).all()
    questions = vc.Workload.random_ranges(SCHEMA, 40, seed=1)
    found = refined.answer(questions)
    np.testing.assert_allclose(found.stddev, dense.stddev(dense_queries(questions)), atol=1e-5)
    assert refined.count("age <= 3 AND job = 'judge'").value == 0


def test_tables_of_attributes_hold_what_they_can_tell() -> None:
    refined = vc.refine(release_of(SCHEMA, COUNTS, seed=4, strategy=vc.Marginals(k=2)), f"total = {COUNTS.sum()}")
    table = refined.marginal("age", "job")
    assert (table.value[~POSSIBLE.all(axis=1)] == 0).all()
    vc.refine(release_of(SCHEMA, COUNTS, seed=4, strategy=vc.Marginals(k=1)), f"total = {COUNTS.sum()}")


def test_staged_trees_hold_them_too() -> None:
    schema = vc.Schema([vc.Ordinal("age", 0, 31)], impossible=[{"age": (4, 9)}])
    counts = np.full(32, 40)
    counts[4:10] = 0
    release = release_of(schema, counts, seed=2, strategy=vc.Tree())
    assert release.record.is_staged
    refined = vc.refine(release, f"total = {counts.sum()}")
    ages = refined.marginal("age")
    assert np.array([ages.value, ages.low, ages.high])[:, 4:10].tolist() == [[0.0] * 6] * 3


def test_facts_about_impossible_cells_are_redundant_or_refused() -> None:
    release = release_of(SCHEMA, COUNTS, seed=3)
    refined = vc.refine(release, [f"total = {COUNTS.sum()}", "count(age <= 3 AND job = 'nurse') = 0"])
    assert [fact.sentence for fact in refined.facts] + [fact.sentence for fact in refined.redundant]
    assert not any("impossible" in fact.sentence for fact in (*refined.facts, *refined.redundant))
    with pytest.raises(vc.VeilcubeError, match=r"contradict each other|no counts obey"):
        vc.refine(release, "count(age <= 3 AND job = 'nurse') = 5")
    with pytest.raises(vc.VeilcubeError, match=r"no table obeys|no counts obey"):
        vc.refine(release, "count(age <= 3 AND job = 'nurse') >= 5")


def test_rows_where_the_schema_knows_none_are_noticed() -> None:
    release = release_of(SCHEMA, COUNTS + 100, seed=3)
    with pytest.warns(
        UserWarning, match=r"impossible: age 0 to 3, job (judge or nurse|nurse or judge)` = 0' is off by"
    ):
        vc.refine(release, f"total = {COUNTS.sum() + 100 * COUNTS.size}")


def test_large_combinations_are_imposed_as_wholes() -> None:
    schema = vc.Schema([vc.Ordinal("x", 0, 99), vc.Ordinal("y", 0, 99)], impossible=[{"x": (0, 59), "y": (0, 99)}])
    counts = np.full(schema.shape, 5)
    counts[:60] = 0
    refined = vc.refine(release_of(schema, counts, seed=3), f"total = {counts.sum()}")
    answer = refined.count(x=(0, 59))
    assert (answer.value, answer.stddev) == (0, 0)
    assert refined.count(x=(60, 99)).value == pytest.approx(counts.sum())


def test_synthetic_rows_keep_to_them() -> None:
    refined = vc.refine(release_of(SCHEMA, COUNTS, seed=3), f"total = {COUNTS.sum()}")
    rows = refined.synthesize()
    assert len(rows) == COUNTS.sum()
    assert not ((rows["age"] <= 3) & (rows["job"] != "none")).any()


def test_intervals_under_them_hold_as_often_as_they_say() -> None:
    questions = vc.Workload.random_ranges(SCHEMA, 50, seed=2)
    truth = dense_queries(questions) @ COUNTS.ravel()
    held = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(60):
            release = release_of(SCHEMA, COUNTS, seed=seed, strategy=vc.Tree(branching=2, refine=False))
            found = vc.refine(release, f"total = {COUNTS.sum()}").answer(questions)
            held.append(((found.low - 1e-6 <= truth) & (truth <= found.high + 1e-6)).mean())
    assert np.mean(held) > 0.94
