"""The release as an analyst meets it: a public record with questions on it."""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from veilcube.analyst import history, synthesis
from veilcube.analyst.cap import CapAnswers
from veilcube.analyst.check import ReleaseCheck
from veilcube.analyst.estimate import (
    Estimate,
    Estimates,
    Estimator,
    Guarantee,
    LatentClasses,
    MixtureEstimate,
    Nonnegative,
    choose_estimator,
)
from veilcube.analyst.export import Exports
from veilcube.analyst.publish import Sites
from veilcube.analyst.questions import Questions, answer_linear
from veilcube.analyst.report import Reports
from veilcube.errors import QueryError
from veilcube.privacy import PrivacyStatement
from veilcube.query import (
    Answer,
    Answers,
    LinearQueries,
    Query,
    Workload,
    ask_groups,
    held_groups,
    read_confidence,
    read_marginal,
    read_question,
)
from veilcube.record import History, ReleaseRecord
from veilcube.schema import Grouping, Region, Schema, attributes_as_html, read_groupings
from veilcube.system import Floats, read_kind, show

if TYPE_CHECKING:
    import pandas as pd

_log = logging.getLogger(__name__)


class Release(CapAnswers, Questions, Exports, Reports, Sites):
    """A differentially private release: any number of questions, at no further cost in privacy."""

    def __init__(self, record: ReleaseRecord) -> None:
        self._record = read_kind(record, ReleaseRecord, "a release is made of a ReleaseRecord")
        self._telling = self._record.telling
        self._chosen: dict[str, Estimator] = {}
        self._fitted: dict[str, Estimate] = {}

    @property
    def record(self) -> ReleaseRecord:
        """The plain public data behind the release."""
        return self._record

    @property
    def schema(self) -> Schema:
        """The public description of the table."""
        return self._record.schema

    @property
    def privacy(self) -> PrivacyStatement:
        """The promise, in words (``str``) and as data."""
        return self._record.statement

    @property
    def plan(self) -> Mapping[str, object]:
        """The plan it was made from, as plain data."""
        return self._record.plan

    @property
    def counted(self) -> str | None:
        """What a reader must know about the rows behind the counts: a sentence for a person unit, None for rows."""
        counted = self.privacy.unit.counted
        if counted is None or self._record.cap is None:
            return counted
        return f"{counted} How many those are was measured, so that answers can also be given for all rows."

    @property
    def refinement(self) -> Mapping[str, object] | None:
        """The known facts that its answers obey, as plain data; None but for a refined release."""
        return None

    @property
    def has_model(self) -> bool:
        """Whether a model of the whole table answers it, from which rows can be drawn: on grouped tables."""
        return LatentClasses().can_read(self._telling)

    @cached_property
    def answered(self) -> History:
        """Every measurement as a linear query with its noisy value: what models learn from."""
        return History.of_release(self._record)

    @property
    def drawn_from(self) -> History:
        """What a model of all rows is fitted to before synthetic rows are drawn from it."""
        return self.answered

    @cached_property
    def _words(self) -> str:
        return self.privacy.words

    def __repr__(self) -> str:
        return f"Release({', '.join(self.schema.names)}: {self.schema.cells:,} cells; {self._words})"

    def _repr_html_(self) -> str:
        words = f"{self._words} {self.counted or ''}".strip()
        return attributes_as_html(f"{type(self).__name__}: {self.schema.cells:,} cells", self.schema, words)

    def count(
        self,
        query: Query | None = None,
        *,
        estimator: str = "best",
        confidence: float = 0.95,
        interval: str = "calibrated",
        rows: str = "kept",
        spread: float | None = None,
        **conditions: object,
    ) -> Answer | Answers:
        """Estimate how many rows meet a condition.

        ``interval="guaranteed"`` gives an interval that holds whatever the data are, from the noise alone.
        ``rows="all"`` asks for all rows of a person, those beyond the cap too, where the release measured them; with
        a ``spread`` of 2 dropped rows are taken to be at most twice as frequent, or as rare, as kept ones are.

        The condition is given by keywords (``age=(30, 39), sex="Female"``), as a mapping, or as SQL text: a WHERE
        condition or a whole ``SELECT COUNT(*) ...``. SQL with GROUP BY gives ``Answers``, one per group.
        """
        region, group_by = read_question(self.schema, query, conditions)
        if group_by:
            if _is_guaranteed(interval):
                raise QueryError("guaranteed intervals are for single counts and workloads; leave out GROUP BY")
            return self._grouped(region, group_by, estimator, confidence, rows, spread)
        of_all = self._all_rows(rows, spread, confidence)
        level = read_confidence(confidence) if of_all is None else of_all.of_kept
        found = self._estimate(estimator).region(region, level)
        if _is_guaranteed(interval):
            found = self._guarantee.region(found, region, level)
        if of_all is not None:
            found = self._for_all_rows(of_all, found, np.array(float(region.cells)), estimator)
        return self._many(found, confidence, estimator)[()]

    def answer(
        self,
        workload: Workload | LinearQueries,
        *,
        estimator: str = "best",
        confidence: float = 0.95,
        interval: str = "calibrated",
        rows: str = "kept",
        spread: float | None = None,
    ) -> Answers:
        """Estimate every query of a workload at once, ``interval``, ``rows`` and ``spread`` as in ``count``.

        ``LinearQueries`` are answered too, with intervals from the noise of the whole sum, about the kept rows.
        """
        if isinstance(workload, LinearQueries):
            if _is_guaranteed(interval) or rows != "kept" or spread is not None:
                raise QueryError("linear queries are answered about kept rows; leave out interval, rows and spread")
            return answer_linear(self, workload, estimator, read_confidence(confidence))
        if not isinstance(workload, Workload):
            raise QueryError(
                "release.answer takes a veilcube.Workload or LinearQueries; use release.count for a single query"
            )
        if workload.schema != self.schema:
            raise QueryError("the workload is for another schema; build it with release.schema")
        of_all = self._all_rows(rows, spread, confidence)
        level = read_confidence(confidence) if of_all is None else of_all.of_kept
        fitted = self._estimate(estimator)
        guarantee = self._guarantee if _is_guaranteed(interval) else None
        found = fitted.rectangles(workload.low, workload.high, level)
        if guarantee is not None:
            found = guarantee.rectangles(found, workload.low, workload.high, level)
        for row, region in workload.regions.items():
            single = fitted.region(region, level)
            if guarantee is not None:
                single = guarantee.region(single, region, level)
            for name in ("value", "low", "high", "stddev"):
                getattr(found, name)[row] = getattr(single, name)
        if of_all is not None:
            sizes = np.maximum(workload.high - workload.low + 1, 0).astype(np.float64).prod(axis=1)
            for row, region in workload.regions.items():
                sizes[row] = region.cells
            found = self._for_all_rows(of_all, found, sizes, estimator)
        return self._many(found, confidence, estimator)

    def marginal(
        self,
        *names: str,
        where: Query | None = None,
        estimator: str = "best",
        confidence: float = 0.95,
        rows: str = "kept",
        spread: float | None = None,
    ) -> Answers:
        """Estimate the counts of every combination of the named attributes' cells, the others summed out.

        ``rows`` and ``spread`` are as in ``count``.
        """
        return self._grouped(*read_marginal(self.schema, names, where), estimator, confidence, rows, spread)

    def check(self, *, estimator: str = "best") -> ReleaseCheck:
        """Tell how well what the answers rest on agrees with what was measured, by kind of question."""
        fitted = self._estimate(estimator)
        return ReleaseCheck.of(self._chosen[estimator].name, fitted, self.schema.names)

    def synthesize(
        self,
        n: int | None = None,
        path: str | Path | None = None,
        progress: Callable[[float | None], None] | None = None,
    ) -> "pd.DataFrame | Path":
        """Draw n rows (as many as the table has, unless said) that follow what was measured.

        Grouped tables have a model to draw them from, or full cells; to other releases the model of maximum entropy is
        fitted first.
        Without a path they come as a pandas frame; with one they are written to a .csv, .csv.gz or .parquet file.
        """
        target = synthesis.read_target(path, progress)
        count = None if n is None else synthesis.read_number_of_rows(n)
        if self._telling is not self._record:
            cells = self._fit(Nonnegative()).cells()
            wanted = max(1, round(float(cells.sum()))) if count is None else count
            parts = synthesis.draw_cells(cells, wanted)
            return synthesis.hand_over(self.schema, parts, wanted, target, self._words, progress)
        if not self.has_model:
            return history.MaxEntropy().fit(self).synthesize(count, target, progress)
        fitted = self._fit(LatentClasses())
        if not isinstance(fitted, MixtureEstimate):
            raise TypeError("latent classes give a mixture")
        wanted = max(1, round(fitted.model.rows)) if count is None else count
        return synthesis.hand_over(self.schema, fitted.draw_rows(wanted), wanted, target, self._words, progress)

    @cached_property
    def _guarantee(self) -> Guarantee:
        return Guarantee(self._telling)

    def _estimate(self, name: str) -> Estimate:
        if not isinstance(name, str) or name not in self._chosen:
            self._chosen[name] = choose_estimator(self._telling, name, self._fit)
        return self._fit(self._chosen[name])

    def _fit(self, estimator: Estimator) -> Estimate:
        if estimator.name not in self._fitted:
            _log.info("fitting the estimator %s to the release", estimator.name)
            self._fitted[estimator.name] = estimator.fit(self._telling)
        return self._fitted[estimator.name]

    def _grouped(
        self,
        region: Region,
        names: Sequence[str],
        estimator: str,
        confidence: float,
        rows: str = "kept",
        spread: float | None = None,
    ) -> Answers:
        groupings = read_groupings(self.schema, names)
        if not all(grouping.is_by_value for grouping in groupings):
            return self._by_questions(region, groupings, estimator, confidence, rows, spread)
        groups = self._estimate(estimator).grouped(region, [grouping.axis for grouping in groupings])
        held, labels = held_groups(groupings, groups.sizes)
        of_all = self._all_rows(rows, spread, confidence)
        found = groups.estimates(read_confidence(confidence) if of_all is None else of_all.of_kept)
        kept = Estimates(found.value[held], found.low[held], found.high[held], found.stddev[held], found.estimator)
        if of_all is not None:
            kept = self._for_all_rows(of_all, kept, groups.sizes[held].astype(np.float64), estimator)
        return self._many(kept, confidence, estimator, labels)

    def _by_questions(
        self,
        region: Region,
        groupings: Sequence[Grouping],
        estimator: str,
        confidence: float,
        rows: str,
        spread: float | None,
    ) -> Answers:
        """Answer each group as a question of its own: groups of several values are counts like any other."""

        def ask(workload: Workload) -> Answers:
            return self.answer(workload, estimator=estimator, confidence=confidence, rows=rows, spread=spread)

        def nothing(empty: Floats, labels: Mapping[str, tuple[str, ...]]) -> Answers:
            self._estimate(estimator)
            return self._many(Estimates(empty, empty, empty, empty), read_confidence(confidence), estimator, labels)

        return ask_groups(self.schema, region, groupings, ask, nothing)

    def _many(
        self, found: Estimates, confidence: float, asked: str, axes: Mapping[str, tuple[str, ...]] | None = None
    ) -> Answers:
        arrays = (found.value, found.low, found.high, found.stddev)
        return Answers(*arrays, confidence, self._words, axes or {}, found.estimator or self._chosen[asked].name)


def _is_guaranteed(interval: str) -> bool:
    if not isinstance(interval, str) or interval not in ("calibrated", "guaranteed"):
        raise QueryError(f"the interval must be 'calibrated' or 'guaranteed', not {show(interval)}")
    return interval == "guaranteed"
