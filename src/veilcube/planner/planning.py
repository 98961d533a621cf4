"""Plans: what will be measured, with how much noise, and how wrong the answers will be, before any budget is spent."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import inf, isfinite, prod, sqrt
from pathlib import Path

import numpy as np

from veilcube.errors import PlanError, PrivacyError, QueryError, VeilcubeError
from veilcube.laws import DiscreteLaplace
from veilcube.operators import Operator
from veilcube.planner.candidates import candidates_for, fitting_strategy, named_strategy
from veilcube.planner.design import (
    LARGEST_PLANNED_EPSILON,
    AnswerNoise,
    Design,
    Parts,
    Strategy,
    default_workload,
    read_target,
    smallest_epsilon,
)
from veilcube.privacy import (
    LARGEST_COLUMN,
    LARGEST_SCALE,
    EpsilonLike,
    Event,
    Neighbours,
    PrivacyUnit,
    read_epsilon,
    scale_for,
    show_fraction,
    unit_sensitivity,
    write_fraction,
)
from veilcube.query import Workload, read_confidence
from veilcube.record import sensitivity_of
from veilcube.schema import Schema
from veilcube.system import Floats, read_kind

DEFAULT_CONFIDENCE = 0.95
# What the noise of all measurements may add up to, in its mean: half of what is left beside the largest table.
LARGEST_NOISE = 2**60


class _DefaultEpsilon(float):
    """The epsilon of a plan for which none was named: a number like any other, but known to be nobody's wish."""


DEFAULT_EPSILON = _DefaultEpsilon(1.0)


@dataclass(frozen=True)
class Candidate:
    """A strategy that was considered, with its expected error on the workload."""

    strategy: Strategy
    expected_error: float

    @property
    def summary(self) -> str:
        """What is measured, in few words."""
        return self.strategy.summary


@dataclass(frozen=True, eq=False)
class Plan:
    """What to measure, with how much noise, and the error of its least-squares answers.

    It is exact for strategies that measure once. For a staged tree it is that of the same tree when nothing stops.
    """

    schema: Schema
    strategy: Strategy
    operator: Operator
    epsilon: Fraction
    neighbours: Neighbours
    unit: PrivacyUnit
    workload: Workload = field(repr=False)
    candidates: tuple[Candidate, ...] = ()
    searched: str = field(default="", repr=False)

    @cached_property
    def sensitivity(self) -> int:
        """The largest L1 change of the measurements when one unit changes."""
        return sensitivity_of(self.operator, self.unit, self.neighbours)

    @cached_property
    def noise(self) -> DiscreteLaplace:
        """The law of the noise on every measurement."""
        return DiscreteLaplace(scale_for(self.epsilon, self.sensitivity))

    @cached_property
    def design(self) -> Design:
        """What is measured, at once or in steps."""
        return self.strategy.design(self.schema)

    @cached_property
    def step_sensitivity(self) -> int:
        """The largest L1 change of the counts of disjoint nodes when one unit changes."""
        return unit_sensitivity(1, 2, self.unit, self.neighbours)

    @property
    def event(self) -> Event:
        """What carrying out the plan does to the data."""
        return self.design.event(self)

    @property
    def parts(self) -> Parts:
        """What may be published at most: every measurement with the law of its noise."""
        return self.design.measured(self)

    def require_column(self) -> None:
        """Refuse, from public facts alone, measurements of the largest table that could leave 64 bits."""
        if sum(operator.sensitivity("add-remove") for operator, _ in self.parts) > LARGEST_COLUMN:
            raise PlanError(
                "the measurements of a large table could leave 64 bits under this strategy; use fewer levels or "
                "simpler weights, keep more attributes flat, or use strategy='identity'"
            )

    def require_range(self) -> None:
        """Refuse, from public facts alone, what could leave 64 bits, its noise included: before it is charged."""
        self.require_column()
        if sum(prod(operator.measurement_shape) * noise.scale for operator, noise in self.parts) > LARGEST_NOISE:
            raise PlanError("the noise of all measurements could leave 64 bits; use a larger epsilon or fewer cells")

    def stddev(self, workload: Workload) -> Floats:
        """Return the exact standard deviation of the least-squares answer to each query."""
        self._require_schema(workload)
        return np.sqrt(self.design.variances(self, workload))

    def half_widths(self, workload: Workload | None = None, confidence: float = DEFAULT_CONFIDENCE) -> Floats:
        """Return half the width of the interval of each least-squares answer, by default over the plan's workload."""
        asked = self.workload if workload is None else workload
        self._require_schema(asked)
        return self.design.half_widths(self, asked, confidence)

    def _require_schema(self, workload: Workload) -> None:
        read_kind(workload, Workload, "a plan predicts the error of a veilcube.Workload")
        if workload.schema != self.schema:
            raise QueryError("the workload is for another schema than the plan; build it with the plan's schema")

    @cached_property
    def expected_error(self) -> float:
        """The root mean squared error of least squares over the workload, exact."""
        return sqrt(self.design.mean_variance(self, self.workload))

    def to_dict(self) -> dict[str, object]:
        """Return the plan as plain data, as it is kept in the release."""
        return {
            "strategy": self.strategy.to_dict(),
            "epsilon": write_fraction(self.epsilon),
            "neighbours": str(self.neighbours),
            "unit": self.unit.to_dict(),
            "scale": write_fraction(self.noise.scale),
            "expected_error": self.expected_error,
            "candidates": [
                {"strategy": candidate.strategy.to_dict(), "expected_error": candidate.expected_error}
                for candidate in self.candidates
            ],
            "searched": self.searched,
        }

    def __repr__(self) -> str:
        return (
            f"Plan({self.strategy.name}, epsilon {show_fraction(self.epsilon)}, {self.neighbours}, "
            f"expected error {self.expected_error:.4g} per query)"
        )


