"""A release that lies elsewhere, asked as a local one is: questions go over in batches, answers come back."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from veilcube.analyst import DateAnswer
from veilcube.errors import QueryError, ReleaseFileError
from veilcube.privacy import PrivacyStatement
from veilcube.query import Answer, Answers, AnswersWorkloads, Workload, read_confidence
from veilcube.record import region_to_data
from veilcube.schema import Schema
from veilcube.service.client.answers import COLUMNS, read_groups, read_single
from veilcube.service.client.transport import Transport, place
from veilcube.system import read_path

_BATCH = 5000


class RemoteRelease(AnswersWorkloads):
    """A release of a service."""

    def __init__(self, transport: Transport, name: str) -> None:
        self._transport, self.name = transport, name
        self._facts = transport.get("releases", name)
        self._schema = Schema.from_dict(self._facts["schema"])
        self._privacy = PrivacyStatement.from_dict(self._facts["privacy"])

    def __repr__(self) -> str:
        return f"RemoteRelease({self.name!r} at {self._transport.url}: {', '.join(self._schema.names)})"

    @property
    def schema(self) -> Schema:
        """The public description of the table."""
        return self._schema

    @property
    def privacy(self) -> PrivacyStatement:
        """The promise, in words (``str``) and as data."""
        return self._privacy

    @property
    def counted(self) -> str | None:
        """What a reader must know about the rows behind the counts; None for rows."""
        found: str | None = self._facts["counted"]
        return found

    def answer(
        self, workload: Workload, *, estimator: str = "best", confidence: float = 0.95, interval: str = "calibrated"
    ) -> Answers:
        """Estimate every query of a workload, some thousands to a request."""
        if not isinstance(workload, Workload):
            raise QueryError("a remote release answers a veilcube.Workload; use count for a single query")
        if workload.schema != self._schema:
            raise QueryError("the workload is for another schema; build it with release.schema")
        how = {"estimator": estimator, "confidence": read_confidence(confidence), "interval": interval}
        blocks = np.array([row for row in range(len(workload)) if row not in workload.regions], dtype=np.int64)
        others = list(workload.regions)
        columns = {name: np.zeros(len(workload)) for name in COLUMNS}
        words = ("", "")
        for rows in _batches(blocks):
            cells = {"low": workload.low[rows].tolist(), "high": workload.high[rows].tolist()}
            words = self._fill(columns, rows, {"cells": cells} | how)
        for rows in _batches(np.array(others, dtype=np.int64)):
            regions = [region_to_data(self._schema, workload.regions[row]) for row in rows.tolist()]
            words = self._fill(columns, rows, {"cells": {"regions": regions}} | how)
        arrays = (columns["value"], columns["low"], columns["high"], columns["stddev"])
        return Answers(*arrays, confidence, words[0], {}, words[1])

    def quantile(
        self,
        attribute: str,
        rank: float = 0.5,
        *,
        where: str | None = None,
        estimator: str = "best",
        confidence: float = 0.95,
    ) -> Answer | DateAnswer:
        """Estimate the least value of an ordinal attribute that a share ``rank`` of the rows does not exceed."""
        return self._one("quantile", attribute, where, estimator, confidence, rank=rank)

    def sum(
        self, attribute: str, *, where: str | None = None, estimator: str = "best", confidence: float = 0.95
    ) -> Answer | DateAnswer:
        """Estimate the sum of an ordinal attribute; the condition is SQL text."""
        return self._one("sum", attribute, where, estimator, confidence)

    def mean(
        self, attribute: str, *, where: str | None = None, estimator: str = "best", confidence: float = 0.95
    ) -> Answer | DateAnswer:
        """Estimate the mean of an ordinal attribute; the condition is SQL text."""
        return self._one("mean", attribute, where, estimator, confidence)

    def group(
        self,
        by: Sequence[str] | str,
        statistic: str = "count",
        column: str | None = None,
        *,
        where: str | None = None,
        rank: float | None = None,
        condition: str | None = None,
        estimator: str = "best",
        confidence: float = 0.95,
    ) -> Answers:
        """Estimate a statistic of every group, as ``Release.group`` does; conditions are SQL text."""
        names = [by] if isinstance(by, str) else list(by)
        how = {"where": _text(where), "rank": rank, "condition": _text(condition), "estimator": estimator}
        found = self._ask("group", by=names, statistic=statistic, column=column, confidence=confidence, **how)
        return read_groups(found)

    def ask(
        self, statement: str, *, estimator: str = "best", confidence: float = 0.95
    ) -> dict[str, Answer | DateAnswer | Answers]:
        """Answer a SQL statement of several statistics, each under its name or its alias."""
        found = self._ask("sql", statement=statement, estimator=estimator, confidence=confidence)
        return {name: read_groups(one) if "axes" in one else read_single(one) for name, one in found["answers"].items()}

    def save(self, path: str | Path) -> None:
        """Download the release: a file that ``veilcube.open`` reads, and that needs no service."""
        self._transport.save(
            read_path(path, "the file of a release", ReleaseFileError), f"{place('releases', self.name)}.veil"
        )

    def _fill(self, columns: dict[str, Any], rows: Any, body: dict[str, object]) -> tuple[str, str]:
        found = self._transport.post(body, "releases", self.name, "answer")
        for name in COLUMNS:
            columns[name][rows] = [np.nan if value is None else value for value in found[name]]
        return str(found["privacy"]), str(found["estimator"])

    def _one(
        self, kind: str, attribute: str, where: object, estimator: str, confidence: float, **more: object
    ) -> Answer | DateAnswer:
        how = {"where": _text(where), "estimator": estimator, "confidence": confidence}
        return read_single(self._ask(kind, column=attribute, **how, **more))

    def _ask(self, kind: str, **params: object) -> dict[str, Any]:
        return self._transport.get("releases", self.name, kind, **params)


def _batches(rows: Any) -> list[Any]:
    return [rows[start : start + _BATCH] for start in range(0, len(rows), _BATCH)]


def _text(where: object) -> str | None:
    if where is not None and not isinstance(where, str):
        raise QueryError("a remote release takes conditions of such questions as SQL text; write it as one")
    return where
