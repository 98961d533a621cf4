"""Plans: what a release would cost and how wrong its answers would be. No data is read and nothing is spent."""

from collections.abc import Mapping
from math import exp
from typing import Annotated

import numpy as np
from pydantic import BaseModel, Field, model_validator

from veilcube.planner import Plan, plan
from veilcube.privacy import Neighbours
from veilcube.query import Workload
from veilcube.schema import Schema
from veilcube.service.public.queries import Amount, WrittenQuery, read_written

MOST_QUESTIONS = 1000
_GUESSES = (0.5, 0.1, 0.01)


class PlanWish(BaseModel, extra="forbid"):
    """What a release should keep to: a budget, or an error, from which the epsilon follows."""

    epsilon: Amount | None = None
    delta: Amount | None = None
    rho: Amount | None = None
    error: Annotated[
        float | None, Field(gt=0, le=1e12, description="In place of epsilon: half the width of an interval.")
    ] = None
    confidence: Annotated[float, Field(gt=0, lt=1)] = 0.95
    strategy: Annotated[str, Field(max_length=40, examples=["auto"])] = "auto"
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    person: Annotated[str | None, Field(max_length=200)] = None
    max_rows: Annotated[int | None, Field(ge=1, le=10**9)] = None
    queries: Annotated[
        list[WrittenQuery], Field(max_length=MOST_QUESTIONS, description="Plan for these; unset, for random ranges.")
    ] = []

    @model_validator(mode="before")
    @classmethod
    def leave_out_what_is_empty(cls, given: object) -> object:
        """Take the empty fields of a form for what they are: fields that were left out."""
        if not isinstance(given, Mapping):
            return given
        kept = {name: value for name, value in given.items() if value != ""}
        if isinstance(kept.get("queries"), list):
            kept["queries"] = [one for one in kept["queries"] if not (isinstance(one, str) and not one.strip())]
        return kept


def planned(schema: Schema, wish: PlanWish) -> Plan:
    """Return the plan for a wish."""
    budget = {
        name: getattr(wish, name) for name in ("epsilon", "delta", "rho", "error") if getattr(wish, name) is not None
    }
    workload = Workload(schema, [read_written(query) for query in wish.queries]) if wish.queries else None
    return plan(
        schema,
        strategy=wish.strategy,
        workload=workload,
        neighbours=str(wish.neighbours),
        person=wish.person,
        max_rows=wish.max_rows,
        confidence=wish.confidence,
        **budget,
    )


def plan_facts(chosen: Plan, wish: PlanWish) -> dict[str, object]:
    """Return what there is to know about a plan, with the error of each question that it was made for."""
    half = chosen.half_widths(confidence=wish.confidence)
    stddevs = chosen.stddev(chosen.workload) if wish.queries else np.zeros(0)
    each = [
        {
            "query": query if isinstance(query, str) else {name: _plain(one) for name, one in query.items()},
            "stddev": float(stddev),
            "half_width": float(width),
        }
        for query, stddev, width in zip(wish.queries, stddevs, half, strict=False)
    ]
    return chosen.to_dict() | {
        "cells": chosen.schema.cells,
        "confidence": wish.confidence,
        "half_width": float(np.sqrt(np.mean(np.square(half)))),
        "queries": each,
        "risk": [{"before": odds, "after": _after(odds, float(chosen.epsilon))} for odds in _GUESSES],
    }


def _after(before: float, epsilon: float) -> float:
    """Return how probable a guess about somebody can become at most, of one that was so probable before.

    Her row changes the odds of any guess by a factor of at most exp(epsilon); a delta is the chance that it does more.
    """
    return before / (before + (1 - before) * exp(-min(epsilon, 700.0)))


def _plain(condition: object) -> object:
    if isinstance(condition, BaseModel):
        return condition.model_dump(by_alias=True, exclude_none=True)
    return [_plain(one) for one in condition] if isinstance(condition, list) else condition
