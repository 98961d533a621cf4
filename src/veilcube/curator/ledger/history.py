"""What a ledger remembers of a dataset: its charges, the answers that were given, and those as one history."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from veilcube.curator.ledger.rows import Charge, StoredAnswer
from veilcube.errors import LedgerError, VeilcubeError
from veilcube.record import History, Moment, linear_queries
from veilcube.schema import Schema, require_schema
from veilcube.system import read_whole


class LedgerHistory(list[Charge]):
    """The charges, as a list in their order, together with the noisy answers that were stored."""

    def __init__(
        self, charges: Iterable[Charge], answers: Sequence[StoredAnswer], schemas: Mapping[str, Schema]
    ) -> None:
        super().__init__(charges)
        self._answers, self._schemas = tuple(answers), dict(schemas)

    @property
    def answers(self) -> tuple[StoredAnswer, ...]:
        """The answers that were given, in their order: questions, noisy integers, the law of their noise, promises."""
        return self._answers

    @property
    def schemas(self) -> dict[str, Schema]:
        """The schemas that questions were asked under, by fingerprint."""
        return dict(self._schemas)

    @property
    def measurements(self) -> int:
        """How many stored integers ``answered`` would hold, counted without building their queries."""
        return sum(len(answer.values) for answer in self._answers if Moment.is_kind(answer.question))

    @property
    def answered(self) -> History:
        """Every stored count, sum, moment and mean as a linear query with its noisy value and the noise's variance.

        Answers of other kinds (extremes, quantiles) are no linear measurements and are left out.
        """
        if len({answer.dataset for answer in self._answers}) > 1:
            raise LedgerError("the history is of several datasets; ask for one with ledger.history('name')")
        parts = [part for answer in self._answers if (part := self._measured(answer)) is not None]
        if not parts:
            raise LedgerError("no count, sum or mean was answered yet, so there is no history to learn from; ask some")
        if len({part.schema for part in parts}) > 1:
            raise LedgerError(
                "the dataset was asked under several schemas, and answers about one schema only can be joined; "
                "choose those of one schema with history.under(schema)"
            )
        caps = sorted({one.statement.unit.max_rows for one in self._answers if Moment.is_kind(one.question)})
        if len(caps) > 1:
            raise LedgerError(
                f"the dataset was asked with at most {' and '.join(map(str, caps))} rows of a person, and such answers "
                "count different rows; choose those of one cap with history.under(schema, max_rows=...)"
            )
        return History.merge(*parts)

    def under(self, schema: Schema, max_rows: int | None = None) -> "LedgerHistory":
        """Return the history with the answers to questions that were asked under one schema, and one cap if given."""
        fingerprint = require_schema(schema, "the part of a history under one schema").fingerprint()
        most = None if max_rows is None else read_whole(max_rows, "max_rows", 1, error=LedgerError)
        kept = [
            answer
            for answer in self._answers
            if answer.schema == fingerprint and most in (None, answer.statement.unit.max_rows)
        ]
        return LedgerHistory(self, kept, self._schemas)

    def _measured(self, answer: StoredAnswer) -> History | None:
        schema = self._schemas.get(answer.schema)
        if schema is None:
            raise LedgerError("the ledger lacks a schema that its answers name; restore a backup of it")
        try:
            moment = Moment.from_data(schema, answer.question)
        except VeilcubeError:
            raise LedgerError("a question in the ledger does not fit its schema; restore a backup of it") from None
        if moment is None:
            return None
        if moment.size != len(answer.values) or answer.noise is None:
            raise LedgerError("an answer in the ledger does not fit its question; restore a backup of it")
        queries, unit = linear_queries(moment), moment.unit
        values = [float(value * unit) for value in answer.values]
        variance = answer.noise.variance * float(unit) ** 2
        return History(schema, queries, values, np.full(len(values), variance), privacy=answer.statement.words)
