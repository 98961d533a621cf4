"""Every small table and every neighbour: no output of a protected table is more than exp(epsilon) times likelier.

Discrete Laplace noise of scale s on an integer makes the largest log-ratio of two neighbouring tables' probabilities
|difference| / s exactly, and independent noises add up; so the ratios below are exact fractions, not estimates.
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from conformance.small_tables import SCHEMAS, cube_of, neighbour_pairs
from support.protected import Published, recorded_table
from veilcube.curator.protected.table import ProtectedTable
from veilcube.curator.protected.view import View
from veilcube.privacy import PrivacyUnit

EPSILON = Fraction(1, 3)
AGES, AGES_AND_SEXES = SCHEMAS[0], SCHEMAS[1]
UNITS = {1: PrivacyUnit.row(), 2: PrivacyUnit.person("id", 2)}


def each_part(table: ProtectedTable) -> None:
    """Spend on each part on its own, up to epsilon on each: together they may cost no more than one of them."""
    parts = table.partition("age")
    parts[1].noisy_count(epsilon=EPSILON)
    parts[2].noisy_sum("age", epsilon=EPSILON / 2)
    parts[2].noisy_count(epsilon=EPSILON / 2)
    parts[3].where(sex="Female").noisy_count(epsilon=EPSILON)


def parts_within_parts(table: ProtectedTable) -> None:
    inner = table.partition("sex")["Female"].partition("age")
    for age in (1, 2, 3):
        inner[age].noisy_count(epsilon=EPSILON)
    table.partition("sex")["Male"].noisy_mean("age", epsilon=EPSILON)


QUESTIONS: dict[str, Callable[[ProtectedTable], object]] = {
    "count of some": lambda table: table.where("age <= 2").noisy_count(epsilon=EPSILON),
    "count of an irregular region": lambda table: table.where("age = 1 OR sex = 'Male'").noisy_count(epsilon=EPSILON),
    "sum": lambda table: table.noisy_sum("age", epsilon=EPSILON),
    "sum of some": lambda table: table.where(age=(1, 2)).noisy_sum("age", epsilon=EPSILON),
    "second moment": lambda table: table.noisy_moment({"age": 2}, epsilon=EPSILON),
    "mean": lambda table: table.noisy_mean("age", epsilon=EPSILON),
    "mean of some": lambda table: table.where(sex="Male").noisy_mean("age", epsilon=EPSILON),
    "marginal": lambda table: table.noisy_marginal("age", "sex", epsilon=EPSILON),
    "counts of parts": lambda table: table.partition("sex").noisy_count(epsilon=EPSILON),
    "sums of parts": lambda table: table.partition("sex").noisy_sum("age", epsilon=EPSILON),
    "means of parts": lambda table: table.partition("sex").noisy_mean("age", epsilon=EPSILON),
    "each part on its own": each_part,
    "parts within parts": parts_within_parts,
}


def largest_ratio(
    ask: Callable[[ProtectedTable], object], neighbours: str, max_rows: int, most_records: int
) -> Fraction:
    """Return the largest log-ratio of the probabilities of any output on a small table and any neighbour of it."""
    tables, left, right = neighbour_pairs(neighbours, max_rows)
    sizes = np.array([len(records) for records in tables])
    is_small = np.minimum(sizes[left], sizes[right]) <= most_records
    used, places = np.unique(np.stack([left[is_small], right[is_small]]), return_inverse=True)
    left, right = places.reshape(2, -1)
    published = [_publish(ask, tables[place], neighbours, max_rows) for place in used]
    scales = [scale for part in published[0] for scale in part.scales * len(part.exact)]
    assert all([scale for part in other for scale in part.scales * len(part.exact)] == scales for other in published)
    exact = np.array([[value for part in parts for value in part.exact] for parts in published])
    changes = np.unique(np.abs(exact[left] - exact[right]), axis=0)
    return max(sum((int(c) / s for c, s in zip(row, scales, strict=True)), Fraction(0)) for row in changes)


def _publish(
    ask: Callable[[ProtectedTable], object], records: tuple[int, ...], neighbours: str, max_rows: int
) -> list[Published]:
    table, published = recorded_table(cube_of(AGES_AND_SEXES, records, UNITS[max_rows]), neighbours)
    ask(table)
    return published


@pytest.mark.parametrize("most_records", [1, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("max_rows", UNITS)
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("name", QUESTIONS)
def test_no_output_is_likelier_than_the_promise_allows(
    name: str, neighbours: str, max_rows: int, most_records: int
) -> None:
    ratio = largest_ratio(QUESTIONS[name], neighbours, max_rows, most_records)
    assert ratio <= EPSILON
    # Noise for twice the sensitivity would pass as well: no more than what the promise needs may be added.
    assert ratio > EPSILON / 2


def test_parts_without_the_factor_for_exchanged_rows_would_break_the_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(View, "is_part", False)
    assert largest_ratio(each_part, "replace", 1, 1) > EPSILON


def test_the_statement_of_each_measurement_is_about_its_noise() -> None:
    table, published = recorded_table(cube_of(AGES, (0, 3), PrivacyUnit.row()), "add-remove")
    table.noisy_sum("age", epsilon=EPSILON)
    (measured,) = published
    assert measured.exact == (1 + 4,)
    assert measured.scales == (6 / EPSILON,)
    assert measured.statement.event.to_dict() == {"kind": "laplace", "sensitivity": 6, "scale": "18"}
