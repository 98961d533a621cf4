"""``refine``: the best estimate of answers that are known to obey facts (Ying, Wu and Wang 2013, Theorem 3, any noise).

With noisy answers X of covariance S and facts B'μ = c, X + S B (B'S B)⁻¹ (c - B'X) is unbiased, obeys the facts, and no
linear unbiased estimate has a smaller variance in any coordinate.
"""

from collections.abc import Sequence
from typing import cast, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilcube.analyst.refine.answers import (
    Nearest,
    NoisyAnswers,
    Refined,
    Unrefined,
    Values,
    half_widths,
    impose_equalities,
    impose_inequalities,
    independent_rows,
    judge_answers,
    nearest_integers,
    reach_own,
    read_answers,
)
from veilcube.analyst.refine.facts import (
    Constraints,
    FactSource,
    FactSystem,
    FactTest,
    KnownCounts,
    ReleaseConstraints,
    contradicting_facts,
    implied_ranges,
    read_facts,
)
from veilcube.analyst.refine.release import RefinedRelease
from veilcube.analyst.refine.whole import refine_release
from veilcube.analyst.release import Release
from veilcube.errors import QueryError
from veilcube.query import read_confidence
from veilcube.system import Floats, read_flag


@overload
def refine(
    values: Release,
    constraints: ReleaseConstraints | None = None,
    *,
    B: KnownCounts | None = None,  # noqa: N803
    c: ArrayLike | None = None,
    counts: bool | None = None,
    source: FactSource = "unstated",
    kept_rows: bool = False,
) -> RefinedRelease: ...


@overload
def refine(
    values: Values,
    constraints: Constraints | None = None,
    *,
    B: ArrayLike | None = None,  # noqa: N803
    c: ArrayLike | None = None,
    covariance: ArrayLike | None = None,
    confidence: float = 0.95,
    names: Sequence[str] | None = None,
    counts: bool | None = None,
    integers: bool = False,
    source: FactSource = "unstated",
) -> Refined: ...


def refine(
    values: Values | Release,
    constraints: Constraints | ReleaseConstraints | None = None,
    *,
    B: ArrayLike | KnownCounts | None = None,  # noqa: N803 - the paper's name, part of the public contract
    c: ArrayLike | None = None,
    covariance: ArrayLike | None = None,
    confidence: float = 0.95,
    names: Sequence[str] | None = None,
    counts: bool | None = None,
    integers: bool = False,
    source: FactSource = "unstated",
    kept_rows: bool = False,
) -> Refined | RefinedRelease:
    """Return the answers moved as little as their noise calls for, so that they obey every fact.

    ``values`` are numbers, answers, or a mapping from names to either; unnamed ones are called q1, q2, and so on. Facts
    are sentences over the names, or ``B`` (answers, facts) and ``c`` with B'μ = c. ``covariance`` is a variance, a
    vector of variances or a matrix; without it the answers' own ``stddev`` count, as if their noises were independent,
    and plain numbers are taken as equally noisy. Variance 0 means exact. Equalities have a closed form and exact
    variances; the intervals take independent noises as Laplace, others as normal. Inequalities move the values to the
    nearest ones that obey them; the intervals keep their coverage, reach around old and new value, and lose what the
    facts rule out. ``counts`` refuses facts that no answers >= 0 obey; by default sentences are checked so, matrices
    not. ``integers`` moves the values on to near whole numbers that obey the facts. ``source`` says where unmarked
    facts are known from. Answers that were refined before keep their facts and start from the values before those.

    A release is refined whole: facts are sentences over ``total`` and ``count(condition)``, mappings from conditions to
    counts, or ``B`` (a workload, or the attributes of a marginal) and ``c`` (its known counts). A release with a cap
    per person takes a total only with ``kept_rows``, which says that it is of the rows that were counted.

    ``fact_test`` of what is returned tells whether the facts fit the noise; a warning names those that are 4 standard
    errors off.

    >>> refined = refine({"A": 31.5, "B": 52.25}, "A + B = 80", covariance=[2.0, 2.0])
    >>> refined.value.tolist(), refined.stddev.tolist()
    ([29.625, 50.375], [1.0, 1.0])
    """
    confidence, integers = read_confidence(confidence), read_flag(integers, "integers")
    counts = None if counts is None else read_flag(counts, "counts")
    if isinstance(values, Release):
        if covariance is not None or names is not None or integers:
            raise QueryError(
                "a release brings its own noise and names, and whole cells are not offered; leave those out"
            )
        known = cast("KnownCounts | None", B)
        whole = refine_release(
            values, constraints, known, c, source=source, counts=counts is not False, kept_rows=kept_rows
        )
        whole.fact_test.warn()
        return whole
    if read_flag(kept_rows, "kept_rows"):
        raise QueryError("kept_rows is about releases with a cap per person; leave it out")
    noisy = read_answers(values, covariance, names)
    system = read_facts(
        noisy.names, cast("Constraints | None", constraints), cast("ArrayLike | None", B), c, source=source
    )
    if noisy.known is not None:
        system = noisy.known.join(system)
    is_new = _check_facts(system, constraints is not None if counts is None else counts)
    used = system.take(is_new)
    moved, nearest = _nearest(noisy, used)
    found = judge_answers(noisy, used, moved, nearest)
    value = nearest.value
    if integers:
        value = nearest_integers(value, np.sqrt((noisy.factor**2).sum(axis=1)), used)
    refined = _report(noisy, moved, value, system, is_new, confidence, found)
    if found is not None:
        found.warn()
    return refined


