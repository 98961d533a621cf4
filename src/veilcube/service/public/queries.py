"""Questions as JSON: SQL text, or attributes with conditions, where a range is ``{"from": 30, "to": 39}``."""

from collections.abc import Mapping
from typing import Annotated, TypeAlias

from pydantic import BaseModel, Field

from veilcube.errors import QueryError
from veilcube.query import Query

_LONGEST = 10_000
_MOST_VALUES = 10_000

_Text: TypeAlias = Annotated[str, Field(max_length=64)]
Amount: TypeAlias = Annotated[
    _Text | float, Field(description="An exact amount: a number, or a text such as '1/3'.", examples=["0.1"])
]
QueryText = Annotated[str, Field(max_length=_LONGEST, examples=["age BETWEEN 30 AND 39 AND sex = 'Female'"])]


class Range(BaseModel, extra="forbid"):
    """An inclusive range of an ordinal attribute; an end that is left out is open."""

    from_: Annotated[float | _Text | None, Field(alias="from")] = None
    to: float | _Text | None = None


Value: TypeAlias = Annotated[str, Field(max_length=1000)] | int | float | bool | None
Condition: TypeAlias = Range | Value | Annotated[list[Value | Range], Field(max_length=_MOST_VALUES)]
WrittenQuery: TypeAlias = (
    QueryText
    | Annotated[dict[str, Condition], Field(max_length=64, examples=[{"age": {"from": 30, "to": 39}, "sex": "Female"}])]
)


def read_written(query: WrittenQuery) -> Query:
    """Return a query as the library takes it."""
    if isinstance(query, str):
        return query
    if not isinstance(query, Mapping):
        raise QueryError('a query is SQL text, or an object such as {"age": {"from": 30, "to": 39}}')
    return {name: _condition(one) for name, one in query.items()}


def _condition(one: object) -> object:
    if isinstance(one, Range):
        return (one.from_, one.to)
    return [_condition(inner) for inner in one] if isinstance(one, list) else one
