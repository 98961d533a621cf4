"""Whether a release or an answer is refused depends on public facts: never on how many rows were counted."""

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import veilcube as vc
from veilcube.curator.cube import Tally
from veilcube.curator.protected.table import ProtectedTable
from veilcube.errors import PlanError, TableError, VeilcubeError
from veilcube.planner import Plan
from veilcube.planner.design.weights import within_column
from veilcube.privacy import PrivacyUnit
from veilcube.privacy.unit import LARGEST_COLUMN, LARGEST_TABLE

JOBS = {f"g{size}": [f"{size}_{i}" for i in range(size)] for size in (2, 3, 5, 7)}
SCHEMAS = {
    "one": vc.Schema([vc.Ordinal("a", 0, 255)]),
    "two": vc.Schema([vc.Ordinal("a", 0, 31), vc.Ordinal("b", 0, 31)]),
    "eight": vc.Schema([vc.Ordinal(f"a{i}", 0, 3) for i in range(8)]),
    "jobs": vc.Schema([vc.Nominal("job", hierarchy=JOBS), vc.Ordinal("a", 0, 31)]),
}
STRATEGIES = {
    "identity": vc.Identity(),
    "tree": vc.Tree(),
    "binary": vc.Tree(refine=False, branching=2),
    "refined": vc.Tree(refine=True),
    "wavelet": vc.Wavelet(),
    "all wavelet": vc.Wavelet(flat=[]),
    "marginals": vc.Marginals(k=1),
    "heavy marginals": vc.Marginals(k=1, multipliers=(2**26,) * 2),
    "adaptive": vc.Adaptive(),
    "kd": vc.KdTree(),
    "grouped tables": vc.GroupedTables(),
    "auto": "auto",
}


def _tables(schema: vc.Schema) -> list[np.ndarray]:
    """The smallest table, and largest ones: all rows in the first cell, in the last, or spread."""
    empty = np.zeros(schema.shape, dtype=np.int64)
    first, last = empty.copy(), empty.copy()
    first.flat[0] = last.flat[-1] = LARGEST_TABLE
    return [empty, first, last, np.full(schema.shape, LARGEST_TABLE // schema.cells)]


def _outcome(action: Callable[[], object]) -> str:
    try:
        action()
    except VeilcubeError as refusal:
        return f"{type(refusal).__name__}: {refusal}"
    return "answered"


def _outcomes(schema: vc.Schema, plan: Plan) -> set[str]:
    cubes = [vc.Cube(schema, counts) for counts in _tables(schema)]
    return {_outcome(partial(vc.release, cube, plan=plan)) for cube in cubes}


@pytest.mark.parametrize("epsilon", ["1/100", 100])
@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=list(SCHEMAS))
@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=list(STRATEGIES))
def test_no_release_is_refused_for_its_counts(schema: vc.Schema, strategy: vc.Identity | str, epsilon: object) -> None:
    try:
        plan = vc.plan(schema, epsilon, strategy)
    except VeilcubeError:
        return  # from public facts, before any table is there
    assert _outcomes(schema, plan) == {"answered"}


def test_the_largest_table_is_answered_without_a_wrap_around() -> None:
    for strategy in (vc.Identity(), vc.Tree(refine=False, branching=2), vc.Wavelet(flat=[]), vc.Marginals(k=1)):
        for counts in _tables(SCHEMAS["eight"]):
            found = vc.release(vc.Cube(SCHEMAS["eight"], counts), 100, strategy).count(a0=(0, 1))
            assert abs(found.value - counts[:2].sum()) < 20 * found.stddev + 1


def test_eight_trees_do_not_tell_how_many_rows_there_are() -> None:
    """A table of 115,018 rows was released and one of 115,019 refused (issue 17, item 4)."""
    schema = SCHEMAS["eight"]
    plan = vc.plan(schema, 100, vc.Tree(refine=False, branching=2))
    assert plan.operator.sensitivity("add-remove") <= LARGEST_COLUMN
    for rows in (115_018, 115_019):
        counts = np.zeros(schema.shape, dtype=np.int64)
        counts.flat[0] = rows
        vc.release(vc.Cube(schema, counts), plan=plan)


