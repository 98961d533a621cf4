"""What marginals impute by maximum entropy, against brute force."""

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from scipy.optimize import minimize

import veilcube as vc
from veilcube.analyst.estimate.marginals.coarse_entropy import fit_blocks, impute
from veilcube.errors import QueryError
from veilcube.operators.marginals.components import part_covariances
from veilcube.operators.marginals.tables import MarginalsOperator

PARTS = [part for size in range(3) for part in combinations((0, 1, 2), size)]
SCHEMA = vc.Schema([vc.Ordinal(f"a{i}", 0, 5) for i in range(5)])


def people(rows: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=rows)
    return {
        f"a{i}": np.clip(np.rint(hidden + 0.8 * rng.normal(size=rows)) + 2, 0, 5).astype(np.int64) for i in range(5)
    }


def parts_of(table: np.ndarray) -> np.ndarray:
    counts = []
    for part in PARTS:
        inside = tuple(1 if axis in part else slice(None) for axis in range(3))
        counts.append(table[inside].sum())
    return np.array([counts])


def test_fitting_finds_the_table_of_most_entropy_with_these_margins() -> None:
    table = np.random.default_rng(0).uniform(1, 20, (2, 2, 2))
    margins = [table.sum(axis=axis) for axis in range(3)]
    # Tables with the same two-way margins differ by a multiple of the alternating table.
    alternating = np.array([[[1, -1], [-1, 1]], [[-1, 1], [1, -1]]])

    def minus_entropy(step: np.ndarray) -> float:
        moved = table + step[0] * alternating
        return float((moved * np.log(moved)).sum()) if (moved > 0).all() else 1e9

    best = table + minimize(minus_entropy, [0.0], method="Nelder-Mead", options={"xatol": 1e-9}).x[0] * alternating
    assert all(np.allclose(best.sum(axis=axis), margin) for axis, margin in enumerate(margins))
    assert fit_blocks((0, 1, 2), PARTS, parts_of(table))[0] == pytest.approx(best[1, 1, 1], rel=1e-4)


def test_independent_attributes_are_multiplied() -> None:
    table = 1000 * np.einsum("a,b,c->abc", [0.3, 0.7], [0.9, 0.1], [0.4, 0.6])
    assert fit_blocks((0, 1, 2), PARTS, parts_of(table))[0] == pytest.approx(table[1, 1, 1])


def test_noise_that_makes_margins_negative_leaves_counts_that_are_not() -> None:
    counts = np.array([[100.0, 50, 50, 50, -3, 25, 25]])
    assert 0 <= fit_blocks((0, 1, 2), PARTS, counts)[0] < 0.1


def test_parts_of_a_block_err_together_as_their_noise_weights_say() -> None:
    shape, parts = (3, 4, 2), [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2)]
    operator = MarginalsOperator(shape, ("a", "b", "c"), 2, (1, 3, 2))
    masks = [np.array([1, 1, 0]), np.array([0, 1, 1, 1]), np.array([1, 0])]
    weights = []
    for part in parts:
        factors = [mask if axis in part else np.ones(mask.size) for axis, mask in enumerate(masks)]
        weights.append(operator.noise_weights(np.einsum("a,b,c->abc", *factors)))
    lengths = np.array([[mask.sum() for mask in masks]], dtype=np.float64)
    found = part_covariances(shape, operator.precisions, parts, lengths)[0]
    np.testing.assert_allclose(found, np.array(weights) @ np.array(weights).T)


def test_more_attributes_than_a_table_holds_are_imputed_and_the_answer_says_so() -> None:
    data = people(20_000, seed=1)
    release = vc.release(pa.table(data), 20, vc.Marginals(k=2), schema=SCHEMA)
    asked = {"a0": (0, 2), "a1": (0, 2), "a2": (0, 2)}
    truth = np.count_nonzero(np.all([data[name] <= 2 for name in asked], axis=0))
    told, imputed = release.count(a0=(0, 2), a1=(0, 2)), release.count(**asked)
    assert (told.estimator, imputed.estimator) == ("least_squares", "max_entropy")
    assert imputed.low <= truth <= imputed.high
    assert imputed.value == pytest.approx(truth, rel=0.05)
    both = release.answer(vc.Workload(SCHEMA, [{"a0": (0, 2)}, asked]))
    assert both.value[1] == pytest.approx(imputed.value)
    assert both.estimator == "least_squares, max_entropy"
    with pytest.raises(QueryError, match="do not determine"):
        release.count(**asked, estimator="least_squares")


def test_regions_of_several_boxes_groups_and_means_are_imputed_too() -> None:
    data = people(20_000, seed=2)
    release = vc.release(pa.table(data), 50, vc.Marginals(k=2), schema=SCHEMA)
    either = release.count("(a0 = 1 AND a1 = 1 AND a2 = 1) OR (a0 = 3 AND a1 = 3 AND a2 = 3)")
    truth = sum(np.count_nonzero(np.all([data[f"a{i}"] == v for i in range(3)], axis=0)) for v in (1, 3))
    assert either.low <= truth <= either.high
    table = release.marginal("a0", "a1", "a2")
    assert table.value.shape == (6, 6, 6)
    assert table.estimator == "max_entropy"
    assert table.value.sum() == pytest.approx(20_000, rel=0.02)
    inside = (data["a1"] <= 1) & (data["a2"] <= 1)
    mean = release.mean("a0", where={"a1": (0, 1), "a2": (0, 1)})
    assert mean.low <= data["a0"][inside].mean() <= mean.high
    assert 0 <= release.quantile("a0", 0.5, where="(a1 = 1 AND a2 = 1) OR (a1 = 4 AND a2 = 4)").value <= 5


