"""Facts about a release as they were given, which a file stores and reads back: sentences, and known counts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike

from veilcube.analyst.refine.facts.boxes import Boxes
from veilcube.analyst.refine.facts.facts import Fact, FactSource
from veilcube.analyst.refine.facts.release_facts import (
    MOST_FACTS,
    KnownCounts,
    ReleaseConstraints,
    ReleaseFacts,
    as_facts,
    facts_of_regions,
    is_of_blocks,
    read_release_facts,
    regions_of,
)
from veilcube.errors import QueryError
from veilcube.query import LinearQueries, Workload
from veilcube.record import History, region_from_data, region_to_data
from veilcube.schema import Region, Schema
from veilcube.system import Floats, require_memory

Known: TypeAlias = Workload | tuple[str, ...] | tuple[Region, ...]

_LONGEST_SENTENCE = 1 << 16
_NOT_WELL_FORMED = "the facts of the release are not well formed; ask for a new copy of the file"


@dataclass(frozen=True, eq=False)
class GivenFacts:
    """Sentences, and ``counts`` of a workload, of the marginal over some attributes, or of regions; and their rows."""

    schema: Schema
    sentences: tuple[Fact, ...]
    known: Known
    counts: Floats
    source: FactSource
    rows: ReleaseFacts

    @classmethod
    def read(
        cls,
        schema: Schema,
        constraints: ReleaseConstraints | None,
        known: KnownCounts | None,
        values: ArrayLike | None,
        source: FactSource,
    ) -> "GivenFacts":
        """Return the facts that a user gave; ``source`` is that of unmarked ones."""
        sentences = None if constraints is None else tuple(as_facts(constraints, source))
        if known is not None and isinstance(known, Iterable) and not isinstance(known, str | Workload):
            known = tuple(known)
        rows = read_release_facts(schema, sentences, known, values, source)
        if known is None:
            return cls(schema, sentences or (), (), np.empty(0), source, rows)
        listed = (known,) if isinstance(known, str) else known
        many = len(listed) if isinstance(listed, Workload) else prod(schema[name].size for name in listed)
        return cls(schema, sentences or (), listed, rows.constants[len(rows) - many :], source, rows)

    def to_data(self) -> list[dict[str, object]]:
        """Return plain data to rebuild the facts from."""
        found: list[dict[str, object]] = []
        if self.sentences:
            facts = [{"sentence": fact.sentence, "source": fact.source} for fact in self.sentences]
            found.append({"kind": "sentences", "facts": facts})
        if not len(self.known):
            return found
        counts: dict[str, object] = {"counts": self.counts.tolist(), "source": self.source}
        if isinstance(self.known, Workload) and is_of_blocks(self.known):
            return [
                *found,
                {"kind": "blocks", "low": self.known.low.tolist(), "high": self.known.high.tolist()} | counts,
            ]
        if isinstance(self.known, Workload) or isinstance(self.known[0], Region):
            known = regions_of(self.schema, self.known) if isinstance(self.known, Workload) else self.known
            regions = [region_to_data(self.schema, region) for region in known]
            return [*found, {"kind": "regions", "regions": regions} | counts]
        return [*found, {"kind": "marginal", "attributes": list(self.known)} | counts]

    @classmethod
    def from_data(cls, schema: Schema, data: object) -> list["GivenFacts"]:
        """Rebuild facts, part by part, from ``to_data``; the data may have been changed by anybody."""
        entries = _list(data)
        if not entries or len(entries) > MOST_FACTS:
            raise QueryError(_NOT_WELL_FORMED)
        return [cls._from_entry(schema, _mapping(entry)) for entry in entries]

    @classmethod
    def _from_entry(cls, schema: Schema, entry: Mapping[str, object]) -> "GivenFacts":
        if entry["kind"] == "sentences":
            given = [_mapping(fact) for fact in _list(entry["facts"])]
            sentences = [Fact(_sentence(fact["sentence"]), cast("FactSource", fact["source"])) for fact in given]
            return cls.read(schema, sentences, None, None, "unstated")
        source = Fact("x = 0", cast("FactSource", entry["source"])).source
        counts = _numbers(entry["counts"])
        if entry["kind"] == "marginal":
            return cls.read(schema, None, cast("list[str]", _list(entry["attributes"])), counts, source)
        if entry["kind"] == "blocks":
            low, high = (_corners(entry[end], len(counts), len(schema)) for end in ("low", "high"))
            return cls.read(schema, None, Workload.ranges(schema, low, high), counts, source)
        if entry["kind"] != "regions":
            raise QueryError(_NOT_WELL_FORMED)
        regions = _regions(schema, _list(entry["regions"]), len(counts))
        rows = facts_of_regions(schema, regions, counts, source)
        return cls(schema, (), tuple(regions), counts, source, rows)


def _list(data: object) -> Sequence[object]:
    if not isinstance(data, list):
        raise QueryError(_NOT_WELL_FORMED)
    return data


def _mapping(data: object) -> Mapping[str, object]:
    if not isinstance(data, Mapping):
        raise QueryError(_NOT_WELL_FORMED)
    return data


def _sentence(data: object) -> str:
    if not isinstance(data, str) or len(data) > _LONGEST_SENTENCE:
        raise QueryError(_NOT_WELL_FORMED)
    return data


def _numbers(data: object) -> Floats:
    numbers = _list(data)
    if not 0 < len(numbers) <= MOST_FACTS or not all(type(number) in (int, float) for number in numbers):
        raise QueryError(_NOT_WELL_FORMED)
    return np.array(numbers, dtype=np.float64)


def _corners(data: object, rows: int, attributes: int) -> np.ndarray:
    corners = [_list(row) for row in _list(data)]
    is_whole = all(len(row) == attributes and all(type(cell) is int for cell in row) for row in corners)
    if len(corners) != rows or not is_whole:
        raise QueryError(_NOT_WELL_FORMED)
    return np.array(corners, dtype=np.int64)


def _regions(schema: Schema, data: Sequence[object], many: int) -> list[Region]:
    """Return regions; what their masks take is known before any is made."""
    boxes = [_mapping(box) for region in data for box in _list(region)]
    if len(data) != many:
        raise QueryError(_NOT_WELL_FORMED)
    needed = sum(schema[name].size for box in boxes for name in box)
    require_memory(2 * needed, "the facts of the release", "open it on a larger machine")
    return [region_from_data(schema, region) for region in data]


def exact_history(schema: Schema, facts: ReleaseFacts) -> History:
    """Return facts as a history: exact answers to linear queries."""
    boxes, matrix = facts.sums.boxes, facts.sums.matrix
    narrowed = (boxes.low > 0) | (boxes.high < np.array(schema.shape) - 1)
    needed = 2 * 8 * int((narrowed @ np.array(schema.shape)).sum())
    require_memory(needed, "learning from the facts of the release", "refine it with fewer facts")
    queries = []
    for row in range(len(facts)):
        entries = slice(matrix.indptr[row], matrix.indptr[row + 1])
        pairs = zip(matrix.indices[entries].tolist(), matrix.data[entries].tolist(), strict=True)
        queries.append([_term(boxes, box, weight) for box, weight in pairs])
    return History(schema, LinearQueries.of_terms(schema, queries), facts.constants, np.zeros(len(facts)))


def _term(boxes: Boxes, row: int, weight: float) -> dict[int, Floats]:
    """Return a weighted box as the weights of the cells of each attribute that it narrows."""
    term: dict[int, Floats] = {}
    for axis, (sets, which) in enumerate(boxes.axes):
        weights = sets.weights(which[[row]])[0]
        if weights.min() < 1:
            term[axis] = weights
    first = min(term, default=0)
    if weight != 1:
        term[first] = weight * term.get(first, np.ones(boxes.shape[first]))
    return term