def test_plans_are_refused_where_the_largest_table_would_not_fit() -> None:
    with pytest.raises(PlanError, match="could leave 64 bits under this strategy"):
        vc.plan(SCHEMAS["two"], 100, vc.Marginals(k=1, multipliers=(2**26, 1)))
    many = vc.Schema([vc.Ordinal(f"a{i}", 0, 1) for i in range(4)])
    vast = vc.Schema([vc.Ordinal("a", 0, 2**22 - 1)])
    assert vc.plan(many, "1/1000000000", "identity").noise.scale == 10**9
    with pytest.raises(PlanError, match="noise of all measurements"):
        vc.plan(vast, Fraction(1, 2**39), "identity").require_range()


def test_a_ready_plan_is_held_to_the_same_bound() -> None:
    schema = SCHEMAS["two"]
    wide = vc.Marginals(k=1, multipliers=(2**26, 1))
    fair = vc.plan(schema, 100, vc.Marginals(k=1))
    forged = Plan(schema, wide, wide.operator(schema), fair.promise, fair.neighbours, fair.unit, fair.workload)
    outcomes = _outcomes(schema, forged)
    assert len(outcomes) == 1
    assert "could leave 64 bits" in outcomes.pop()


@pytest.mark.parametrize("seed", range(40))
def test_capped_multipliers_stay_below_the_bound_and_keep_their_proportions(seed: int) -> None:
    random = np.random.default_rng(seed)
    axes = [tuple(random.integers(1, 49, random.integers(1, 5)).tolist()) for _ in range(random.integers(1, 9))]
    largest = int(2 ** random.uniform(16, 30))
    fitted = within_column(axes, largest)
    assert np.prod([float(sum(own)) for own in fitted]) <= largest
    for before, after in zip(axes, fitted, strict=True):
        assert len(before) == len(after)
        assert min(after) >= 1
        assert all((a <= b) for a, b in zip(after, before, strict=True))
    assert within_column(axes, 2**200) == tuple(axes)


def test_a_table_above_the_bound_is_refused_in_one_sentence() -> None:
    schema = SCHEMAS["one"]
    counts = np.zeros(256, dtype=np.int64)
    vc.Cube(schema, np.append(counts[:-1], LARGEST_TABLE))
    for refused in (np.append(counts[:-1], LARGEST_TABLE + 1), np.full(256, 2**62), np.full(256, 2**63, np.uint64)):
        with pytest.raises(TableError, match=r"at most 2\*\*36 rows"):
            vc.Cube(schema, refused)
    with pytest.raises(TableError, match=r"at most 2\*\*36 rows"):
        Tally(schema, [(0,)], np.append(counts[:-1], LARGEST_TABLE + 1), PrivacyUnit.row())


QUESTIONS: dict[str, Callable[[ProtectedTable], object]] = {
    "count": lambda t: t.noisy_count(epsilon=1, fresh=True),
    "sum": lambda t: t.noisy_sum("a", epsilon=1),
    "moment": lambda t: t.noisy_moment({"a": 4}, epsilon=1),
    "mean": lambda t: t.noisy_mean("a", epsilon=1),
    "max": lambda t: t.noisy_max("a", epsilon=1, interval=0.5),
    "rank": lambda t: t.noisy_quantile("a", rank=10**6, epsilon=1, interval=0.5),
    "quantile": lambda t: t.noisy_quantile("a", 0.123456789012345, epsilon=1),
    "split": lambda t: t.noisy_quantiles("a", [0.1, 0.5], epsilon=1, method="split"),
    "tree": lambda t: t.noisy_quantiles("a", [0.1, 0.5], epsilon=1, method="tree"),
    "refined": lambda t: t.noisy_quantiles("a", [0.1, 0.5], epsilon=1, method="staged"),
    "quantiles": lambda t: t.noisy_quantiles("a", [0.1, 0.5], epsilon=1),
    "distributive": lambda t: t.distributive(vc.DistributiveQuery.count(), "a", epsilon=1),
    "chosen": lambda t: t.distributive(vc.DistributiveQuery.max(range(256)), "a", epsilon=1),
}


@pytest.mark.parametrize("ask", QUESTIONS.values(), ids=list(QUESTIONS))
def test_no_question_is_refused_for_its_counts(ask: Callable[[ProtectedTable], object], tmp_path: Path) -> None:
    schema = SCHEMAS["one"]
    for number, counts in enumerate(_tables(schema)):
        cube, ledger = vc.Cube(schema, counts), f"sqlite:///{tmp_path}/{number}.db"
        assert _outcome(lambda cube=cube, ledger=ledger: ask(vc.protect(cube, None, ledger, "d", 9))) == "answered"
