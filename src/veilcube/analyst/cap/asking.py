"""What a release tells about the rows beyond its cap, and how its counts of kept rows become counts of all rows."""

from typing import Protocol

from veilcube.analyst.cap.all_rows import AllRows
from veilcube.analyst.cap.beyond_cap import BeyondCap
from veilcube.analyst.estimate import Estimate, Estimates
from veilcube.errors import QueryError
from veilcube.privacy import PrivacyStatement
from veilcube.query import read_confidence, read_query
from veilcube.record import ReleaseRecord
from veilcube.schema import Schema
from veilcube.system import Floats, show


class CountsKept(Protocol):
    """Counts kept rows: what a release is asked for here."""

    @property
    def record(self) -> ReleaseRecord:
        """The plain public data behind the release."""

    @property
    def schema(self) -> Schema:
        """The public description of the table."""

    @property
    def privacy(self) -> PrivacyStatement:
        """The promise."""

    def _estimate(self, name: str) -> Estimate:
        """Return the fitted estimator of a name."""

    def _total(self, estimator: str, confidence: float) -> Estimates:
        """Estimate the number of all kept rows."""


class CapAnswers:
    """Answers for all rows, of a release that measured how many lie beyond its cap."""

    def beyond_cap(self: CountsKept, *, estimator: str = "best", confidence: float = 0.95) -> BeyondCap | None:
        """Tell how many rows lie beyond the cap on rows of a person; None where that was not measured."""
        inner = (1 + read_confidence(confidence)) / 2
        if self.record.cap is None:
            return None
        return BeyondCap.of(self.record.cap, self._total(estimator, inner), confidence, self.privacy.words)

    def _all_rows(self: CountsKept, rows: str, spread: float | None, confidence: float) -> AllRows | None:
        """Return what turns kept rows into all of them; None where kept rows are asked for, or none was dropped."""
        if not isinstance(rows, str) or rows not in ("kept", "all"):
            raise QueryError(f"the rows must be 'kept' or 'all', not {show(rows)}")
        if rows == "kept":
            if spread is not None:
                raise QueryError("spread says how dropped rows lie, and kept rows were asked for; add rows='all'")
            return None
        if self.privacy.unit.kind == "row":
            return None
        if self.record.cap is None:
            raise QueryError(
                "this release did not measure how many rows lie beyond its cap, so it cannot answer for all rows; ask "
                "for rows='kept' (on the command line leave out --all-rows), or make a release with measure_cap=0.02 "
                "(--measure-cap 0.02)"
            )
        return AllRows(self.record.cap, read_confidence(confidence), spread)

    def _total(self: CountsKept, estimator: str, confidence: float) -> Estimates:
        return self._estimate(estimator).region(read_query(self.schema, {}), confidence)

    def _for_all_rows(self: CountsKept, of_all: AllRows, kept: Estimates, sizes: Floats, estimator: str) -> Estimates:
        total = self._total(estimator, of_all.of_total)
        return of_all.from_kept(kept, total, sizes, float(self.schema.cells))