def _nearest(noisy: NoisyAnswers, used: FactSystem) -> tuple[Nearest, Nearest]:
    """Return the answers under the equalities with their covariance, and the nearest that obey the inequalities too."""
    equal = used.take(used.is_equality)
    moved = impose_equalities(noisy.value, noisy.factor, equal.weights, equal.constants)
    _check_reachable(equal, moved)
    bounded = used.take(~used.is_equality)
    nearest = impose_inequalities(moved.value, moved.factor, bounded.weights, bounded.constants, noisy.value)
    _check_reachable(bounded, nearest)
    return moved, nearest


def _check_facts(system: FactSystem, are_counts: bool) -> NDArray[np.bool_]:
    """Return which facts say something new, or refuse facts that contradict or nearly repeat each other."""
    equalities = np.flatnonzero(system.is_equality)
    constants = system.constants[equalities]
    found = independent_rows(system.weights[equalities], constants, np.abs(constants))
    if found.contradiction:
        _refuse_contradiction(system, equalities[list(found.contradiction)].tolist())
    if found.near_repeat:
        sentences = system.quote(equalities[list(found.near_repeat)].tolist())
        raise QueryError(f"the constraints {sentences} are the same up to rounding; keep one, or write exact numbers")
    if len(equalities) < len(system):
        _refuse_contradiction(system, contradicting_facts(system, nonnegative=False))
    if are_counts:
        impossible = contradicting_facts(system, nonnegative=True)
        if impossible:
            raise QueryError(
                f"no counts obey {system.quote(impossible)}, because counts are never negative; "
                "correct the constraint, or pass counts=False if these answers are not counts"
            )
    is_new = ~system.is_equality
    is_new[is_new] = ~found.spans(system.weights[is_new])
    is_new[equalities[list(found.kept)]] = True
    return np.asarray(is_new)


def _refuse_contradiction(system: FactSystem, facts: Sequence[int]) -> None:
    if len({system.facts[index].sentence for index in facts}) == 1:
        raise QueryError(f"the constraint {system.quote(facts)} can never hold; correct it or leave it out")
    if facts:
        raise QueryError(
            f"the constraints {system.quote(facts)} contradict each other; correct or leave out one of them"
        )


def _check_reachable(system: FactSystem, nearest: Nearest) -> None:
    if nearest.unreachable:
        raise QueryError(
            f"the answers cannot be made to obey {system.quote(nearest.unreachable)}, because their covariance says "
            "that they are exact there; correct the constraint or give these answers a variance"
        )


def _report(
    noisy: NoisyAnswers,
    moved: Nearest,
    value: Floats,
    system: FactSystem,
    is_new: NDArray[np.bool_],
    confidence: float,
    found: FactTest | None,
) -> Refined:
    used, redundant = system.take(is_new), system.take(~is_new)
    before = (noisy.factor**2).sum(axis=1)
    after = (moved.factor**2).sum(axis=1)
    # A variance that the facts remove leaves rounding of the order of the square of the machine's precision.
    after[after <= 1e-26 * before] = 0.0
    unknown = 1.0 if noisy.is_noise_known else np.nan
    stddev = np.sqrt(after) * unknown
    width = half_widths(noisy.factor, moved.factor, confidence) * stddev
    low, high = np.minimum(moved.value - width, value), np.maximum(moved.value + width, value)
    low, high = reach_own(noisy, moved, low, high, confidence)
    if not used.is_equality.all():
        least, greatest = implied_ranges(used)
        # The truth lies within the ranges, so cutting loses no coverage. Reaching as far around the moved value as
        # around the answer can only add some: an answer far outside its range would be left with a single point.
        low = np.clip(np.minimum(low, value - width), least, greatest)
        high = np.clip(np.maximum(high, value + width), least, greatest)
    return Refined(
        value,
        low,
        high,
        stddev,
        confidence,
        _statement(noisy.privacy, system),
        {"answer": noisy.names},
        names=noisy.names,
        covariance=moved.factor @ moved.factor.T * unknown,
        variance_ratio=np.divide(after, before, out=np.ones_like(after), where=before > 0),
        facts=tuple(dict.fromkeys(used.facts)),
        redundant=tuple(dict.fromkeys(redundant.facts)),
        unrefined=Unrefined(noisy.value, noisy.factor, noisy.is_noise_known, noisy.privacy, system),
        fact_test=found,
    )


def _statement(privacy: str, system: FactSystem) -> str:
    """Return the privacy statement of the answers, with a warning for each fact that was read off the table."""
    exact = [index for index, fact in enumerate(system.facts) if fact.source == "exact private statistic"]
    if not exact:
        return privacy
    warning = f"not covered by any epsilon: {system.quote(exact)}, read off the private table without noise"
    return f"{privacy}; {warning}" if privacy else warning
