"""Which plan to carry out among those that were compared, at a promise or at the epsilon that an error needs."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from math import inf, isfinite

from veilcube.errors import CapacityError, PlanError, PrivacyError, QueryError, VeilcubeError
from veilcube.laws import Noise
from veilcube.planner.comparison import Candidate, reason_for
from veilcube.planner.design import AnswerNoise, smallest_epsilon
from veilcube.planner.planned import Plan
from veilcube.privacy import LARGEST_SCALE, Promise, rho_for


def promise_at(epsilon: Fraction, delta: Fraction) -> Promise:
    """Return the promise of an epsilon, with the rho of its delta if there is one."""
    return Promise(epsilon, delta, rho_for(epsilon, delta)) if delta else Promise(epsilon)


def best_of(plans: Sequence[Plan], target: tuple[float, float] | None) -> Plan:
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
        promise = promise_at(reached, promise.delta)
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


def answering(plans: Sequence[Plan], *, has_cube: bool) -> list[Plan]:
    """Leave out plans that cannot be carried out or cannot answer the workload, and refuse if none is left.

    Their noise cannot be drawn, or their counts do not fit in memory, unless these were made before (``has_cube``).
    """
    able: list[Plan] = []
    refusals: list[VeilcubeError] = []
    for option in plans:
        try:
            if not has_cube:
                option.require_memory()
            if isfinite(option.expected_error):
                option.require_column()
                able.append(option)
        except (QueryError, PrivacyError, PlanError, CapacityError) as problem:
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
        return replace(best, promise=promise_at(epsilon, best.delta)).noise

    answers = AnswerNoise.of(best.operator, best.workload)
    return smallest_epsilon(answers, noise_at, error, confidence, least=least)
