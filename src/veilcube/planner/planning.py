"""Plans: what will be measured, with how much noise, and how wrong the answers will be, before any budget is spent."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import inf, isfinite, prod, sqrt
from pathlib import Path

import numpy as np

from veilcube.errors import PlanError, PrivacyError, QueryError, VeilcubeError
from veilcube.laws import Noise
from veilcube.operators import Operator
from veilcube.planner.candidates import candidates_for, fitting_strategy, named_strategy
from veilcube.planner.comparison import Candidate, reason_for
from veilcube.planner.design import (
    FAMILIES,
    LARGEST_PLANNED_EPSILON,
    AnswerNoise,
    Design,
    Family,
    GaussianSpending,
    LaplaceSpending,
    Parts,
    Spending,
    Strategy,
    default_workload,
    read_target,
    smallest_epsilon,
)
from veilcube.planner.showing import ShownPlan
from veilcube.privacy import (
    LARGEST_COLUMN,
    LARGEST_SCALE,
    EpsilonLike,
    Event,
    Neighbours,
    PrivacyUnit,
    Promise,
    read_delta,
    rho_for,
    unit_sensitivity,
    unit_sensitivity_l2_squared,
    write_fraction,
)
from veilcube.query import Workload, read_confidence
from veilcube.record import sensitivity_l2_squared_of, sensitivity_of
from veilcube.schema import Schema
from veilcube.system import Floats, read_kind

DEFAULT_CONFIDENCE = 0.95
# What the noise of all measurements may add up to, in its mean: half of what is left beside the largest table.
LARGEST_NOISE = 2**60


class _DefaultEpsilon(float):
    """The epsilon of a plan for which none was named: a number like any other, but known to be nobody's wish."""


DEFAULT_EPSILON = _DefaultEpsilon(1.0)


