"""Every strategy under every estimator answers about nobody, about one cell and about all cells, by every method."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

import veilcube as vc
from support.releases import release_of
from veilcube.analyst.estimate import ESTIMATORS
from veilcube.errors import QueryError, VeilcubeError
from veilcube.operators.base.axis import AxisOperator
from veilcube.operators.product import ProductOperator

SCHEMA = vc.Schema(
    [vc.Ordinal("age", 0, 14, missing="cell"), vc.Nominal("job", hierarchy={"A": ["b", "c"], "D": ["e"]})]
)
COUNTS = (np.arange(SCHEMA.cells) * 7 % 11 + 20).reshape(SCHEMA.shape)
STRATEGIES = {
    "identity": vc.Identity(),
    "tree": vc.Tree(refine=False),
    "binary tree": vc.Tree(branching=2, refine=False),
    "staged tree": vc.Tree(),
    "wavelet": vc.Wavelet(flat=()),
    "wavelet with flat names": vc.Wavelet(flat=("job",)),
    "thresholded wavelet": vc.Wavelet(flat=(), threshold=True),
    "blocks": vc.Adaptive(partition="blocks", split=0.5, side=4),
    "grown regions": vc.Adaptive(partition="grow", split=0.7),
    "kd tree": vc.KdTree(),
    "grouped tables": vc.GroupedTables(),
    "single attributes": vc.Marginals(k=1),
    "pairs": vc.Marginals(k=2),
    "matched": "matched",
}
NOBODY = ("age > 200", "age > 3 AND age < 2", "FALSE", "age = 5 AND age = 6 AND job = 'A'", "job = NULL")
EXACT = ("least_squares", "nonnegative")
# What a model answers takes no facts.
WITHOUT_FACTS = ("grouped tables",)


@cache
def _releases(name: str) -> dict[str, vc.Release]:
    plain = release_of(SCHEMA, COUNTS, strategy=STRATEGIES[name])
    if name in WITHOUT_FACTS:
        return {"plain": plain}
    return {"plain": plain, "refined with facts": vc.refine(plain, [f"total = {COUNTS.sum()}"])}


MEMBERS = [
    (strategy, "plain", name) for strategy in STRATEGIES for name in ["best", *(each.name for each in ESTIMATORS)]
]
MEMBERS += [(strategy, "refined with facts", "best") for strategy in STRATEGIES if strategy not in WITHOUT_FACTS]


def _member(strategy: str, kind: str, estimator: str) -> vc.Release:
    release = _releases(strategy)[kind]
    try:
        release.count(estimator=estimator)
    except QueryError as refusal:
        pytest.skip(str(refusal))
    return release


@pytest.mark.parametrize(("strategy", "kind", "estimator"), MEMBERS)
def test_nobody_is_counted_as_exactly_zero(strategy: str, kind: str, estimator: str) -> None:
    release = _member(strategy, kind, estimator)
    for condition in NOBODY:
        others = ["TRUE", "age = 3 OR age = 7", "age = 4"]
        workload = vc.Workload.from_sql(SCHEMA, [condition, *others, condition])
        intervals = ["calibrated"] if kind == "refined with facts" else ["calibrated", "guaranteed"]
        for interval in intervals:
            _is_exact_zero(release.count(condition, estimator=estimator, interval=interval))
            answers = release.answer(workload, estimator=estimator, interval=interval)
            _is_exact_zero(answers[0])
            _is_exact_zero(answers[4])
            for row, other in enumerate(others, start=1):
                alone = release.count(other, estimator=estimator, interval=interval)
                assert (answers.value[row], answers.stddev[row]) == pytest.approx((alone.value, alone.stddev), abs=1e-6)
                assert (answers.low[row], answers.high[row]) == pytest.approx((alone.low, alone.high), abs=1e-6)
        _is_exact_zero(release.sum("age", where=condition, estimator=estimator))
        for names in (("age",), ("job",), ("age", "job"), ("job", "age")):
            asked = f"SELECT COUNT(*) WHERE {condition} GROUP BY {', '.join(names)}"
            for found in (
                release.marginal(*names, where=condition, estimator=estimator),
                release.count(asked, estimator=estimator),
            ):
                assert found.value.size == found.low.size == found.high.size == found.stddev.size == 0
                assert list(found.axes) == list(names)
        questions: tuple[Callable[..., object], ...] = (release.mean, release.quantile, release.cdf)
        for question in questions:
            with pytest.raises(QueryError, match="selects no cell of 'age'"):
                question("age", where=condition, estimator=estimator)


@pytest.mark.parametrize(("strategy", "kind", "estimator"), MEMBERS)
@pytest.mark.parametrize(("condition", "truth"), [("TRUE", COUNTS), ("age = 3 AND job = 'c'", COUNTS[3:4, 1:2])])
def test_one_cell_and_all_cells_are_answered_alike_by_every_method(
    strategy: str, kind: str, estimator: str, condition: str, truth: np.ndarray
) -> None:
    release = _member(strategy, kind, estimator)
    if strategy == "single attributes" and (estimator in EXACT or kind != "plain"):
        pytest.skip("least squares refuses what ties two attributes together")
    counted = release.count(condition, estimator=estimator)
    (answered,) = release.answer(vc.Workload.from_sql(SCHEMA, [condition]), estimator=estimator)
    assert counted.low <= counted.value <= counted.high
    assert answered.value == pytest.approx(counted.value)
    for names in (("age",), ("job",), ("age", "job")):
        table = release.marginal(*names, where=condition, estimator=estimator)
        assert table.value.size == np.prod([{"age": truth.shape[0], "job": truth.shape[1]}[name] for name in names])
        # Marginals impute a table that was not measured, so its cells need not add up to another table's.
        if strategy != "single attributes":
            assert table.value.sum() == pytest.approx(counted.value, abs=1e-6 * COUNTS.sum())
    if estimator in EXACT and not strategy.startswith(("blocks", "grown", "kd", "single")):
        assert counted.value == pytest.approx(truth.sum())
    for question in (release.sum, release.mean, release.quantile, release.cdf):
        assert np.all(np.isfinite(np.asarray(question("age", where=condition, estimator=estimator).value)))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_axis_maps_a_stack_of_no_vectors_to_none(strategy: str) -> None:
    operator = vc.plan(SCHEMA, 1, STRATEGIES[strategy]).operator
    if not isinstance(operator, ProductOperator):
        pytest.skip("no product of axes")
    for axis in operator.axes:
        ways = {"apply": (axis.size, axis.rows), "noise_weights": (axis.size, axis.rows)}
        ways |= {"adjoint": (axis.rows, axis.size), "solve": (axis.rows, axis.size)}
        for way, (given, found) in ways.items():
            for kind in (np.int64, np.float64):
                assert _map(axis, way, np.zeros((0, given), dtype=kind)).shape == (0, found)
    assert operator.covariances([]).shape == (0, 0)


def _map(axis: AxisOperator, way: str, stack: np.ndarray) -> np.ndarray:
    found = getattr(axis, way)(stack)
    assert isinstance(found, np.ndarray)
    return found


def _is_exact_zero(answer: object) -> None:
    assert isinstance(answer, vc.Answer)
    assert (answer.value, answer.low, answer.high, answer.stddev) == (0, 0, 0, 0)


@pytest.mark.parametrize("model", [vc.KernelPCA(), vc.MaxEntropy()])
@pytest.mark.parametrize("total", [None, int(COUNTS.sum())])
def test_a_model_of_past_answers_counts_nobody_as_exactly_zero(model: object, total: int | None) -> None:
    assert isinstance(model, vc.KernelPCA | vc.MaxEntropy)
    asked = vc.Workload.random_ranges(SCHEMA, 40, seed=1)
    past = _releases("identity")["plain"].answer(asked)
    fitted = model.fit(vc.History(SCHEMA, asked, past.value, past.stddev**2), total=total)
    for workload in ([*NOBODY, "TRUE"], NOBODY[:1]):
        answers = fitted.answer(vc.Workload.from_sql(SCHEMA, list(workload)))
        for row in range(len(workload) - (len(workload) > 1)):
            _is_exact_zero(answers[row])


def test_a_protected_table_refuses_to_charge_for_nobody(tmp_path: object) -> None:
    ledger = vc.Ledger(f"sqlite:///{tmp_path}/budget.db")
    ledger.create("people", 1)
    table = vc.protect(vc.Cube(SCHEMA, COUNTS), ledger=ledger, dataset="people").where("age > 200")
    for ask in (
        lambda: table.noisy_count(epsilon=0.1),
        lambda: table.noisy_sum("age", epsilon=0.1),
        lambda: table.noisy_mean("age", epsilon=0.1),
        lambda: table.noisy_marginal("job", epsilon=0.1),
        lambda: table.noisy_max("age", epsilon=0.1),
        lambda: table.noisy_quantile("age", epsilon=0.1),
    ):
        with pytest.raises(VeilcubeError):
            ask()
    assert ledger.budget("people").spent == 0
