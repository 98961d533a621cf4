"""Fits of mixtures: their slopes against finite differences, and tables that they must meet."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from veilcube.analyst.estimate.mixture import fitting
from veilcube.analyst.estimate.mixture.fitting import _slopes, _Table, fit_mixture
from veilcube.analyst.estimate.mixture.model import Mixture
from veilcube.analyst.estimate.mixture.observed import ModelAxis, Observations, ObservedTable

Floats = NDArray[np.float64]
SHAPE = (5, 4, 3, 6)
ROWS = 200.0
# Groups of places by axis; () leaves every place on its own.
GROUPS: dict[str, tuple[NDArray[np.int64], ...]] = {
    "single places": tuple(np.arange(size) for size in SHAPE),
    "groups": (np.array([0, 1, 1, 0, 2]), np.array([1, 1, 0, 0]), np.array([0, 0, 1]), np.array([2, 0, 1, 3, 1, 0])),
}


def softmax(logits: Floats) -> Floats:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def misfit(tables: Sequence[ObservedTable], logits: Sequence[Floats]) -> float:
    """Return Σ (y - N p)² / (2 σ²), one class and one cell at a time."""
    *laws, weights = (softmax(one) for one in logits)
    total = 0.0
    for table in tables:
        found = np.zeros(table.counts.shape)
        for number, weight in enumerate(weights[0]):
            part = np.array(weight)
            for axis, labels in zip(table.axes, table.groups, strict=True):
                own = np.bincount(labels, weights=laws[axis][number])
                part = np.multiply.outer(part, own)
            found += part
        total += float(np.square(table.counts - ROWS * found).sum()) / (2 * table.variance)
    return total


def random_tables(axes: tuple[int, ...], kind: str, seed: int) -> ObservedTable:
    random = np.random.default_rng(seed)
    groups = tuple(GROUPS[kind][axis] for axis in axes)
    shape = tuple(int(labels.max()) + 1 for labels in groups)
    return ObservedTable(axes, groups, random.normal(ROWS / np.prod(shape), 3.0, shape), 2.0 + seed)


def finite_differences(tables: Sequence[ObservedTable], logits: list[Floats], step: float = 1e-5) -> list[Floats]:
    found = [np.zeros_like(one) for one in logits]
    for one, slopes in zip(logits, found, strict=True):
        for place in np.ndindex(one.shape):
            kept = one[place]
            one[place] = kept + step
            above = misfit(tables, logits)
            one[place] = kept - step
            slopes[place] = (above - misfit(tables, logits)) / (2 * step)
            one[place] = kept
    return found


@pytest.mark.parametrize("kind", ["single places", "groups"])
@pytest.mark.parametrize("axes", [(2,), (0, 3), (0, 1, 3), (0, 1, 2, 3)], ids=lambda axes: f"{len(axes)} axes")
def test_slopes_are_those_of_finite_differences(axes: tuple[int, ...], kind: str) -> None:
    random = np.random.default_rng(7)
    logits = [random.standard_normal((3, size)) for size in SHAPE] + [random.standard_normal((1, 3))]
    tables = [random_tables(axes, kind, 1)]
    found = _slopes([_Table.of(table, ROWS) for table in tables], logits)
    for ours, theirs in zip(found, finite_differences(tables, logits), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)
    assert max(float(np.abs(one).max()) for one in found) > 1.0


def test_slopes_of_tables_that_share_groups_add_up() -> None:
    random = np.random.default_rng(8)
    logits = [random.standard_normal((3, size)) for size in SHAPE] + [random.standard_normal((1, 3))]
    tables = [
        random_tables(axes, kind, seed)
        for seed, (axes, kind) in enumerate(
            [((1,), "groups"), ((1, 3), "groups"), ((0, 1), "single places"), ((1, 2, 3), "groups"), ((3,), "groups")]
        )
    ]
    found = _slopes([_Table.of(table, ROWS) for table in tables], logits)
    for ours, theirs in zip(found, finite_differences(tables, logits), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


def two_classes() -> Mixture:
    laws = (
        np.array([[0.7, 0.2, 0.1, 0.0, 0.0], [0.0, 0.1, 0.1, 0.3, 0.5]]),
        np.array([[0.1, 0.2, 0.3, 0.4], [0.4, 0.4, 0.1, 0.1]]),
        np.array([[0.8, 0.1, 0.1], [0.2, 0.2, 0.6]]),
    )
    return Mixture(tuple(ModelAxis.plain(size) for size in SHAPE[:3]), np.array([0.6, 0.4]), laws, 1000.0)


def observed_of(model: Mixture, stddev: float, noise: np.random.Generator | None = None) -> Observations:
    """Return all tables of a model over one and two attributes, with noise or without."""
    tables = []
    for count in (1, 2):
        for axes in combinations(range(len(model.axes)), count):
            groups = tuple(np.arange(model.axes[axis].size) for axis in axes)
            exact = model.table(axes, groups)
            shaken = exact if noise is None else exact + noise.normal(0, stddev, exact.shape)
            tables.append(ObservedTable(axes, groups, shaken, stddev**2))
    return Observations(model.axes, tuple(tables), None, tuple(axis.size for axis in model.axes), "gaussian", None)


def test_tables_of_two_known_classes_are_met_where_there_is_no_noise() -> None:
    truth = two_classes()
    observed = observed_of(truth, 1.0)
    found = fit_mixture(observed, 0, classes=32, steps=300)
    assert found.rows == pytest.approx(1000.0)
    for table in observed.tables:
        assert np.abs(found.table(table.axes, table.groups) - table.counts).max() < 2.0
    independent = np.outer(*(found.table((axis,), (np.arange(found.axes[axis].size),)) for axis in (0, 1))) / 1000
    assert np.abs(independent - truth.table((0, 1), (np.arange(5), np.arange(4)))).max() > 20
    # What no table shows follows: a third attribute is as the classes have it.
    assert np.abs(found.cells() - truth.cells()).max() < 15


def test_the_number_of_rows_and_all_probabilities_are_proper() -> None:
    found = fit_mixture(observed_of(two_classes(), 5.0, np.random.default_rng(1)), 3, classes=8, steps=30)
    assert found.weights.shape == (8,)
    assert found.weights.sum() == pytest.approx(1.0, abs=1e-12)
    for law, axis in zip(found.laws, found.axes, strict=True):
        assert law.shape == (8, axis.size)
        np.testing.assert_allclose(law.sum(axis=1), 1.0, atol=1e-12)
        assert law.min() >= 0.0


def test_the_same_seed_gives_the_same_fit_and_another_one_another() -> None:
    observed = observed_of(two_classes(), 5.0, np.random.default_rng(1))
    first, again, other = (fit_mixture(observed, seed, classes=8, steps=20).cells() for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.allclose(first, other)


def rounds_of(observed: Observations, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how many rounds of steps a fit takes."""
    called, descend = [], fitting._descend

    def counting(*arguments: object) -> None:
        called.append(1)
        descend(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(fitting, "_descend", counting)
    fit_mixture(observed, 0, classes=16, steps=40)
    return len(called)


def test_one_round_is_enough_where_noise_explains_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    assert rounds_of(observed_of(two_classes(), 30.0, np.random.default_rng(2)), monkeypatch) == 1


def test_further_rounds_follow_where_more_is_left_than_noise_explains(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 1 < rounds_of(observed_of(two_classes(), 0.01), monkeypatch) <= fitting.MOST_ROUNDS


def test_rounds_that_bring_nothing_end_the_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    observed = observed_of(two_classes(), 1.0)
    first = observed.tables[0]
    # A table that contradicts its like: no model meets both.
    contradicting = ObservedTable(first.axes, first.groups, first.counts[::-1] + 500.0, 1.0)
    broken = Observations(observed.axes, (*observed.tables, contradicting), None, observed.shape, "gaussian", None)
    assert rounds_of(broken, monkeypatch) < fitting.MOST_ROUNDS
