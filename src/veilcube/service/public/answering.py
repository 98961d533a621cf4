"""Answers as plain data: one by one for people, as columns for programs that ask many at once."""

from pathlib import Path
from typing import Annotated, TypeAlias

import numpy as np
from pydantic import BaseModel, Field

from veilcube.analyst import DateAnswer, Release
from veilcube.errors import QueryError
from veilcube.query import Answer, Answers, Workload
from veilcube.record import region_from_data

Found: TypeAlias = Answer | DateAnswer | Answers
_COLUMNS = ("value", "low", "high", "stddev")
MOST_QUERIES = 10_000
Cells = Annotated[list[list[Annotated[int, Field(ge=0, le=2**62)]]], Field(max_length=MOST_QUERIES)]


class Blocks(BaseModel, extra="forbid"):
    """Queries as cells, the way programs send them: inclusive first and last cells of each attribute, row by row.

    ``regions`` are further queries that are no blocks: lists of boxes, each with the runs of cells of its attributes.
    """

    low: Annotated[Cells, Field(examples=[[[13, 0]]])] = []
    high: Annotated[Cells, Field(examples=[[[22, 0]]])] = []
    regions: Annotated[
        list[Annotated[list[dict[str, list[tuple[int, int]]]], Field(max_length=10_000)]],
        Field(max_length=MOST_QUERIES),
    ] = []


def answer_all(release: Release, asked: Workload | Blocks, **how: object) -> dict[str, object]:
    """Return the answers to many queries, as columns in the order of the queries: blocks first, then regions."""
    if isinstance(asked, Workload):
        return _columns(release.answer(asked, **how))  # type: ignore[arg-type]
    parts = []
    if asked.low or asked.high:
        parts.append(Workload.ranges(release.schema, asked.low, asked.high))
    if asked.regions:
        plain = [
            [{name: [list(run) for run in runs] for name, runs in box.items()} for box in one] for one in asked.regions
        ]
        parts.append(Workload(release.schema, [region_from_data(release.schema, one) for one in plain]))
    if not parts:
        raise QueryError("there is nothing to answer; send queries, or blocks of cells")
    found = [_columns(release.answer(part, **how)) for part in parts]  # type: ignore[arg-type]
    joined = {name: [value for part in found for value in part[name]] for name in _COLUMNS}  # type: ignore[attr-defined]
    return found[0] | joined


def plain_answer(found: Found) -> dict[str, object]:
    """Return an answer, or answers by group, as plain data."""
    told = dict(found.to_dict())
    if isinstance(found, Answers):
        told["axes"] = {name: list(labels) for name, labels in found.axes.items()}
    return told


def export_table(release: Release, path: Path, by: list[str] | None, whole: bool, how: dict[str, object]) -> Path:
    """Write a table of a release into a file."""
    return release.export(path, by, whole, **how)  # type: ignore[arg-type]


def _columns(found: Answers) -> dict[str, object]:
    columns: dict[str, object] = {name: np.asarray(getattr(found, name)).tolist() for name in _COLUMNS}
    return columns | {"confidence": found.confidence, "privacy": found.privacy, "estimator": found.estimator}
