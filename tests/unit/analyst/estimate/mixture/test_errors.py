"""Errors that replays teach: what they are regressed on, how many of them intervals hold, and what widens these."""

from dataclasses import replace
from functools import partial
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from veilcube.analyst.estimate.mixture.cells import CellSums
from veilcube.analyst.estimate.mixture.errors import (
    DEVIATIONS_OF_95_PERCENT,
    MOST_NARROWED,
    QUESTIONS,
    WIDENING,
    ErrorModel,
    Kinds,
    _conjunctions,
    _regressed,
    learn_errors,
)
from veilcube.analyst.estimate.mixture.fitting import fit_mixture
from veilcube.analyst.estimate.mixture.model import Mixture
from veilcube.analyst.estimate.mixture.observed import ModelAxis, Observations, ObservedTable
from veilcube.analyst.estimate.mixture.replicates import Answering, Replicate, replay

Floats = NDArray[np.float64]
SHAPE = (8, 6, 5)
quick = partial(fit_mixture, classes=24, steps=60)


def refit(observed: Observations, seed: int) -> tuple[Mixture, Answering]:
    model = quick(observed, seed)
    return model, model


@pytest.fixture(scope="module")
def truth() -> Mixture:
    random = np.random.default_rng(1)
    laws = tuple(random.dirichlet(np.ones(size), 3) for size in SHAPE)
    return Mixture(tuple(ModelAxis.plain(size) for size in SHAPE), random.dirichlet(np.ones(3)), laws, 4000.0)


@pytest.fixture(scope="module")
def observed(truth: Mixture) -> Observations:
    """Return a measured table that is like the model: rows drawn from it, with noise."""
    tables = []
    for axes in [(0,), (1,), (2,), *combinations(range(3), 2)]:
        groups = tuple(np.arange(SHAPE[axis]) for axis in axes)
        tables.append(ObservedTable(axes, groups, truth.table(axes, groups), 100.0))
    plain = Observations(truth.axes, tuple(tables), None, SHAPE, "gaussian", None)
    return replay(plain, truth, None, refit, np.random.default_rng(77)).observed


@pytest.fixture(scope="module")
def fits(observed: Observations) -> list[tuple[Mixture, Answering]]:
    return [refit(observed, seed) for seed in range(2)]


@pytest.fixture(scope="module")
def replicates(observed: Observations, fits: list[tuple[Mixture, Answering]]) -> list[Replicate]:
    generator = np.random.default_rng(0)
    return [replay(observed, fits[0][0], None, refit, generator) for _ in range(4)]


@pytest.fixture(scope="module")
def learned(observed: Observations, fits: list[tuple[Mixture, Answering]], replicates: list[Replicate]) -> ErrorModel:
    return learn_errors(observed, fits, replicates)


def test_questions_are_described_by_their_attributes_and_by_the_rarer_of_an_answer_and_its_rest() -> None:
    is_narrowed = np.array([[1.0, 0, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0], [1] * 6, [0] * 6])
    kinds = Kinds.of(is_narrowed, np.array([90.0, 30.0, -4.0, 100.0]), 100.0)
    assert kinds.narrowed.tolist() == [1, 2, MOST_NARROWED, 1]
    assert kinds.counts.tolist() == [10.0, 30.0, 0.5, 0.5]
    features = kinds.features()
    assert features.shape == (4, 3 * MOST_NARROWED + 6)
    size = np.log(30.0)
    expected = np.zeros(3 * MOST_NARROWED + 6)
    expected[[1, MOST_NARROWED + 1, 2 * MOST_NARROWED + 1, -6, -5]] = [1.0, size, size**2 / 10, 0.5, 0.5]
    np.testing.assert_allclose(features[1], expected)
    np.testing.assert_allclose(features[2, -6:], 1 / 6)


def test_random_questions_narrow_what_they_say_they_narrow() -> None:
    shape = (7, 1, 40, 3)
    low, high, is_narrowed = _conjunctions(shape, np.random.default_rng(1))
    assert len(low) == 3 * QUESTIONS  # the attribute with one value cannot be narrowed
    assert ((low >= 0) & (low <= high) & (high < np.array(shape))).all()
    assert np.array_equal(is_narrowed.astype(bool), (low > 0) | (high < np.array(shape) - 1))
    assert [int(count) for count in np.unique(is_narrowed.sum(axis=1))] == [1, 2, 3]
    lengths = (high - low + 1)[is_narrowed[:, 2] == 1, 2]
    assert 0.4 < np.mean(lengths <= 3) < 0.8  # half of them are narrow


