"""Questions to releases: free, as many as anybody likes, each a URL."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from veilcube.errors import QueryError
from veilcube.query import Workload
from veilcube.service.public import Blocks, WrittenQuery, answer_all, plain_answer, read_written
from veilcube.service.routes.manner import ByNames, Column, Confidence, Estimator, Interval, Rows, Where
from veilcube.service.web import AnyCaller, Name, TheService, data_route, page

router = APIRouter(tags=["questions to releases"])
MOST_QUERIES = 10_000
Statistic = Literal["count", "sum", "mean", "variance", "median", "quantile", "share"]
_ONE = {"value": 812.4, "low": 790.1, "high": 834.7, "confidence": 0.95, "stddev": 11.4, "estimator": "least_squares"}
_MANY = {"value": [812.4], "low": [790.1], "high": [834.7], "stddev": [11.4], "confidence": 0.95}
_GROUPS = {"answers": [{"sex": "Female", **_ONE}], "axes": {"sex": ["Female"]}}


class Asked(BaseModel, extra="forbid"):
    """Many counts at once: queries as people write them, or cells as programs do."""

    queries: Annotated[
        list[WrittenQuery],
        Field(max_length=MOST_QUERIES, examples=[[{"age": {"from": 30, "to": 39}}, "sex = 'Female'"]]),
    ] = []
    cells: Blocks | None = None
    estimator: Annotated[str, Field(max_length=40)] = "best"
    confidence: Annotated[float, Field(gt=0, lt=1)] = 0.95
    interval: Literal["calibrated", "guaranteed"] = "calibrated"
    rows: Literal["kept", "all"] = "kept"
    spread: Annotated[float | None, Field(ge=1, le=1e9)] = None


@page(router, "/releases/{name}/count", "answer.html", example=_ONE)
def count(
    name: Name,
    caller: AnyCaller,
    service: TheService,
    where: Where = None,
    estimator: Estimator = "best",
    confidence: Confidence = 0.95,
    interval: Interval = "calibrated",
    rows: Rows = "kept",
) -> dict[str, object]:
    """Count the rows that meet a condition; SQL with GROUP BY gives an answer for each group."""
    release = service.shelf.release(name, estimator)
    found = release.count(where or {}, estimator=estimator, confidence=confidence, interval=interval, rows=rows)
    return plain_answer(found)


@data_route(router, "/releases/{name}/answer.json", "POST", example=_MANY)
def answer(name: Name, asked: Asked, caller: AnyCaller, service: TheService) -> dict[str, object]:
    """Answer many counts at once: columns of values and interval ends, in the order of the queries."""
    release = service.shelf.release(name, asked.estimator)
    if bool(asked.queries) == (asked.cells is not None):
        raise QueryError("send either queries or cells, and at least one")
    workload = asked.cells or Workload(release.schema, [read_written(query) for query in asked.queries])
    how = {name: getattr(asked, name) for name in ("estimator", "confidence", "interval", "rows", "spread")}
    return answer_all(release, workload, **how)


@page(router, "/releases/{name}/marginal", "answer.html", example=_GROUPS)
def marginal(
    name: Name,
    caller: AnyCaller,
    service: TheService,
    by: ByNames,
    where: Where = None,
    estimator: Estimator = "best",
    confidence: Confidence = 0.95,
) -> dict[str, object]:
    """Count the rows of every combination of the values of attributes."""
    release = service.shelf.release(name, estimator)
    return plain_answer(release.marginal(*by, where=where, estimator=estimator, confidence=confidence))


@page(router, "/releases/{name}/group", "answer.html", example=_GROUPS)
def group(
    name: Name,
    caller: AnyCaller,
    service: TheService,
    by: ByNames,
    statistic: Statistic = "count",
    column: Annotated[str | None, Query(max_length=200, examples=["age"])] = None,
    where: Where = None,
    condition: Where = None,
    rank: Annotated[float | None, Query(ge=0, le=1)] = None,
    estimator: Estimator = "best",
    confidence: Confidence = 0.95,
) -> dict[str, object]:
    """Estimate a statistic of every group."""
    release = service.shelf.release(name, estimator)
    how = {"where": where, "condition": condition, "rank": rank, "estimator": estimator, "confidence": confidence}
    return plain_answer(release.group(list(by), statistic, column, **how))  # type: ignore[arg-type]


@page(router, "/releases/{name}/sql", "answer.html", example={"answers": {"COUNT(*)": _ONE}})
def sql(
    name: Name,
    caller: AnyCaller,
    service: TheService,
    statement: Annotated[str, Query(max_length=10_000, examples=["SELECT COUNT(*), AVG(age) FROM t GROUP BY sex"])],
    estimator: Estimator = "best",
    confidence: Confidence = 0.95,
) -> dict[str, object]:
    """Answer a SQL statement of several statistics. It is read, never run: there is no table here."""
    release = service.shelf.release(name, estimator)
    found = release.ask(statement, estimator=estimator, confidence=confidence)
    return {"answers": {title: plain_answer(one) for title, one in found.items()}}


@page(router, "/releases/{name}/quantile", "answer.html", example={**_ONE, "value": 37.0, "low": 36.0, "high": 38.0})
def quantile(
    name: Name,
    caller: AnyCaller,
    service: TheService,
    column: Column,
    rank: Annotated[float, Query(ge=0, le=1, description="0.5 is the median.")] = 0.5,
    where: Where = None,
    estimator: Estimator = "best",
    confidence: Confidence = 0.95,
) -> dict[str, object]:
    """Estimate a quantile of an ordinal attribute."""
    release = service.shelf.release(name, estimator)
    return plain_answer(release.quantile(column, rank, where=where, estimator=estimator, confidence=confidence))


@page(router, "/releases/{name}/cdf", "answer.html", example={"answers": [{"age": "17", **_ONE}]})
def cdf(
    name: Name,
    caller: AnyCaller,
    service: TheService,
    column: Column,
    where: Where = None,
    estimator: Estimator = "best",
    confidence: Confidence = 0.95,
) -> dict[str, object]:
    """Estimate, for every value of an ordinal attribute, the share of rows at or below it."""
    release = service.shelf.release(name, estimator)
    return plain_answer(release.cdf(column, where=where, estimator=estimator, confidence=confidence))


@page(router, "/releases/{name}/sum", "answer.html", example=_ONE)
def sum_of(
    name: Name,
    caller: AnyCaller,
    service: TheService,
    column: Column,
    where: Where = None,
    estimator: Estimator = "best",
    confidence: Confidence = 0.95,
) -> dict[str, object]:
    """Estimate the sum of an ordinal attribute."""
    release = service.shelf.release(name, estimator)
    return plain_answer(release.sum(column, where=where, estimator=estimator, confidence=confidence))


@page(router, "/releases/{name}/mean", "answer.html", example={**_ONE, "value": 38.6, "low": 38.2, "high": 39.0})
def mean_of(
    name: Name,
    caller: AnyCaller,
    service: TheService,
    column: Column,
    where: Where = None,
    estimator: Estimator = "best",
    confidence: Confidence = 0.95,
) -> dict[str, object]:
    """Estimate the mean of an ordinal attribute."""
    release = service.shelf.release(name, estimator)
    return plain_answer(release.mean(column, where=where, estimator=estimator, confidence=confidence))