@pytest.mark.parametrize("epsilon", [1, 100])
def test_a_table_of_people_scatters_about_any_model(epsilon: int) -> None:
    rng = np.random.default_rng(7)
    data = {f"a{i}": rng.integers(0, 4, 5_000) for i in range(5)}
    release = vc.release(pa.table(data), epsilon, vc.Marginals(k=2), schema=SCHEMA)
    found = release.marginal("a0", "a1", "a2")
    truth = np.zeros((6, 6, 6))
    np.add.at(truth, (data["a0"], data["a1"], data["a2"]), 1)
    inside = np.ix_(range(4), range(4), range(4))
    assert np.mean((found.low[inside] <= truth[inside]) & (truth[inside] <= found.high[inside])) >= 0.93


def test_attributes_that_no_table_holds_together_may_be_tied_in_any_way() -> None:
    half = np.arange(10_000) % 2
    data = {"a0": half, "a1": half, "a2": half, "a3": half, "a4": half}
    for strategy in (vc.Marginals(k=1), vc.Marginals(tables=[("a0", "a2"), ("a1",)])):
        release = vc.release(pa.table(data), 10, strategy, schema=SCHEMA)
        answer = release.count(a0=1, a1=1)
        assert answer.low <= 5_000 <= answer.high
        assert answer.low <= 100


def test_an_attribute_without_any_marginal_cannot_be_imputed() -> None:
    release = vc.release(pa.table(people(100, 3)), 1, vc.Marginals(tables=[("a0", "a1")]), schema=SCHEMA)
    with pytest.raises(QueryError, match="no marginal of an attribute"):
        release.count(a0=1, a4=2)


def test_intervals_of_what_is_imputed_hold_on_tables_with_dependence() -> None:
    data = people(50_000, seed=4)
    release = vc.release(pa.table(data), 5, vc.Marginals(k=2), schema=SCHEMA)
    rng, held = np.random.default_rng(5), []
    low, high = np.zeros((120, 5), dtype=np.int64), np.full((120, 5), 5)
    for row in range(120):
        for axis in rng.choice(5, 3, replace=False):
            low[row, axis], high[row, axis] = sorted(rng.integers(0, 6, 2).tolist())
    answers = release.answer(vc.Workload.ranges(SCHEMA, low, high))
    rows = np.column_stack([data[f"a{i}"] for i in range(5)])
    for row in range(120):
        truth = np.count_nonzero(np.all((rows >= low[row]) & (rows <= high[row]), axis=1))
        held.append(answers.low[row] <= truth <= answers.high[row])
    assert np.mean(held) >= 0.93


def test_intervals_hold_where_noise_is_larger_than_the_counts() -> None:
    table = 400 * np.einsum("a,b,c->abc", [0.7, 0.3], [0.6, 0.4], [0.5, 0.5])
    truth, draws = table[1, 1, 1], 2_000
    noise = np.random.default_rng(6).normal(scale=200, size=(draws, len(PARTS)))
    counts = dict(zip(PARTS, (parts_of(table) + noise).T, strict=True))
    counts[()] = np.full(draws, table.sum())
    covariances = np.tile(200.0**2 * np.eye(len(PARTS)), (draws, 1, 1))
    covariances[:, 0, 0] = 0.0
    found = impute((0, 1, 2), counts, covariances)
    # Counts that noise made negative are cut at zero: nearby there is no table, and that must not pass for certainty.
    assert np.mean(np.abs(found.counts - truth) <= 1.96 * found.stddevs) >= 0.94


def test_bounds_of_a_block_hold_every_table_with_its_margins_and_are_reached() -> None:
    rng = np.random.default_rng(11)
    alternating = np.array([[[1, -1], [-1, 1]], [[-1, 1], [1, -1]]])
    for _ in range(50):
        table = rng.integers(0, 20, (2, 2, 2)).astype(float)
        # All tables with the same two-way margins: as far along the alternating table as counts stay non-negative.
        up = np.min(table[alternating < 0])
        down = np.min(table[alternating > 0])
        block = table[1, 1, 1]
        ends = sorted((block - up, block + down)) if alternating[1, 1, 1] < 0 else sorted((block + up, block - down))
        counts = {part: parts_of(table)[:, number] for number, part in enumerate(PARTS)}
        found = impute((0, 1, 2), counts, np.zeros((1, 7, 7)))
        assert found.least[0] == pytest.approx(ends[0])
        assert found.most[0] == pytest.approx(ends[1])
        low, high = found.interval(1.96)
        assert low[0] <= ends[0] + 1e-9
        assert high[0] >= ends[1] - 1e-9


def test_a_comb_that_no_pair_of_attributes_shows_lies_within_the_interval() -> None:
    schema = vc.Schema([vc.Ordinal(name, 0, 7) for name in "abc"])
    counts = np.where(np.indices((8, 8, 8)).sum(axis=0) % 4 == 0, 60, 0)
    release = vc.release(vc.Cube(schema, counts), 2, vc.Marginals(k=2))
    found = release.marginal("a", "b", "c")
    assert np.mean((found.low <= counts) & (counts <= found.high)) > 0.99
