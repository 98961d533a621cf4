"""What the Explore page of a release knows: attributes in runs, and how every answer about them is computed."""

import base64
from collections.abc import Mapping, Sequence
from math import prod
from typing import Protocol

import numpy as np

from veilcube.analyst.estimate import Estimate, PlainData, PortableEstimate
from veilcube.analyst.publish.asked import Asked, ask_in_advance, cut_for_asking
from veilcube.analyst.publish.cutting import Cut, cut
from veilcube.privacy import PrivacyStatement
from veilcube.query import Workload, read_confidence
from veilcube.schema import Schema
from veilcube.system import Integers, show_confidence

FORMAT = 1
# Of more cells a page takes too long to load.
MOST_CELLS, MOST_CELLS_READ = 2**20, 2**26
BEYOND_32_BITS = 2**31


class Explored(Asked, Protocol):
    """A release, or what answers as one does."""

    @property
    def privacy(self) -> PrivacyStatement:
        """The promise."""

    @property
    def has_model(self) -> bool:
        """Whether a model of the whole table answers it, which needs no cells."""

    @property
    def counted(self) -> str | None:
        """What a reader must know about the rows behind the counts."""

    def _estimate(self, name: str) -> Estimate: ...


def explored(release: Explored, title: str, *, estimator: str = "best", confidence: float = 0.95) -> dict[str, object]:
    """Return all that the Explore page reads, as plain data for JSON; arrays are packed as base64."""
    level = read_confidence(confidence)
    cuts, values, intervals, named = _answers(release, estimator, level)
    return {
        "format": FORMAT,
        "title": title,
        "privacy": str(release.privacy),
        "counted": release.counted,
        "cells": release.schema.cells,
        "confidence": level,
        "confidence_words": show_confidence(level),
        "estimator": named,
        "attributes": [one.to_dict(release.schema) for one in cuts],
        "values": _packed(values),
        "intervals": _packed(intervals),
    }


def _answers(release: Explored, estimator: str, level: float) -> tuple[Sequence[Cut], PlainData, PlainData, str]:
    """Return how answers are computed where that can be told, else answers that are asked for in advance."""
    fitted, schema = release._estimate(estimator), release.schema
    if isinstance(fitted, PortableEstimate) and (schema.cells <= MOST_CELLS_READ or release.has_model):
        cuts = [cut(attribute) for attribute in schema]
        if prod(len(one.runs) for one in cuts) <= MOST_CELLS or release.has_model:
            found = fitted.portable([one.runs for one in cuts], level)
            if found is not None and np.asarray(found.values.get("cells")).size <= MOST_CELLS:
                everything = Workload.ranges(schema, *ends_of_everything(schema))
                return cuts, found.values, found.intervals, release.answer(everything, estimator=estimator).estimator
    cuts = cut_for_asking(schema)
    asked, named = ask_in_advance(release, cuts, estimator, level)
    return cuts, asked, {}, named


def ends_of_everything(schema: Schema) -> tuple[Integers, Integers]:
    """Return the lowest and the highest cell of the whole cube, as one block."""
    last = np.array([schema.shape], dtype=np.int64) - 1
    return np.zeros_like(last), last


def _packed(value: object) -> object:
    """Return plain data for JSON: arrays as base64 of little-endian numbers, whole ones in 32 bits if they fit."""
    if isinstance(value, Mapping):
        return {name: _packed(one) for name, one in value.items()}
    if isinstance(value, np.ndarray):
        is_whole = value.dtype.kind in "iu" and bool((np.abs(value) < BEYOND_32_BITS).all())
        kind = "i4" if is_whole else "f8"
        data = base64.b64encode(np.ascontiguousarray(value).astype(f"<{kind}").tobytes()).decode()
        return {"array": kind, "shape": list(value.shape), "data": data}
    if isinstance(value, list | tuple):
        return [_packed(one) for one in value]
    return value
