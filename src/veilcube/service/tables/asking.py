"""Questions to protected tables as JSON: how rows were narrowed, what is asked of them, and what is paid for it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from pydantic import BaseModel, Field

from veilcube.curator import ProtectedTable
from veilcube.errors import QueryError
from veilcube.query import Answers
from veilcube.record import region_from_data
from veilcube.service.public import Amount, QueryText, WrittenQuery, plain_answer, read_written

Kind = Literal["count", "sum", "mean", "moment", "marginal", "max", "min", "quantile", "quantiles"]
Label: TypeAlias = Annotated[str, Field(max_length=1000)] | int | float
Name: TypeAlias = Annotated[str, Field(max_length=200)]
MOST_STEPS, MOST_NAMES = 32, 64


class Step(BaseModel, extra="forbid"):
    """One step from the whole table to the rows in view, as ``where``, ``select`` and ``partition`` make them."""

    where: WrittenQuery | None = None
    region: Annotated[
        list[dict[str, list[tuple[int, int]]]] | None, Field(max_length=10_000, description="Cells, as programs do.")
    ] = None
    select: Annotated[list[Name] | None, Field(max_length=MOST_NAMES)] = None
    part: Annotated[
        dict[str, Label] | None, Field(max_length=MOST_NAMES, description="One part of the partition by these.")
    ] = None

    def take(self, table: ProtectedTable) -> ProtectedTable:
        """Return the rows in view after this step."""
        given = [name for name in ("where", "region", "select", "part") if getattr(self, name) is not None]
        if len(given) != 1:
            raise QueryError("a step says one of where, region, select and part")
        if self.where is not None:
            return table.where(read_written(self.where))
        if self.region is not None:
            boxes = [{name: [list(run) for run in runs] for name, runs in box.items()} for box in self.region]
            return table.where(region_from_data(table.schema, boxes))
        if self.select is not None:
            return table.select(self.select)
        part = self.part or {}
        return table.partition(*part)[tuple(part.values())]


class Question(BaseModel, extra="forbid"):
    """What is asked of the rows in view, whatever is paid for it."""

    where: Annotated[QueryText | dict[str, Any] | None, Field(description="Which rows; unset, all.")] = None
    steps: Annotated[list[Step], Field(max_length=MOST_STEPS)] = []
    column: Annotated[Name | None, Field(examples=["age"])] = None
    by: Annotated[list[Name], Field(max_length=MOST_NAMES, description="Attributes to group by.")] = []
    powers: Annotated[dict[str, int] | None, Field(max_length=MOST_NAMES)] = None
    quantile: Annotated[float | None, Field(ge=0, le=1)] = None
    quantiles: Annotated[list[Annotated[float, Field(ge=0, le=1)]], Field(max_length=1000)] = []
    rank: Annotated[int | None, Field(ge=1, le=2**53)] = None
    method: Annotated[str | None, Field(max_length=40)] = None
    interval: Annotated[Amount | None, Field(description="A share of epsilon for the ends of an interval.")] = None
    rows: Annotated[int | None, Field(ge=0, le=2**53)] = None
    confidence: Annotated[float, Field(gt=0, lt=1)] = 0.95


class Asked(Question, extra="forbid"):
    """A question with what is paid for it: an epsilon, with a delta or without, or a rho.

    ``request`` is a name that the asker gives this question: sent again, it is not charged again.
    """

    epsilon: Amount | None = None
    delta: Amount | None = None
    rho: Amount | None = None
    fresh: Annotated[bool, Field(description="Draw anew, and pay, though there may be a stored answer.")] = False
    request: Annotated[str | None, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")] = None


Way: TypeAlias = Callable[[ProtectedTable, Asked, Mapping[str, Any]], Any]


def ask(table: ProtectedTable, kind: Kind, asked: Asked) -> dict[str, object]:
    """Ask a protected table, and return the answer as plain data."""
    if asked.where is not None:
        table = Step.model_validate({"where": asked.where}).take(table)
    for step in asked.steps:
        table = step.take(table)
    offer = {name: getattr(asked, name) for name in ("epsilon", "delta", "rho")}
    return _plain(_WAYS[kind](table, asked, offer | {"confidence": asked.confidence, "fresh": asked.fresh}))


def _plain(found: Any) -> dict[str, object]:
    if not isinstance(found, Answers):
        return dict(found.to_dict())
    told = plain_answer(found)
    if hasattr(found, "rows"):
        told["rows"] = np.asarray(found.rows).ravel().tolist()
    return told


def _count(table: ProtectedTable, asked: Asked, how: Mapping[str, Any]) -> Any:
    return (table.partition(*asked.by) if asked.by else table).noisy_count(**how)


def _sum(table: ProtectedTable, asked: Asked, how: Mapping[str, Any]) -> Any:
    return (table.partition(*asked.by) if asked.by else table).noisy_sum(_column(asked), **how)


def _mean(table: ProtectedTable, asked: Asked, how: Mapping[str, Any]) -> Any:
    return (table.partition(*asked.by) if asked.by else table).noisy_mean(_column(asked), **how)


def _moment(table: ProtectedTable, asked: Asked, how: Mapping[str, Any]) -> Any:
    if asked.by:
        raise QueryError("a moment is of all rows in view; leave by out, or ask part by part")
    return table.noisy_moment(asked.powers or {}, **how)


def _marginal(table: ProtectedTable, asked: Asked, how: Mapping[str, Any]) -> Any:
    return table.noisy_marginal(*asked.by, **how)


def _max(table: ProtectedTable, asked: Asked, how: Mapping[str, Any]) -> Any:
    return table.noisy_max(_column(asked), **_ranked(asked, how))


def _min(table: ProtectedTable, asked: Asked, how: Mapping[str, Any]) -> Any:
    return table.noisy_min(_column(asked), **_ranked(asked, how))


def _quantile(table: ProtectedTable, asked: Asked, how: Mapping[str, Any]) -> Any:
    return table.noisy_quantile(_column(asked), asked.quantile, rank=asked.rank, **_ranked(asked, how))


def _quantiles(table: ProtectedTable, asked: Asked, how: Mapping[str, Any]) -> Any:
    if asked.by:
        raise QueryError("quantiles are of all rows in view; leave by out, or ask part by part")
    return table.noisy_quantiles(_column(asked), asked.quantiles, rows=asked.rows, **_with_method(asked, how))


def _ranked(asked: Asked, how: Mapping[str, Any]) -> Mapping[str, Any]:
    if asked.by:
        raise QueryError("maxima, minima and quantiles are of all rows in view; leave by out, or ask part by part")
    return {**_with_method(asked, how), "interval": asked.interval}


def _with_method(asked: Asked, how: Mapping[str, Any]) -> Mapping[str, Any]:
    return how if asked.method is None else {**how, "method": asked.method}


def _column(asked: Asked) -> str:
    if asked.column is None:
        raise QueryError("name the attribute that is asked about, as column")
    return asked.column


_WAYS: Mapping[Kind, Way] = {
    "count": _count,
    "sum": _sum,
    "mean": _mean,
    "moment": _moment,
    "marginal": _marginal,
    "max": _max,
    "min": _min,
    "quantile": _quantile,
    "quantiles": _quantiles,
}
KINDS: Sequence[Kind] = tuple(_WAYS)
