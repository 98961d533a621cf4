"""Facts about a release: sentences over counts of its cells, or many counts at once, as weighted sums of boxes.

A sentence speaks of ``total`` and of ``count(condition)``, the condition in SQL: ``"count(sex = 'Female') = 10771"``.
Thousands of known counts are given as arrays: a workload with its values, or a whole marginal. Labels that come with
them are never ignored: each count goes to the cell that its label names, since frames and published tables list their
groups in orders of their own.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from veilcube.analyst.refine.facts.boxes import Boxes, BoxSums, stack_sums
from veilcube.analyst.refine.facts.facts import Fact, FactSource, read_numbers
from veilcube.analyst.refine.facts.sentences import quoted, read_sentence
from veilcube.errors import CapacityError, QueryError
from veilcube.query import Workload, read_query
from veilcube.schema import Region, Schema
from veilcube.system import Floats, Integers


def labels_of(counts: object) -> dict[object, object] | None:
    """Return counts by their labels: of a mapping, or of a series whose index is not just 0, 1, 2, and so on."""
    if isinstance(counts, Mapping):
        return dict(counts)
    index = getattr(counts, "index", None)
    if index is None or callable(index) or not hasattr(counts, "items"):
        return None
    labels = list(index)
    if labels == list(range(len(labels))):
        return None
    return dict(zip(labels, np.asarray(counts).tolist(), strict=True))


def arrange(schema: Schema, names: Sequence[str], labelled: Mapping[object, object]) -> NDArray[np.float64]:
    """Return labelled counts as the marginal over some attributes; refuses labels that are not exactly its cells."""
    attributes = [schema[name] for name in names]
    shape = tuple(attribute.size for attribute in attributes)
    places = [{label: cell for cell, label in enumerate(attribute.labels())} for attribute in attributes]
    table = np.full(shape, np.nan)
    for label, count in labelled.items():
        parts = label if isinstance(label, tuple) else (label,)
        if len(parts) != len(names) or any(str(part) not in place for part, place in zip(parts, places, strict=True)):
            raise QueryError(
                f"c has a count for {label!r}, which is no cell of the marginal over {', '.join(names)}; "
                f"its cells are labelled as {tuple(next(iter(place)) for place in places)!r}"
            )
        table[tuple(place[str(part)] for part, place in zip(parts, places, strict=True))] = _number(count)
    if np.isnan(table).any():
        raise QueryError(
            f"c lacks counts for some cells of the marginal over {', '.join(names)}; give every cell, 0 where nobody is"
        )
    return table


def _number(count: object) -> float:
    if isinstance(count, bool) or not isinstance(count, int | float | np.integer | np.floating):
        raise QueryError("c must hold numbers: one known count for each label")
    return float(count)


ReleaseConstraints = str | Fact | Mapping[str, float] | Iterable["str | Fact | Mapping[str, float]"]
KnownCounts = Workload | str | Sequence[str]

# The covariance of the facts is a dense matrix: 12,000 facts take 1.2 GB.
MOST_FACTS = 12_000
_TOTAL = "total"
_QUOTES_SHOWN = 6


@dataclass(frozen=True, eq=False)
class ReleaseFacts:
    """Facts as rows: sums of boxes, ``constants`` and ``is_equality`` (rows,), and the sentence of each row."""

    sums: BoxSums
    constants: Floats
    is_equality: NDArray[np.bool_]
    facts: tuple[Fact, ...]

    def __len__(self) -> int:
        return len(self.facts)

    def take(self, chosen: Integers) -> "ReleaseFacts":
        """Return some of the rows."""
        facts = tuple(self.facts[index] for index in chosen.tolist())
        return ReleaseFacts(self.sums.take(chosen), self.constants[chosen], self.is_equality[chosen], facts)

    def quote(self, chosen: Iterable[int]) -> str:
        """Return the sentences of some rows as an error message lists them, each once, the first few."""
        sentences = list(dict.fromkeys(quoted(self.facts[index].sentence) for index in chosen))
        more = len(sentences) - _QUOTES_SHOWN
        return " and ".join(sentences[:_QUOTES_SHOWN]) + (f" and {more:,} more" if more > 0 else "")


def read_release_facts(
    schema: Schema,
    constraints: ReleaseConstraints | None,
    known: KnownCounts | None,
    values: ArrayLike | None,
    source: FactSource,
) -> ReleaseFacts:
    """Return the facts of sentences and of many known counts, in this order; ``source`` is that of unmarked ones."""
    parts = []
    if constraints is not None:
        parts.append(_read_sentences(schema, as_facts(constraints, source)))
    if known is not None:
        parts.append(_read_known(schema, known, values, source))
    elif values is not None:
        raise QueryError("c was given without B; give a workload or the names of attributes as B, and its counts as c")
    if not parts or not any(map(len, parts)):
        raise QueryError("there is no fact to refine with; give a sentence such as 'total = 32561', or B and c")
    return join_facts(schema, parts)


def join_facts(schema: Schema, parts: Sequence[ReleaseFacts]) -> ReleaseFacts:
    """Return the facts of several parts, one part after the other."""
    if (count := sum(map(len, parts))) > MOST_FACTS:
        raise CapacityError(
            f"a release can be refined with at most {MOST_FACTS:,} facts, not {count:,}; leave some out"
        )
    return ReleaseFacts(
        stack_sums(schema.shape, [part.sums for part in parts]),
        np.concatenate([part.constants for part in parts]),
        np.concatenate([part.is_equality for part in parts]),
        tuple(fact for part in parts for fact in part.facts),
    )


def as_facts(constraints: ReleaseConstraints, source: FactSource) -> list[Fact]:
    """Return facts as they may be given, as a list of sentences with their sources."""
    if isinstance(constraints, str | Fact | Mapping):
        constraints = [constraints]
    if not isinstance(constraints, Iterable) or isinstance(constraints, np.ndarray):
        raise QueryError("facts about a release are sentences such as 'total = 32561', or B and c for many counts")
    facts: list[Fact] = []
    for entry in constraints:
        if isinstance(entry, Mapping):
            facts += [Fact(_written(condition, value), source) for condition, value in entry.items()]
        else:
            facts.append(entry if isinstance(entry, Fact) else Fact(entry, source))
    return facts


def _written(condition: str, value: float) -> str:
    if not isinstance(condition, str):
        raise QueryError("a mapping of facts goes from conditions in SQL, or 'total', to numbers")
    number = read_numbers(value, "a known count")
    if number.ndim:
        raise QueryError("a known count of a mapping must be one number; give B and c for many counts at once")
    return f"{_TOTAL if condition.strip() == _TOTAL else f'count({condition})'} = {float(number):.17g}"


def _read_sentences(schema: Schema, facts: Sequence[Fact]) -> ReleaseFacts:
    regions: dict[str, int] = {}
    found: list[Region] = []
    rows: list[tuple[dict[str, float], float, bool, Fact]] = []
    for fact in facts:
        for relation in read_sentence(fact.sentence):
            for name in relation.weights:
                if name not in regions:
                    regions[name] = len(found)
                    found.append(_region_of(schema, name, fact))
            rows.append((relation.weights, relation.constant, relation.comparison == "=", fact))
    if len(rows) > MOST_FACTS:
        raise CapacityError(f"a release can be refined with at most {MOST_FACTS:,} facts; leave some out")
    entries = [
        (row, regions[name], weight) for row, (weights, *_) in enumerate(rows) for name, weight in weights.items()
    ]
    counts = BoxSums.of_regions(schema.shape, found)
    index = ([entry[0] for entry in entries], [entry[1] for entry in entries])
    weights = csr_array(([entry[2] for entry in entries], index), shape=(len(rows), len(found)))
    is_plain = counts.shares is None and entries == [(row, row, 1.0) for row in range(len(rows))]
    return ReleaseFacts(
        counts if is_plain else BoxSums(counts.boxes, csr_array(weights @ counts.matrix)),
        np.array([constant for _, constant, _, _ in rows], dtype=np.float64),
        np.array([is_equality for _, _, is_equality, _ in rows], dtype=bool),
        tuple(fact for *_, fact in rows),
    )


def _region_of(schema: Schema, name: str, fact: Fact) -> Region:
    if name == _TOTAL:
        return Region.everything(schema.shape)
    if not name.startswith("count("):
        raise QueryError(
            f"the constraint {quoted(fact.sentence)} names '{name}', which is no count of the release; write "
            f"total, or count(condition) about {', '.join(schema.names)}"
        )
    try:
        return read_query(schema, name[len("count(") : -1])
    except QueryError as problem:
        raise QueryError(f"in the constraint {quoted(fact.sentence)}, {problem}") from problem


def _read_known(schema: Schema, known: KnownCounts, values: ArrayLike | None, source: FactSource) -> ReleaseFacts:
    if values is None:
        raise QueryError("B was given without c; give one known count in c for each query or marginal cell of B")
    if isinstance(known, Workload):
        return _of_workload(schema, known, read_numbers(values, "c"), source)
    names = (known,) if isinstance(known, str) else tuple(known) if isinstance(known, Iterable) else ()
    if not names or not all(isinstance(name, str) for name in names):
        raise QueryError("on a release, B is a workload or the names of the attributes of a known marginal")
    labelled = labels_of(values)
    counts = read_numbers(values, "c") if labelled is None else arrange(schema, names, labelled)
    return _of_marginal(schema, names, counts, source)


def _of_workload(schema: Schema, workload: Workload, counts: Floats, source: FactSource) -> ReleaseFacts:
    if workload.schema != schema:
        raise QueryError("the workload is for another schema; build it with release.schema")
    if counts.shape != (len(workload),):
        raise QueryError(
            f"c must have one known count per query of B ({len(workload):,}), not the shape {counts.shape}"
        )
    _check_number(len(workload))
    if not is_of_blocks(workload):
        return facts_of_regions(schema, regions_of(schema, workload), counts, source)
    sums = BoxSums(Boxes(schema.shape, workload.low, workload.high))
    return _equal_to(sums, counts, _query_names(len(workload)), source)


def is_of_blocks(workload: Workload) -> bool:
    """Whether every query of a workload is one block with cells."""
    return not workload.regions and not (workload.high < workload.low).any()


def regions_of(schema: Schema, workload: Workload) -> list[Region]:
    """Return the queries of a workload as regions."""
    return [_region_of_row(schema, workload, row) for row in range(len(workload))]


def facts_of_regions(schema: Schema, regions: Sequence[Region], counts: Floats, source: FactSource) -> ReleaseFacts:
    """Return the known counts of regions, called by their places in the workload that they come from."""
    return _equal_to(BoxSums.of_regions(schema.shape, regions), counts, _query_names(len(regions)), source)


def _query_names(queries: int) -> list[str]:
    return [f"query {row}" for row in range(queries)]


def _region_of_row(schema: Schema, workload: Workload, row: int) -> Region:
    if row in workload.regions:
        return workload.regions[row]
    region = Region.everything(schema.shape)
    for axis, (first, last) in enumerate(zip(workload.low[row], workload.high[row], strict=True)):
        cells = np.arange(schema.shape[axis])
        region = region.intersect(Region.on_axis(schema.shape, axis, (cells >= first) & (cells <= last)))
    return region


def _of_marginal(schema: Schema, names: tuple[str, ...], counts: Floats, source: FactSource) -> ReleaseFacts:
    axes = [schema.axis(name) for name in names]
    if len(set(axes)) != len(axes):
        raise QueryError("an attribute of the known marginal is named twice; name each one once")
    shape = tuple(schema.shape[axis] for axis in axes)
    if counts.shape not in (shape, (prod(shape),)):
        raise QueryError(f"c must be the marginal over {', '.join(names)}, of the shape {shape}, not {counts.shape}")
    _check_number(counts.size)
    cells = np.indices(shape).reshape(len(axes), -1).T
    low = np.zeros((len(cells), len(schema)), dtype=np.int64)
    high = np.broadcast_to(np.array(schema.shape, dtype=np.int64) - 1, low.shape).copy()
    low[:, axes] = high[:, axes] = cells
    labels = [schema.attributes[axis].labels() for axis in axes]
    texts = [
        ", ".join(f"{name} {labels[place][cell]}" for place, (name, cell) in enumerate(zip(names, row, strict=True)))
        for row in cells.tolist()
    ]
    return _equal_to(BoxSums(Boxes(schema.shape, low, high)), counts.ravel(), texts, source)


def _equal_to(sums: BoxSums, counts: Floats, texts: Sequence[str], source: FactSource) -> ReleaseFacts:
    names = (text.replace("`", "'") for text in texts)
    facts = tuple(Fact(f"`{name}` = {count:.17g}", source) for name, count in zip(names, counts.tolist(), strict=True))
    return ReleaseFacts(sums, counts, np.ones(len(facts), dtype=bool), facts)


def _check_number(facts: int) -> None:
    if facts > MOST_FACTS:
        raise CapacityError(
            f"a release can be refined with at most {MOST_FACTS:,} facts, not {facts:,}; leave some out"
        )