def plan(
    schema: Schema | str | Path,
    epsilon: EpsilonLike = DEFAULT_EPSILON,
    strategy: Strategy | str = "auto",
    workload: Workload | None = None,
    neighbours: str = "add-remove",
    *,
    person: str | None = None,
    max_rows: int | None = None,
    error: float | None = None,
    confidence: float = DEFAULT_CONFIDENCE,
) -> Plan:
    """Choose what to measure, from public facts only: no data is read and no budget is spent.

    Epsilon is 1 unless it is named. With ``error`` instead, it is the smallest one at which half the width of an
    answer's interval at ``confidence``, as a root mean square over the workload, is at most the error. The default
    workload is random ranges over all attributes. ``person`` and ``max_rows`` describe the privacy unit, as in
    ``count``.

    >>> from veilcube.schema import Ordinal
    >>> plan(Schema([Ordinal("age", 17, 90)]), epsilon=0.1, strategy="identity")
    Plan(identity, epsilon 0.1, add-remove, expected error 87.62 per query)
    """
    schema = Schema.read(schema)
    if error is not None and epsilon is not DEFAULT_EPSILON:
        raise PlanError("epsilon and error cannot both be given, since one follows from the other; leave one out")
    target = None if error is None else read_target(error, confidence)
    read_confidence(confidence)
    budget, relation = read_epsilon(epsilon), Neighbours.read(neighbours)
    unit, wish = PrivacyUnit.read(person, max_rows), fitting_strategy(named_strategy(strategy), schema)
    natural = default_workload if wish is None else wish.natural_workload
    questions = natural(schema) if workload is None else workload
    if not isinstance(questions, Workload):
        raise PlanError("a workload is a veilcube.Workload; make one with veilcube.Workload(schema, [...])")
    if questions.schema != schema:
        raise PlanError("the workload is for another schema; build it with the schema that is planned for")
    try:
        options = candidates_for(wish, schema, questions, is_given=workload is not None)
        plans = [Plan(schema, option, option.operator(schema), budget, relation, unit, questions) for option in options]
        return _best_of(_answering(plans), target)
    except MemoryError as problem:
        raise PlanError(
            f"a domain of {schema.cells:,} cells is too large to plan in the memory of this machine; use wider bins or "
            "fewer attributes"
        ) from problem


def _best_of(plans: Sequence[Plan], target: tuple[float, float] | None) -> Plan:
    """Choose a plan, at the epsilon that a target needs if there is one, and note what it was chosen among."""
    best = choose(plans) if target is None else _cheapest(plans, *target)
    plans = [replace(option, epsilon=best.epsilon) for option in plans]
    considered = tuple(Candidate(option.strategy, option.expected_error) for option in plans)
    notes = [str(option.strategy.searched) for option in plans]
    return replace(best, candidates=considered, searched=next(filter(None, notes), ""))


def _cheapest(plans: Sequence[Plan], error: float, confidence: float) -> Plan:
    """Return the plan that reaches an error with the least epsilon.

    Which strategy is best depends on epsilon, so it is chosen anew at each epsilon that was found, from the largest one
    that can be planned down, until no smaller one is found.
    """
    epsilon, best = Fraction(LARGEST_PLANNED_EPSILON), None
    while True:
        option = choose([replace(one, epsilon=epsilon) for one in plans])
        if best is not None and option.operator is best.operator:
            return best
        reached = _epsilon_reaching(option, plans, error, confidence)
        if best is not None and reached >= epsilon:
            return best
        epsilon, best = reached, replace(option, epsilon=reached)


def choose(plans: Sequence[Plan]) -> Plan:
    """Return the plan to carry out among those that were compared.

    That is the one with the least expected error of least squares, unless a staged tree comes near: its error is
    planned as if nothing could be refunded and nothing learned from the shape of the data, and turns out lower.
    """
    better = [option for option in plans if option.design.gain > 1]
    others = [option for option in plans if option.design.gain <= 1]
    for option in better:
        general = [other.expected_error for other in others if not other.strategy.is_fitted]
        if option.expected_error <= option.design.gain * min(general, default=inf):
            return option
    return min(others or better, key=lambda option: option.expected_error)


def _answering(plans: Sequence[Plan]) -> list[Plan]:
    """Leave out plans whose noise cannot be drawn or that cannot answer the workload, and refuse if none is left."""
    able: list[Plan] = []
    refusals: list[VeilcubeError] = []
    for option in plans:
        try:
            if isfinite(option.expected_error):
                option.require_column()
                able.append(option)
        except (QueryError, PrivacyError, PlanError) as problem:
            refusals.append(problem)
    if able:
        return able
    if not isinstance(refusals[0], QueryError):
        raise refusals[0]
    raise PlanError(f"the strategy cannot answer the workload: {refusals[0]}") from refusals[0]


def _epsilon_reaching(best: Plan, able: Sequence[Plan], error: float, confidence: float) -> Fraction:
    least = Fraction(max(option.sensitivity for option in able)) / LARGEST_SCALE
    answers = AnswerNoise.of(best.operator, best.workload)
    return smallest_epsilon(best.sensitivity, answers, error, confidence, least=least)
