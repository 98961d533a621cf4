"""A refined release: the questions of a release, answered so that known facts hold.

A staged tree measures what earlier measurements pointed to, so it has no least-squares estimate and no covariance of
its cells. There the posterior means are moved in the metric of their standard deviations, as if those were independent:
answers obey the facts, and no variance is claimed to be smaller, except for what the facts tell for certain.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilcube.analyst.estimate import (
    AdaptiveEstimate,
    AdjustedEstimate,
    Estimate,
    Estimates,
    Guarantee,
    LeastSquares,
    LinearEstimate,
    Posterior,
    is_adaptive,
)
from veilcube.analyst.refine.facts import (
    Boxes,
    BoxSums,
    Fact,
    FactSource,
    KnownCounts,
    RefinedStatement,
    ReleaseConstraints,
    ReleaseFacts,
    join_facts,
    read_release_facts,
)
from veilcube.analyst.refine.privacy import check_facts
from veilcube.analyst.refine.release.amended import AmendedEstimate, Questions
from veilcube.analyst.refine.release.chosen_regions import ChosenRegions
from veilcube.analyst.refine.release.count_feasibility import impossible_facts
from veilcube.analyst.refine.release.covariance import CellCovariance, covariance_of, variances
from veilcube.analyst.refine.release.imposing import Imposed, impose_facts
from veilcube.analyst.refine.release.ranges import FactRanges
from veilcube.analyst.refine.release.refined_answers import NOTHING_LEFT, RefinedAnswers, explained_variances
from veilcube.analyst.release import Release
from veilcube.errors import CapacityError, QueryError, ReleaseFileError
from veilcube.operators import BlockSums
from veilcube.record import ReleaseRecord
from veilcube.system import Floats

_CELLS_AT_ONCE = 1 << 15
_LEAST_SHARE = 1e-3
_ANY_CONFIDENCE = 0.5


@dataclass(frozen=True, eq=False)
class IndependentCells:
    """A diagonal S: a variance of its own for every cell."""

    variance: Floats

    @classmethod
    def of(cls, posterior: Estimate, shape: tuple[int, ...]) -> "IndependentCells":
        """Return the posterior variance of each cell; none is zero, so that every fact can be met."""
        index = np.indices(shape).reshape(len(shape), -1).T.astype(np.int64)
        parts = (index[start : start + _CELLS_AT_ONCE] for start in range(0, len(index), _CELLS_AT_ONCE))
        deviations = np.concatenate([posterior.rectangles(part, part, _ANY_CONFIDENCE).stddev for part in parts])
        least = _LEAST_SHARE * (deviations.max() or 1.0)
        return cls(np.square(np.maximum(deviations, least)).reshape(shape))

    def spread(self, weights: Floats) -> Floats:
        """Return S u."""
        return self.variance * weights

    def of_boxes(self, left: Boxes, right: Boxes) -> Floats:
        """Return the summed variances of the cells that two boxes share."""
        found = np.empty((len(left), len(right)))
        for row in range(len(left)):
            shared = self.spread(left.take(np.array([row])).spread(np.ones(1)))
            found[row] = right.sums(BlockSums(shared), shared)
        return found

    def of_each(self, boxes: Boxes) -> Floats:
        """Return the summed variances of the cells of each box."""
        return boxes.sums(BlockSums(self.variance), self.variance)


@dataclass(frozen=True, eq=False)
class Certainty:
    """Makes the intervals of questions that the equalities determine a single point."""

    metric: IndependentCells
    imposed: Imposed

    def amend(self, found: Estimates, questions: Questions, confidence: float) -> Estimates:
        """Return the estimates, certain ones without an interval."""
        del confidence
        is_certain = np.zeros(found.value.shape, dtype=bool)
        is_certain[questions.held] = self._is_certain(questions.sums)
        low, high = np.where(is_certain, found.value, found.low), np.where(is_certain, found.value, found.high)
        return Estimates(found.value, low, high, np.where(is_certain, 0.0, found.stddev))

    def _is_certain(self, sums: BoxSums) -> NDArray[np.bool_]:
        """Return which sums the equalities determine: those without variance left in any metric."""
        own = variances(self.metric, sums)
        explained = explained_variances(self.metric, self.imposed.known, self.imposed.factored, sums)
        return np.asarray(own - explained <= NOTHING_LEFT * own)


def staged_tree_estimate(posterior: Estimate, metric: IndependentCells, imposed: Imposed) -> Estimate:
    """Return posterior answers moved to obey the facts, exact where the facts leave no choice."""
    cells = imposed.refined_cells if imposed.moved_cells is None else imposed.moved_cells
    return AmendedEstimate(AdjustedEstimate(posterior, cells.copy()), Certainty(metric, imposed).amend)


MOST_CELLS = 1 << 26
ESTIMATOR = "refined"


class RefinedRelease(Release):
    """A release whose answers obey known facts; every question of a release can be asked.

    ``facts`` are the ones that said something new, ``redundant`` those that followed from the others, ``unrefined`` is
    the release as it was. Its one estimator, refined least squares, is unbiased with exact variances under equalities;
    inequalities move the values, and the intervals stay those before them, widened to hold the value and cut where no
    counts obey the facts. On a staged tree the posterior is moved, and its intervals are cut.
    """

    def __init__(
        self, unrefined: Release, rows: ReleaseFacts, imposed: Imposed, estimate: Estimate, record: ReleaseRecord
    ) -> None:
        super().__init__(record)
        self._unrefined, self._rows, self._imposed = unrefined, rows, imposed
        self._chosen = dict.fromkeys(("best", ESTIMATOR), _Course(estimate))

    @property
    def answered(self) -> NoReturn:
        """Refused: a history would lose the facts."""
        raise QueryError(
            "a refined release holds facts besides measurements, and history would lose them; give its .unrefined, "
            "and facts as total=... or as a veilcube.History whose variances are 0"
        )

    @property
    def unrefined(self) -> Release:
        """The release that was refined."""
        return self._unrefined

    @property
    def facts(self) -> tuple[Fact, ...]:
        """The facts that said something new."""
        return tuple(dict.fromkeys(self._imposed.used.facts))

    @property
    def redundant(self) -> tuple[Fact, ...]:
        """The facts that followed from others."""
        return tuple(dict.fromkeys(self._imposed.redundant.facts))

    @property
    def rows(self) -> ReleaseFacts:
        """All facts that were given, as sums of cells."""
        return self._rows

    def __repr__(self) -> str:
        known = f"{len(self.facts):,} known {'fact' if len(self.facts) == 1 else 'facts'}"
        return f"Refined{super().__repr__().removesuffix(')')} Refined with {known}.)"

    def save(self, path: str | Path, *, tables: bool | None = None) -> NoReturn:
        """Refuse: a release file holds what was measured, and no facts."""
        raise ReleaseFileError(
            "a release file holds measurements and no facts; keep the file of the release and refine it again, "
            "or write the refined cells with to_parquet"
        )

    @cached_property
    def _guarantee(self) -> Guarantee:
        raise QueryError("a refined release has no guaranteed intervals; ask the release itself, .unrefined, for them")

    def _estimate(self, name: str) -> Estimate:
        if not isinstance(name, str) or name not in self._chosen:
            raise QueryError(
                f"a refined release has one estimator, '{ESTIMATOR}'; ask .unrefined for those of the release itself"
            )
        return super()._estimate(name)


@dataclass(frozen=True, eq=False)
class _Course:
    """The estimator of a refined release, fitted already."""

    estimate: Estimate

    @property
    def name(self) -> str:
        """The word that users call it by."""
        return ESTIMATOR

    def can_read(self, record: ReleaseRecord) -> bool:
        """Whether there is something to read: it was fitted to the only record that it is asked about."""
        return bool(record.measurements)

    def fit(self, record: ReleaseRecord) -> Estimate:
        """Return the answers that were found."""
        del record
        return self.estimate


def refine_release(
    release: Release,
    constraints: ReleaseConstraints | None,
    known: KnownCounts | None = None,
    values: ArrayLike | None = None,
    *,
    source: FactSource = "unstated",
    counts: bool = True,
) -> RefinedRelease:
    """Return a release whose answers obey the facts: sentences, and ``known`` counts with their ``values``.

    A release that was refined before keeps its facts and gets the new ones.
    """
    rows = read_release_facts(release.schema, constraints, known, values, source)
    if isinstance(release, RefinedRelease):
        rows, release = join_facts(release.schema, [release.rows, rows]), release.unrefined
    record = release.record.telling
    if any(part.grouped is not None for part in record.measurements):
        raise QueryError(
            "a release of grouped tables is answered by a model, which no fact can be imposed on; ask it for answers "
            "and refine those"
        )
    if record.schema.cells > MOST_CELLS:
        raise CapacityError(
            f"a whole release is refined cell by cell, up to {MOST_CELLS:,} cells, and this one has more; ask it for "
            "answers and refine those"
        )
    imposed, estimate = _imposed_on(record, rows, counts=counts)
    impossible = impossible_facts(rows) if counts else ()
    if impossible:
        raise QueryError(
            f"no counts obey {rows.quote(impossible)}, because counts are never negative; correct the constraint"
        )
    statement = RefinedStatement.of(record.statement, rows.facts, check_facts(record, rows, only_marked=True))
    return RefinedRelease(release, rows, imposed, estimate, replace(record, statement=statement))


def _imposed_on(record: ReleaseRecord, rows: ReleaseFacts, *, counts: bool) -> tuple[Imposed, Estimate]:
    """Refine least squares, or the posterior of a staged tree, and return the estimate that answers."""
    covariance = covariance_of(record)
    estimate: Estimate
    if covariance is None:
        posterior = Posterior().fit(record)
        metric = IndependentCells.of(posterior, record.schema.shape)
        imposed = impose_facts(metric, posterior.cells(), rows)
        estimate = staged_tree_estimate(posterior, metric, imposed)
    else:
        imposed = impose_facts(covariance, LeastSquares().fit(record).cells(), rows)
        estimate = _moved(_unbiased(record, covariance, imposed), imposed)
    if counts and not rows.is_equality.all():
        estimate = AmendedEstimate(estimate, FactRanges(imposed.used).cut)
    return imposed, estimate


def _unbiased(record: ReleaseRecord, covariance: CellCovariance, imposed: Imposed) -> Estimate:
    """Return least squares under the equalities."""
    answers = RefinedAnswers(covariance, imposed.known, imposed.factored, imposed.refined_cells)
    first = record.measurements[0]
    unbiased = LinearEstimate(answers, first.values, first.noise)
    if not is_adaptive(record):
        return unbiased
    adaptive = AdaptiveEstimate(record)
    known = imposed.used.take(np.flatnonzero(imposed.used.is_equality))
    return AmendedEstimate(unbiased, ChosenRegions(adaptive, known).amend) if adaptive.is_chosen else unbiased


def _moved(unbiased: Estimate, imposed: Imposed) -> Estimate:
    moved = imposed.moved_cells
    return unbiased if moved is None else AdjustedEstimate(unbiased, moved.copy())
