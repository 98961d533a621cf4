"""Answers as a service sends them, made into what the library returns for the same question."""

from datetime import date
from typing import Any

import numpy as np

from veilcube.analyst import DateAnswer
from veilcube.query import Answer, Answers, RankAnswer, RankAnswers

COLUMNS = ("value", "low", "high", "stddev")


def read_single(found: dict[str, Any], missing: float = float("nan")) -> Answer | DateAnswer:
    """Return one answer; ``missing`` is what JSON has no word for."""
    if "stddev" not in found:
        ends = [date.fromisoformat(found[name]) for name in ("value", "low", "high")]
        return DateAnswer(ends[0], ends[1], ends[2], found["confidence"], found["privacy"])
    value, low, high, stddev = (missing if found[name] is None else float(found[name]) for name in COLUMNS)
    return Answer(value, low, high, found["confidence"], stddev, found["privacy"], found.get("estimator", ""))


def read_groups(found: dict[str, Any], missing: float = float("nan")) -> Answers:
    """Return answers by group."""
    axes = {name: tuple(labels) for name, labels in found["axes"].items()}
    shape = tuple(map(len, axes.values()))
    value, low, high, stddev = (
        np.array([missing if one[name] is None else one[name] for one in found["answers"]], dtype=float).reshape(shape)
        for name in COLUMNS
    )
    return Answers(value, low, high, stddev, found["confidence"], found["privacy"], axes, found["estimator"])


def read_rank(found: dict[str, Any]) -> RankAnswer:
    """Return a value that was drawn from a domain."""
    ends: list[float | date] = [
        date.fromisoformat(found[name]) if isinstance(found[name], str) else float(found[name]) for name in COLUMNS[:3]
    ]
    return RankAnswer(ends[0], ends[1], ends[2], found["confidence"], found["rows"], found["privacy"])


def read_ranks(found: dict[str, Any]) -> RankAnswers:
    """Return many values of one domain."""
    plain = read_groups(found)
    arrays = (plain.value, plain.low, plain.high, plain.stddev)
    return RankAnswers(*arrays, plain.confidence, plain.privacy, plain.axes, rows=np.array(found["rows"], dtype=float))
