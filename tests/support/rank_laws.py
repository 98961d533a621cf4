"""Exact laws of rank mechanisms on small tables, and all small tables with their neighbours."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np

from veilcube.privacy.quantile_split import QuantileSplit, SplitNode, split_costs, spread_rows
from veilcube.privacy.rank_mechanisms import first_heads_law

Table = tuple[int, ...]


def small_tables(domain: int, most_rows: int) -> Iterator[Table]:
    for rows in range(most_rows + 1):
        for values in combinations_with_replacement(range(domain), rows):
            yield tuple(values.count(value) for value in range(domain))


def with_one_more(counts: Table) -> Iterator[Table]:
    for value in range(len(counts)):
        yield (*counts[:value], counts[value] + 1, *counts[value + 1 :])


def with_one_exchanged(counts: Table) -> Iterator[Table]:
    for value in range(len(counts)):
        if counts[value]:
            for other in with_one_more((*counts[:value], counts[value] - 1, *counts[value + 1 :])):
                if other != counts:
                    yield other


def split_law(
    counts: Sequence[int], split: QuantileSplit, budgets: Sequence[Fraction], slots: int
) -> dict[Table, float]:
    """Return the probability of every tuple of answers, by following all draws: a second telling of the mechanism."""
    rows = spread_rows(np.array(counts), slots)
    laws: dict[tuple[int | None, ...], float] = {(None,) * len(split.quantiles): 1.0}
    for node in split.nodes:
        longer: dict[tuple[int | None, ...], float] = {}
        for drawn, chance in laws.items():
            for place, share in _node_law(rows, node, drawn, budgets[node.level], slots).items():
                answers = (*drawn[: node.index], place, *drawn[node.index + 1 :])
                longer[answers] = longer.get(answers, 0.0) + chance * share
        laws = longer
    values: dict[Table, float] = {}
    for drawn, chance in laws.items():
        answer = tuple(place // slots for place in drawn if place is not None)
        values[answer] = values.get(answer, 0.0) + chance
    return values


def _node_law(
    rows: np.ndarray, node: SplitNode, drawn: tuple[int | None, ...], epsilon: Fraction, slots: int
) -> dict[int, float]:
    first = 0 if node.after is None else (drawn[node.after] or 0) + 1
    last = rows.size - 1 if node.before is None else drawn[node.before] or 0
    if first > last:
        return {last: 1.0}
    places = list(range(first, last + 1))
    inside = rows[first : last + 1]
    if node.is_last:
        values = sorted({place // slots for place in places})
        inside = np.array([sum(rows[p] for p in places if p // slots == value) for value in values])
        places = [next(p for p in places if p // slots == value) for value in values]
    costs = split_costs(inside, node, epsilon)
    law = first_heads_law(float(costs.rate) * costs.amounts.astype(float))
    return dict(zip(places, law.tolist(), strict=True))
