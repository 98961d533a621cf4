"""Planning: what will be measured is chosen from public facts, before any data is read or budget spent."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from veilcube.errors import PlanError
from veilcube.planner.candidates import candidates_for
from veilcube.planner.choosing import answering, best_of, promise_at
from veilcube.planner.design import (
    FAMILIES,
    LARGEST_PLANNED_EPSILON,
    default_workload,
    read_target,
)
from veilcube.planner.fitting import fitting_strategy, has_room_for_cube, why_tables
from veilcube.planner.naming import StrategyLike, named_strategy
from veilcube.planner.planned import DEFAULT_CONFIDENCE, Plan
from veilcube.privacy import EpsilonLike, Neighbours, PrivacyUnit, Promise, read_delta
from veilcube.query import Workload, read_confidence
from veilcube.schema import Schema


class _DefaultEpsilon(float):
    """The epsilon of a plan for which none was named: a number like any other, but known to be nobody's wish."""


DEFAULT_EPSILON = _DefaultEpsilon(1.0)


def plan(
    schema: Schema | str | Path,
    epsilon: EpsilonLike = DEFAULT_EPSILON,
    strategy: StrategyLike = "auto",
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
    strategy: StrategyLike,
    workload: Workload | None,
    neighbours: Neighbours,
    unit: PrivacyUnit,
    target: tuple[float, float] | None = None,
    *,
    has_cube: bool = False,
) -> Plan:
    """Choose what to measure for a promise; with a target, an error and its confidence, at the epsilon it needs.

    ``has_cube`` says that the table was counted already, so that nothing depends on whether its cube would fit.
    """
    named = named_strategy(strategy)
    wish = named if has_cube else fitting_strategy(named, schema, is_given=workload is not None)
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
            for option in candidates_for(
                wish, schema, questions, family, is_given=workload is not None, has_cube=has_cube
            )
        ]
        best = best_of(answering(plans, has_cube=has_cube), target)
        is_fallback = named is None and not has_cube and not has_room_for_cube(schema)
        return replace(best, reason=why_tables(schema, best.reason)) if is_fallback else best
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
        return promise_at(Fraction(LARGEST_PLANNED_EPSILON), Fraction(0) if delta is None else read_delta(delta))
    is_named = epsilon is not DEFAULT_EPSILON or (delta is None and rho is None)
    return Promise.read(epsilon if is_named else None, delta, rho)
