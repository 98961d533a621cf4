"""Facts imposed on a release: checked against each other, then met by the cells nearest in the noise's metric."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilcube.analyst.refine.boxes import BoxSums
from veilcube.analyst.refine.covariance import CellMetric, between, variances
from veilcube.analyst.refine.factoring import FactoredFacts, factor_facts
from veilcube.analyst.refine.prices import prices_of_bounds
from veilcube.analyst.refine.release_facts import ReleaseFacts
from veilcube.errors import CapacityError, QueryError
from veilcube.operators.block_sums import BlockSums

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_INEQUALITIES = 2_000
_NO_NOISE = 1e-11
_DETERMINED = 1e-9


@dataclass(frozen=True, eq=False)
class Imposed:
    """Cells under the equalities and, with inequalities, those that obey them too; and what was used.

    ``known`` and ``factored`` are the independent equalities and the factor of their covariance.
    """

    known: BoxSums
    factored: FactoredFacts
    refined_cells: Floats
    moved_cells: Floats | None
    used: ReleaseFacts
    redundant: ReleaseFacts


def impose_facts(covariance: CellMetric, cells: Floats, facts: ReleaseFacts) -> Imposed:
    """Return estimated cells, refined; refuses facts that contradict each other, in the user's words."""
    equal, bounded = np.flatnonzero(facts.is_equality), np.flatnonzero(~facts.is_equality)
    if len(bounded) > MOST_INEQUALITIES:
        raise CapacityError(
            f"a release can be refined with at most {MOST_INEQUALITIES:,} inequalities, not {len(bounded):,}"
        )
    kept, factored = _independent(covariance, facts, equal)
    known = facts.take(kept)
    refined = _impose_equalities(covariance, cells, known, factored)
    moved = None
    if len(bounded):
        slack = _slack(np.maximum(np.abs(cells), np.abs(refined)), facts.take(bounded))
        moved = _impose_inequalities(covariance, refined, known.sums, factored, facts.take(bounded), slack)
    used = np.sort(np.concatenate([kept, bounded]))
    redundant = facts.take(np.setdiff1d(equal, kept))
    return Imposed(known.sums, factored, refined, moved, facts.take(used), redundant)


def _independent(covariance: CellMetric, facts: ReleaseFacts, equal: Integers) -> tuple[Integers, FactoredFacts]:
    """Return the equalities that say something new, in the order of their factored covariance."""
    deviations = _deviations(covariance, facts.sums.take(equal))
    is_empty = deviations == 0
    for row in equal[is_empty].tolist():
        if facts.constants[row] != 0:
            raise QueryError(f"the constraint {facts.quote([row])} can never hold; correct it or leave it out")
    some = equal[~is_empty]
    sums = facts.sums.take(some)

    def build(out: Floats) -> None:
        between(covariance, sums, sums, out)

    found = factor_facts(build, deviations[~is_empty], facts.constants[some])
    if found.contradiction:
        raise QueryError(_contradiction(facts, some[list(found.contradiction)].tolist()))
    if found.near_repeat:
        sentences = facts.quote(some[list(found.near_repeat)].tolist())
        raise QueryError(f"the constraints {sentences} are the same up to rounding; keep one, or write exact numbers")
    return some[found.kept], found


def _contradiction(facts: ReleaseFacts, rows: Sequence[int]) -> str:
    if len({facts.facts[row] for row in rows}) == 1:
        return f"the constraint {facts.quote(rows)} can never hold; correct it or leave it out"
    return f"the constraints {facts.quote(rows)} contradict each other; correct or leave out one of them"


def _deviations(covariance: CellMetric, sums: BoxSums) -> Floats:
    """Return the standard deviation of each sum, zero where its boxes cancel but for rounding."""
    found = np.sqrt(np.maximum(variances(covariance, sums), 0.0))
    if sums.shares is None:
        return found
    of_boxes = np.sqrt(np.maximum(variances(covariance, BoxSums(sums.boxes)), 0.0))
    return np.where(found <= np.sqrt(_NO_NOISE) * (abs(sums.shares) @ of_boxes), 0.0, found)


def _impose_equalities(covariance: CellMetric, cells: Floats, known: ReleaseFacts, factored: FactoredFacts) -> Floats:
    refined = cells
    # The second pass takes away what rounding left of the first.
    for _ in range(2 if len(known) else 0):
        missing = known.constants - known.sums.values(BlockSums(refined), refined)
        refined = refined + covariance.spread(known.sums.spread(factored.solve(missing)))
    return refined


def _impose_inequalities(
    covariance: CellMetric,
    cells: Floats,
    known: BoxSums,
    factored: FactoredFacts,
    bounded: ReleaseFacts,
    slack: Floats,
) -> Floats:
    """Return the nearest cells that obey the bounds too: a program over the bounded sums and their covariance C.

    With G, K and C' the covariances of the equalities, between both, and of the bounded sums, C = C' - K'G^-1 K. Moving
    the sums by C λ moves the cells by S (I λ - B G^-1 K λ), which leaves the equalities as they are. Sums that the
    equalities determine cannot move: they obey their bounds or nothing does.
    """
    excess = bounded.sums.values(BlockSums(cells), cells) - bounded.constants
    if not (excess > slack).any():
        return cells
    with_facts = between(covariance, bounded.sums, known).T
    halves = factored.halve(with_facts)
    remaining = between(covariance, bounded.sums, bounded.sums)
    own = np.diag(remaining).copy()
    remaining -= halves.T @ halves
    is_fixed = np.diag(remaining) <= _DETERMINED * own
    _refuse_unreachable(bounded, np.flatnonzero(is_fixed & (excess > slack)).tolist())
    free = np.flatnonzero(~is_fixed)
    found = prices_of_bounds((remaining + remaining.T)[np.ix_(free, free)] / 2, excess[free])
    _refuse_unreachable(bounded, free[list(found.unreachable)].tolist())
    prices = np.zeros(len(bounded))
    prices[free] = -found.values
    weights = bounded.sums.spread(prices) - known.spread(factored.solve(with_facts @ prices))
    return np.asarray(cells + covariance.spread(weights))


def _slack(sizes: Floats, bounded: ReleaseFacts) -> Floats:
    """Return the rounding of each bounded sum, relative to the cells before and after the equalities moved them."""
    summed = abs(bounded.sums.matrix) @ bounded.sums.boxes.sums(BlockSums(sizes), sizes)
    return np.asarray(1e-9 * (summed + np.abs(bounded.constants)))


def _refuse_unreachable(bounded: ReleaseFacts, rows: Sequence[int]) -> None:
    if rows:
        raise QueryError(
            f"no table obeys {bounded.quote(rows)} beside the other constraints; correct or leave out one of them"
        )