def test_questions_about_attributes_of_one_value_alone_are_possible() -> None:
    low, high, is_narrowed = _conjunctions((1, 1, 1), np.random.default_rng(1))
    assert low.shape == (QUESTIONS, 3)
    assert not low.any()
    assert not high.any()
    assert is_narrowed.sum() == QUESTIONS


def test_errors_that_grow_with_the_answer_are_learned() -> None:
    """Errors of standard deviation 3 √count on one attribute, and 10 on two."""
    random = np.random.default_rng(2)
    counts, number = np.exp(random.uniform(2, 7, 8000)), np.arange(8000) % 2
    is_narrowed = np.stack([np.ones(8000), number], axis=1)
    kinds = Kinds.of(is_narrowed, counts, 1e6)
    true = np.where(number == 0, 3 * np.sqrt(counts), 10.0)
    weights, borders, scales = _regressed(kinds, true * random.standard_normal(8000))
    model = ErrorModel(1e6, 1.0, weights, borders, scales, {}, {1: 1.0, 2: 1.0})
    asked = np.array([20.0, 100.0, 500.0])
    for attributes, expected in [([1.0, 0.0], 3 * np.sqrt(asked)), ([1.0, 1.0], np.full(3, 10.0))]:
        found = model.stddevs(np.tile(attributes, (3, 1)), asked) / WIDENING[int(sum(attributes))]
        np.testing.assert_allclose(found, expected, rtol=0.2)


@pytest.mark.parametrize(("rare", "size"), [(0.08, 20.0), (0.02, 100.0)])
def test_rare_large_errors_are_held_by_their_quantile_or_by_their_mean_square(rare: float, size: float) -> None:
    """Of 8% large errors the 95% quantile is one; of 2% it is not, but their mean square tells."""
    random = np.random.default_rng(3)
    errors = np.where(random.random(8000) < rare, size, 0.6) * random.choice([-1.0, 1.0], 8000)
    asked, counts = np.ones((8000, 1)), np.exp(random.uniform(2, 7, 8000))
    weights, borders, scales = _regressed(Kinds.of(asked, counts, 1e6), errors)
    found = ErrorModel(1e6, 0.0, weights, borders, scales, {}, {1: 1.0}).stddevs(asked, counts) / WIDENING[1]
    assert np.mean(np.abs(errors) <= DEVIATIONS_OF_95_PERCENT * found + 0.5) >= 0.95
    assert np.mean(np.square(found)) >= 0.9 * np.mean(np.square(errors))


def replayed_errors(replicates: list[Replicate]) -> tuple[Floats, Floats, Floats]:
    """Return the questions that errors were learned from: attributes, answers and errors."""
    generator, parts = np.random.default_rng(1), []
    for one in replicates:
        low, high, is_narrowed = _conjunctions(SHAPE, generator)
        counts = one.fitted.blocks(low, high)
        parts.append((is_narrowed, counts, counts - one.truth.blocks(low, high)))
    return tuple(np.concatenate(part) for part in zip(*parts, strict=True))  # type: ignore[return-value]


def test_scales_hold_95_percent_of_the_replayed_errors(learned: ErrorModel, replicates: list[Replicate]) -> None:
    is_narrowed, counts, errors = replayed_errors(replicates)
    plain = replace(learned, inflation=dict.fromkeys(learned.inflation, 1.0))
    widened = np.array([WIDENING[int(number)] for number in is_narrowed.sum(axis=1)])
    reach = DEVIATIONS_OF_95_PERCENT * plain.stddevs(is_narrowed, counts) / widened
    for number in (1, 2, 3):
        chosen = is_narrowed.sum(axis=1) == number
        held = np.abs(errors[chosen]) <= reach[chosen] + 1e-9
        assert 0.935 <= held.mean() <= 0.99, number
        assert np.mean(np.abs(errors[chosen]) <= reach[chosen] / 2) < 0.85
    assert np.mean(np.square(reach / DEVIATIONS_OF_95_PERCENT)) >= 0.9 * np.mean(np.square(errors))


def test_intervals_are_not_widened_where_the_table_is_like_the_replays(learned: ErrorModel) -> None:
    assert sorted(learned.inflation) == [1, 2, 3]
    assert 1.0 <= min(learned.inflation.values()) <= max(learned.inflation.values()) < 1.1
    assert [finding.kind for finding in learned.findings] == ["tables over one attribute", "tables over 2 attributes"]
    assert all(finding.is_good and 1.0 <= finding.disagreement < 1.1 for finding in learned.findings)
    assert [finding.questions for finding in learned.findings] == [8 + 6 + 5, 48 + 40 + 30]


