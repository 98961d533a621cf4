"""Facts imposed on a whole release, given anew or stored in its file."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from veilcube.analyst.estimate import (
    AdaptiveEstimate,
    AdjustedEstimate,
    Estimate,
    LeastSquares,
    LinearEstimate,
    Posterior,
    is_adaptive,
)
from veilcube.analyst.refine.facts import (
    FactSource,
    GivenFacts,
    KnownCounts,
    RefinedStatement,
    ReleaseConstraints,
    ReleaseFacts,
    join_facts,
)
from veilcube.analyst.refine.privacy import check_facts
from veilcube.analyst.refine.release import (
    AmendedEstimate,
    CellCovariance,
    CellMetric,
    ChosenRegions,
    FactRanges,
    Imposed,
    ImposedFacts,
    IndependentCells,
    Manner,
    RefinedAnswers,
    RefinedRelease,
    StructuralZeros,
    covariance_of,
    determines_total,
    impose_facts,
    impossible_facts,
    judge_posterior,
    judge_release,
    staged_tree_estimate,
    without_rounding,
)
from veilcube.analyst.release import Release
from veilcube.errors import CapacityError, QueryError
from veilcube.record import ReleaseRecord
from veilcube.system import read_flag, require_memory

MOST_CELLS = 1 << 26
# The covariance of all facts, its factor, and what is copied between.
_MATRICES, _BYTES = 3, 8


def refine_release(
    release: Release,
    constraints: ReleaseConstraints | None,
    known: KnownCounts | None = None,
    values: ArrayLike | None = None,
    *,
    source: FactSource = "unstated",
    counts: bool = True,
    kept_rows: bool = False,
) -> RefinedRelease:
    """Return a release whose answers obey the facts: sentences, and ``known`` counts with their ``values``.

    A release that was refined before keeps its facts and gets the new ones. ``kept_rows`` says that a total is of
    the rows that a release with a cap per person counts.
    """
    given = [GivenFacts.read(release.schema, constraints, known, values, source)]
    manner = Manner(counts, read_flag(kept_rows, "kept_rows"))
    if isinstance(release, RefinedRelease):
        given, manner, release = [*release.given, *given], manner.beside(release.manner), release.unrefined
    return _refined(release, given, manner)


def reopen_refined(record: ReleaseRecord) -> RefinedRelease:
    """Return a refined release as a file stores it: its measurements, refined again with its facts."""
    stored = record.known_facts or {}
    given = GivenFacts.from_data(record.schema, stored["facts"])
    return _refined(Release(replace(record, known_facts=None)), given, Manner.from_data(stored))


def _refined(release: Release, given: Sequence[GivenFacts], manner: Manner) -> RefinedRelease:
    record, rows = release.record.telling, join_facts(release.schema, [part.rows for part in given])
    _require_refinable(record)
    imposed = _imposed_on(record, rows, manner)
    known = {"facts": [entry for part in given for entry in part.to_data()]} | manner.to_data()
    statement = RefinedStatement.of(record.statement, rows.facts, check_facts(record, rows, only_marked=True))
    record = replace(release.record, statement=statement, known_facts=known)
    return RefinedRelease(release, given, manner, imposed, record)


def _require_refinable(record: ReleaseRecord) -> None:
    if any(part.grouped is not None for part in record.measurements):
        raise QueryError(
            "a release of grouped tables is answered by a model, which no fact can be imposed on; in Python refine its "
            "answers, vc.refine({name: answer, ...}, facts), or plan the next release with another strategy, say 'tree'"
        )
    if record.schema.cells > MOST_CELLS:
        raise CapacityError(
            f"a whole release is refined cell by cell, up to {MOST_CELLS:,} cells, and this one has more; ask it for "
            "answers and refine those"
        )


def _imposed_on(record: ReleaseRecord, rows: ReleaseFacts, manner: Manner) -> ImposedFacts:
    """Refine least squares, or the posterior of a staged tree, with the facts and what the schema calls impossible."""
    covariance, tables = covariance_of(record), record.measurements[0].tables
    zeros = StructuralZeros.of(record.schema, None if tables is None else tables.tables)
    told, every = (rows, rows) if zeros is None else (zeros.beside(rows), zeros.beside(rows, each_cell=True))
    needed = _MATRICES * _BYTES * len(every) ** 2
    require_memory(needed, f"refining a release with {len(every):,} facts", "leave some out")
    metric: CellMetric
    estimate: Estimate
    if covariance is None:
        posterior = Posterior().fit(record)
        metric = IndependentCells.of(posterior, record.schema.shape)
        imposed = impose_facts(metric, posterior.cells(), every)
        estimate = staged_tree_estimate(posterior, metric, imposed)
        test = judge_posterior(posterior, metric, told)
    else:
        metric, cells = covariance, LeastSquares().fit(record).cells()
        noise = record.measurements[0].noise
        imposed = impose_facts(covariance, cells, every, noise.cumulants()[0])
        used = imposed.used if zeros is None else zeros.left_out(imposed.used)
        estimate = _moved(_unbiased(record, covariance, imposed, used), imposed)
        test = judge_release(covariance, noise, cells, told, imposed)
    if not manner.kept_rows:
        _require_counted(record, metric, imposed, rows)
    ranges = None
    if manner.counts:
        _refuse_impossible(told)
        if not rows.is_equality.all():
            ranges = FactRanges(imposed.used if zeros is None else zeros.beside(zeros.left_out(imposed.used)))
            estimate = AmendedEstimate(estimate, ranges.cut)
    if zeros is None:
        return ImposedFacts(imposed, estimate, test, frozenset(), ranges)
    estimate = AmendedEstimate(estimate, without_rounding)
    return ImposedFacts(imposed, estimate, test, frozenset(zeros.whole.facts), ranges)


def _refuse_impossible(facts: ReleaseFacts) -> None:
    impossible = impossible_facts(facts)
    if impossible:
        raise QueryError(
            f"no counts obey {facts.quote(impossible)}, because counts are never negative; correct the constraint"
        )


def _require_counted(record: ReleaseRecord, metric: CellMetric, imposed: Imposed, rows: ReleaseFacts) -> None:
    """Refuse a total of all rows where only the first rows of each person are counted."""
    unit = record.statement.unit
    if unit.counted is None or not determines_total(metric, imposed, rows):
        return
    raise QueryError(
        f"this release counts at most {unit.max_rows:,} row{'s' * (unit.max_rows > 1)} per person, and the facts tell "
        "a total, which for all rows is another number; leave it out, or say that it is of the kept rows alone "
        "(kept_rows=True, on the command line --kept-rows)"
    )


def _unbiased(record: ReleaseRecord, covariance: CellCovariance, imposed: Imposed, used: ReleaseFacts) -> Estimate:
    """Return least squares under the equalities; ``used`` are the facts that users gave."""
    answers = RefinedAnswers(covariance, imposed.known, imposed.factored, imposed.refined_cells)
    first = record.measurements[0]
    unbiased = LinearEstimate(answers, first.values, first.noise)
    if not is_adaptive(record):
        return unbiased
    adaptive = AdaptiveEstimate(record)
    known = used.take(np.flatnonzero(used.is_equality))
    return AmendedEstimate(unbiased, ChosenRegions(adaptive, known).amend) if adaptive.is_chosen else unbiased


def _moved(unbiased: Estimate, imposed: Imposed) -> Estimate:
    moved = imposed.moved_cells
    return unbiased if moved is None else AdjustedEstimate(unbiased, moved.copy())
