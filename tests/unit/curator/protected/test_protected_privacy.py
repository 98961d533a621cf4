"""Every small table and every neighbour: no output of a protected table is more than exp(epsilon) times likelier.

Discrete Laplace noise of scale s on an integer makes the largest log-ratio of two neighbouring tables' probabilities
|difference| / s exactly, and independent noises add up; so the ratios below are exact fractions, not estimates. In the
same way Gaussian noise of parameter sigma² makes all Renyi divergences of order alpha at most
alpha difference² / (2 sigma²), and these add up.

What is proved in docs/proofs/protected-tables.md is tested here.
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from conformance.small_tables import SCHEMAS, cube_of, neighbour_pairs
from support.protected import Published, recorded_table
from veilcube.curator.protected.table import ProtectedTable
from veilcube.curator.protected.view import View
from veilcube.laws import Noise
from veilcube.privacy import PrivacyUnit

EPSILON = Fraction(1, 3)
PROMISES: dict[str, Callable[[Fraction], dict[str, Fraction]]] = {
    "laplace": lambda share: {"epsilon": EPSILON * share},
    "gaussian": lambda share: {"rho": EPSILON * share},
}
ALL, HALF = Fraction(1), Fraction(1, 2)
Pay = Callable[[Fraction], dict[str, Fraction]]
AGES, AGES_AND_SEXES = SCHEMAS[0], SCHEMAS[1]
UNITS = {1: PrivacyUnit.row(), 2: PrivacyUnit.person("id", 2)}


def each_part(table: ProtectedTable, pay: Pay) -> None:
    """Spend on each part on its own, up to epsilon on each: together they may cost no more than one of them."""
    parts = table.partition("age")
    parts[1].noisy_count(**pay(ALL))
    parts[2].noisy_sum("age", **pay(HALF))
    parts[2].noisy_count(**pay(HALF))
    parts[3].where(sex="Female").noisy_count(**pay(ALL))


def parts_within_parts(table: ProtectedTable, pay: Pay) -> None:
    inner = table.partition("sex")["Female"].partition("age")
    for age in (1, 2, 3):
        inner[age].noisy_count(**pay(ALL))
    table.partition("sex")["Male"].noisy_mean("age", **pay(ALL))


QUESTIONS: dict[str, Callable[[ProtectedTable, Pay], object]] = {
    "count of some": lambda table, pay: table.where("age <= 2").noisy_count(**pay(ALL)),
    "count of an irregular region": lambda table, pay: table.where("age = 1 OR sex = 'Male'").noisy_count(**pay(ALL)),
    "sum": lambda table, pay: table.noisy_sum("age", **pay(ALL)),
    "sum of some": lambda table, pay: table.where(age=(1, 2)).noisy_sum("age", **pay(ALL)),
    "second moment": lambda table, pay: table.noisy_moment({"age": 2}, **pay(ALL)),
    "mean": lambda table, pay: table.noisy_mean("age", **pay(ALL)),
    "mean of some": lambda table, pay: table.where(sex="Male").noisy_mean("age", **pay(ALL)),
    "marginal": lambda table, pay: table.noisy_marginal("age", "sex", **pay(ALL)),
    "counts of parts": lambda table, pay: table.partition("sex").noisy_count(**pay(ALL)),
    "sums of parts": lambda table, pay: table.partition("sex").noisy_sum("age", **pay(ALL)),
    "means of parts": lambda table, pay: table.partition("sex").noisy_mean("age", **pay(ALL)),
    "each part on its own": each_part,
    "parts within parts": parts_within_parts,
}


def largest_loss(
    ask: Callable[[ProtectedTable, Pay], object], family: str, neighbours: str, max_rows: int, most_records: int
) -> Fraction:
    """Return the largest loss over all small tables and all of their neighbours, in epsilon or, of Gaussian, in rho."""
    tables, left, right = neighbour_pairs(neighbours, max_rows)
    sizes = np.array([len(records) for records in tables])
    is_small = np.minimum(sizes[left], sizes[right]) <= most_records
    used, places = np.unique(np.stack([left[is_small], right[is_small]]), return_inverse=True)
    left, right = places.reshape(2, -1)
    published = [_publish(ask, family, tables[place], neighbours, max_rows) for place in used]
    laws = [part.noise for part in published[0] for _ in part.exact]
    assert all([part.noise for part in other for _ in part.exact] == laws for other in published)
    assert {law.family for law in laws} == {family}
    exact = np.array([[value for part in parts for value in part.exact] for parts in published])
    changes = np.unique(np.abs(exact[left] - exact[right]), axis=0)
    return max(sum((_loss(int(c), law) for c, law in zip(row, laws, strict=True)), Fraction(0)) for row in changes)


def _loss(change: int, law: Noise) -> Fraction:
    return change / law.parameter if law.family == "laplace" else change**2 / (2 * law.parameter)


def _publish(
    ask: Callable[[ProtectedTable, Pay], object],
    family: str,
    records: tuple[int, ...],
    neighbours: str,
    max_rows: int,
) -> list[Published]:
    table, published = recorded_table(cube_of(AGES_AND_SEXES, records, UNITS[max_rows]), neighbours)
    ask(table, PROMISES[family])
    return published


@pytest.mark.parametrize("most_records", [1, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("max_rows", UNITS)
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("family", PROMISES)
@pytest.mark.parametrize("name", QUESTIONS)
def test_no_output_is_likelier_than_the_promise_allows(
    name: str, family: str, neighbours: str, max_rows: int, most_records: int
) -> None:
    loss = largest_loss(QUESTIONS[name], family, neighbours, max_rows, most_records)
    assert loss <= EPSILON
    # Noise for twice the sensitivity, or of twice the variance, would pass as well: no more than what the promise needs
    # may be added.
    assert loss > EPSILON / 2


@pytest.mark.parametrize("family", PROMISES)
def test_parts_without_the_factor_for_exchanged_rows_would_break_the_promise(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(View, "is_part", False)
    assert largest_loss(each_part, family, "replace", 1, 1) > EPSILON


def test_the_statement_of_each_measurement_is_about_its_noise() -> None:
    table, published = recorded_table(cube_of(AGES, (0, 3), PrivacyUnit.row()), "add-remove")
    table.noisy_sum("age", epsilon=EPSILON)
    (measured,) = published
    assert measured.exact == (1 + 4,)
    assert measured.scales == (6 / EPSILON,)
    assert measured.statement.event.to_dict() == {"kind": "laplace", "sensitivity": 6, "scale": "18"}