def test_a_table_that_contradicts_the_model_widens_the_intervals_of_its_kind(
    observed: Observations,
    fits: list[tuple[Mixture, Answering]],
    replicates: list[Replicate],
    learned: ErrorModel,
) -> None:
    tables = list(observed.tables)
    number = [table.axes for table in tables].index((0, 1))
    chequered = 40.0 * (-1.0) ** np.indices(tables[number].counts.shape).sum(axis=0)
    tables[number] = replace(tables[number], counts=tables[number].counts + chequered)
    found = learn_errors(replace(observed, tables=tuple(tables)), fits, replicates)
    assert found.inflation[1] == learned.inflation[1]
    assert found.inflation[2] > 2.0 * learned.inflation[2]
    assert found.inflation[3] == found.inflation[2]  # no table tells about three: as badly as the worst that is told
    assert found.findings[0].is_good
    assert not found.findings[1].is_good
    assert found.findings[1].is_widened
    asked = np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    both = [one.stddevs(asked, np.array([50.0, 300.0])) for one in (found, learned)]
    assert both[0][0] == pytest.approx(both[1][0] * np.sqrt(found.inflation[2] / learned.inflation[2]))
    assert both[0][1] == pytest.approx(both[1][1])


def refit_cells(observed: Observations, seed: int) -> tuple[Mixture, Answering]:
    model = quick(observed, seed)
    return model, CellSums(model.cells())


@pytest.mark.parametrize(("height", "is_widened"), [(0.0, False), (12.0, True)])
def test_all_cells_tell_what_no_table_of_two_attributes_shows(
    observed: Observations, truth: Mixture, height: float, is_widened: bool
) -> None:
    """Cells of one parity hold more rows than those of the other, as no pair shows; noise on cells is 10."""
    groups = tuple(np.arange(size) for size in SHAPE)
    cells = ObservedTable((0, 1, 2), groups, truth.cells(), 100.0)
    like = replay(replace(observed, cells=cells), truth, CellSums(truth.cells()), refit_cells, np.random.default_rng(3))
    parity = height * (-1.0) ** np.indices(SHAPE).sum(axis=0)
    seen = replace(like.observed, cells=replace(cells, counts=like.observed.cells.counts + parity))
    fits = [refit_cells(seen, 0)]
    replicates = [replay(seen, truth, fits[0][1], refit_cells, np.random.default_rng(seed)) for seed in range(3)]
    found = learn_errors(seen, fits, replicates)
    assert (found.inflation[3] > 1.5) == is_widened
    assert found.findings[-1].kind == "all cells"
    assert found.findings[-1].is_good != is_widened


def test_the_number_of_all_rows_has_an_error_of_its_own(learned: ErrorModel, observed: Observations) -> None:
    precision = sum(1 / (table.variance * table.counts.size) for table in observed.tables)
    found = learned.stddevs(np.zeros((1, 3)), np.array([observed.rows]))
    assert found[0] == pytest.approx(precision**-0.5)


def test_questions_about_more_attributes_than_were_asked_are_taken_for_the_most_that_were() -> None:
    weights = np.zeros(3 * MOST_NARROWED + 6)
    weights[1] = 2 * np.log(7.0)
    borders, scales = {1: np.zeros(1), 2: np.zeros(1)}, {1: np.ones(1), 2: np.full(1, 2.0)}
    model = ErrorModel(1e3, 1.0, weights, borders, scales, {}, {1: 1.0, 2: 4.0})
    found = model.stddevs(np.array([[1.0, 1, 0, 0, 0, 0], [1, 1, 1, 0, 0, 0]]), np.array([10.0, 10.0])) / np.array(
        [WIDENING[2], WIDENING[2]]
    )
    np.testing.assert_allclose(found, [7 * 2 * 2, 1 * 2 * 2])


def certain(stddev_of_rows: float) -> ErrorModel:
    """Return a model by which no question about an attribute has an error to speak of, among 1,000 rows."""
    return ErrorModel(1e3, stddev_of_rows, np.full(18, -9.0), {1: np.zeros(1)}, {1: np.ones(1)}, {}, {1: 1.0})


def test_no_interval_is_too_narrow_to_hold_a_single_row_beside_none() -> None:
    found = certain(0.01).stddevs(np.array([[1.0, 0, 0], [0, 0, 0]]), np.array([0.0, 1e3]))
    assert found[0] == found[1]
    assert 1.0 < DEVIATIONS_OF_95_PERCENT * found[0] < 1.1


def test_questions_that_hold_most_rows_are_as_uncertain_as_their_number() -> None:
    counts = np.array([0.0, 100.0, 500.0, 1000.0, 1003.0])
    found = certain(20.0).stddevs(np.tile([1.0, 0.0, 0.0], (5, 1)), counts)
    np.testing.assert_allclose(found[1:], [2.0, 10.0, 20.0, 20.0])
    assert found[0] < 1.0