@dataclass(frozen=True, eq=False)
class Plan(ShownPlan):
    """What to measure, with how much noise, and the error of its least-squares answers.

    It is exact for strategies that measure once. For a staged tree it is that of the same tree when nothing stops.
    ``reason`` says which noise was taken and why; nothing where epsilon is promised alone.
    """

    schema: Schema
    strategy: Strategy
    operator: Operator
    promise: Promise
    neighbours: Neighbours
    unit: PrivacyUnit
    workload: Workload = field(repr=False)
    candidates: tuple[Candidate, ...] = ()
    searched: str = field(default="", repr=False)
    family: Family = "laplace"
    reason: str = field(default="", repr=False)

    @property
    def epsilon(self) -> Fraction:
        """The epsilon that is promised: alone, or with ``delta``."""
        return self.promise.epsilon

    @property
    def delta(self) -> Fraction:
        """The delta that is promised with epsilon; 0 if epsilon is promised alone."""
        return self.promise.delta

    @property
    def rho(self) -> Fraction | None:
        """The rho of zero-concentrated differential privacy that is promised; None if epsilon is promised alone."""
        return self.promise.rho

    @cached_property
    def sensitivity(self) -> int:
        """The largest L1 change of the measurements when one unit changes."""
        return sensitivity_of(self.operator, self.unit, self.neighbours)

    @cached_property
    def sensitivity_l2_squared(self) -> int:
        """The largest squared L2 change of the measurements when one unit changes."""
        return sensitivity_l2_squared_of(self.operator, self.unit, self.neighbours)

    @property
    def spending(self) -> Spending:
        """The whole budget, for the operator's measurements."""
        if self.family == "laplace":
            return LaplaceSpending(self.promise.pure_epsilon, self.sensitivity)
        return GaussianSpending(self._concentrated, self.sensitivity_l2_squared)

    @property
    def step_spending(self) -> Spending:
        """The whole budget, for the counts of disjoint sets of cells."""
        if self.family == "laplace":
            return LaplaceSpending(self.promise.pure_epsilon, self.step_sensitivity)
        squared = unit_sensitivity_l2_squared(1, 2, self.unit, self.neighbours)
        return GaussianSpending(self._concentrated, squared)

    @property
    def _concentrated(self) -> Fraction:
        if self.promise.rho is None:
            raise PlanError("Gaussian noise keeps no promise of epsilon alone; plan with delta= or rho=")
        return self.promise.rho

    @cached_property
    def noise(self) -> Noise:
        """The law of the noise on every measurement."""
        return self.spending.law()

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
        if sum(prod(operator.measurement_shape) * noise.size for operator, noise in self.parts) > LARGEST_NOISE:
            raise PlanError(
                "the noise of all measurements could leave 64 bits; use a larger epsilon or rho, or fewer cells"
            )

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
            **self._noise_to_dict(),
            "neighbours": str(self.neighbours),
            "unit": self.unit.to_dict(),
            "expected_error": self.expected_error,
            "candidates": [
                {"strategy": candidate.strategy.to_dict(), "expected_error": candidate.expected_error}
                | ({} if self.promise.is_pure else {"noise": candidate.family})
                for candidate in self.candidates
            ],
            "searched": self.searched,
            **({} if self.promise.is_pure else {"reason": self.reason}),
        }

    def _noise_to_dict(self) -> dict[str, object]:
        """Return the noise as plain data: of a pure promise its scale, which is all there is to know."""
        if self.promise.rho is None:
            return {"scale": write_fraction(self.noise.parameter)}
        promised = {"delta": write_fraction(self.delta), "rho": write_fraction(self.promise.rho)}
        return {**promised, "noise": self.noise.to_json()}

    def __repr__(self) -> str:
        return (
            f"Plan({self.strategy.name}, {self._promise_in_words}, {self.neighbours}, "
            f"expected error {self.expected_error:.4g} per query)"
        )

    @property
    def _promise_in_words(self) -> str:
        return self.promise.words if self.promise.is_pure else f"{self.promise.words}, {self.family} noise"


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
    delta: EpsilonLike | None = None,
    rho: EpsilonLike | None = None,
) -> Plan:
    """Choose what to measure, from public facts only: no data is read and no budget is spent.

    Epsilon is 1 unless it is named. With ``error`` instead, it is the smallest one at which half the width of an
    answer's interval at ``confidence``, as a root mean square over the workload, is at most the error. A ``delta``
    beside epsilon, or a ``rho`` in its place, allows Gaussian noise: it is compared with Laplace noise at the same
    promise. The default workload is random ranges over all attributes. ``person`` and ``max_rows`` describe the privacy
    unit, as in ``count``.

    >>> from veilcube.schema import Ordinal
    >>> plan(Schema([Ordinal("age", 17, 90)]), epsilon=0.1, strategy="identity")
    Plan(identity, epsilon 0.1, add-remove, expected error 87.62 per query)
    """
    schema = Schema.read(schema)
    target = None if error is None else read_target(error, confidence)
    read_confidence(confidence)
    promise, relation = _read_promise(epsilon, delta, rho, target is not None), Neighbours.read(neighbours)
    return make_plan(schema, promise, strategy, workload, relation, PrivacyUnit.read(person, max_rows), target)


def make_plan(
    schema: Schema,
    promise: Promise,
    strategy: Strategy | str,
    workload: Workload | None,
    neighbours: Neighbours,
    unit: PrivacyUnit,
    target: tuple[float, float] | None = None,
) -> Plan:
    """Choose what to measure for a promise; with a target, an error and its confidence, at the epsilon it needs."""
    wish = fitting_strategy(named_strategy(strategy), schema)
    natural = default_workload if wish is None else wish.natural_workload
    questions = natural(schema) if workload is None else workload
    if not isinstance(questions, Workload):
        raise PlanError("a workload is a veilcube.Workload; make one with veilcube.Workload(schema, [...])")
    if questions.schema != schema:
        raise PlanError("the workload is for another schema; build it with the schema that is planned for")
    try:
        plans = [
            Plan(schema, option, option.operator(schema), promise, neighbours, unit, questions, family=family)
            for family in (FAMILIES[:1] if promise.is_pure else FAMILIES)
            for option in candidates_for(wish, schema, questions, family, is_given=workload is not None)
        ]
        return _best_of(_answering(plans), target)
    except MemoryError as problem:
        raise PlanError(
            f"a domain of {schema.cells:,} cells is too large to plan in the memory of this machine; use wider bins or "
            "fewer attributes"
        ) from problem


def _read_promise(
    epsilon: EpsilonLike, delta: EpsilonLike | None, rho: EpsilonLike | None, has_target: bool
) -> Promise:
    """Return what is promised; with a target, that of the largest epsilon that can be planned."""
    if has_target:
        if epsilon is not DEFAULT_EPSILON or rho is not None:
            raise PlanError("epsilon and error cannot both be given, since one follows from the other; leave one out")
        return _promise_at(Fraction(LARGEST_PLANNED_EPSILON), Fraction(0) if delta is None else read_delta(delta))
    is_named = epsilon is not DEFAULT_EPSILON or (delta is None and rho is None)
    return Promise.read(epsilon if is_named else None, delta, rho)


def _promise_at(epsilon: Fraction, delta: Fraction) -> Promise:
    return Promise(epsilon, delta, rho_for(epsilon, delta)) if delta else Promise(epsilon)


def _best_of(plans: Sequence[Plan], target: tuple[float, float] | None) -> Plan:
    """Choose a plan, at the epsilon that a target needs if there is one, and note what it was chosen among."""
    best = choose(plans) if target is None else _cheapest(plans, *target)
    plans = _drawable(plans, best.promise)
    considered = tuple(Candidate(option.strategy, option.expected_error, option.family) for option in plans)
    rivals = [option for option in plans if option.family != best.family]
    reason = reason_for(best, choose(rivals) if rivals else None)
    notes = [str(option.strategy.searched) for option in plans]
    return replace(best, candidates=considered, searched=next(filter(None, notes), ""), reason=reason)


def _drawable(plans: Sequence[Plan], promise: Promise) -> list[Plan]:
    """Return the plans for another promise, without those whose noise would be too large to be drawn."""
    found = []
    for option in (replace(one, promise=promise) for one in plans):
        with suppress(PrivacyError):
            _ = option.expected_error
            found.append(option)
    return found


def _cheapest(plans: Sequence[Plan], error: float, confidence: float) -> Plan:
    """Return the plan that reaches an error with the least epsilon.

    Which strategy is best depends on epsilon, so it is chosen anew at each epsilon that was found, from the largest one
    that can be planned down, until no smaller one is found.
    """
    promise, best = plans[0].promise, None
    while True:
        option = choose(_drawable(plans, promise))
        if best is not None and option.operator is best.operator and option.family == best.family:
            return best
        reached = _epsilon_reaching(option, plans, error, confidence)
        if best is not None and reached >= promise.epsilon:
            return best
        promise = _promise_at(reached, promise.delta)
        best = replace(option, promise=promise)


def choose(plans: Sequence[Plan]) -> Plan:
    """Return the plan to carry out among those that were compared.

    That is the one with the least expected error of least squares, unless a staged tree comes near: its error is
    planned as if nothing could be refunded and nothing learned from the shape of the data, and turns out lower.
    """
    better = [option for option in plans if option.design.gain > 1]
    others = [option for option in plans if option.design.gain <= 1]
    for option in sorted(better, key=lambda option: (_is_unsuited(option), option.expected_error)):
        general = [other.expected_error for other in others if not other.strategy.is_fitted]
        if option.expected_error <= option.design.gain * min(general, default=inf):
            return option
    return min(others or better, key=lambda option: option.expected_error)


def _is_unsuited(option: Plan) -> bool:
    """Whether the other family of noise is to be taken, though by the plan it may err more."""
    return option.design.suited not in (None, option.family) and not option.promise.is_in_rho


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
        # Gaussian noise comes last: a promise of rho is refused in rho.
        raise refusals[-1] if plans[0].promise.is_in_rho else refusals[0]
    raise PlanError(f"the strategy cannot answer the workload: {refusals[0]}") from refusals[0]


def _epsilon_reaching(best: Plan, able: Sequence[Plan], error: float, confidence: float) -> Fraction:
    least = Fraction(max(option.sensitivity for option in able)) / LARGEST_SCALE

    def noise_at(epsilon: Fraction) -> Noise:
        return replace(best, promise=_promise_at(epsilon, best.delta)).noise

    answers = AnswerNoise.of(best.operator, best.workload)
    return smallest_epsilon(answers, noise_at, error, confidence, least=least)
