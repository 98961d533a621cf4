"""Distributive queries on every small table and every neighbour: no part changes by more than its noise is made for.

What is proved in docs/proofs/protected-tables.md and docs/proofs/rank.md is tested here.
"""

from fractions import Fraction

import numpy as np
import pytest

import veilcube as vc
from conformance.small_tables import cube_of, neighbour_pairs
from support.protected import recorded_table
from veilcube.privacy import GaussianEvent, LaplaceEvent, PrivacyUnit
from veilcube.query import distributive
from veilcube.query.cell_numbers import cell_numbers

EPSILON = Fraction(1, 3)
UNITS = {1: PrivacyUnit.row(), 2: PrivacyUnit.person("id", 2)}
SEX = vc.Nominal("sex", ["Female", "Male"])
SCHEMAS = {
    "whole numbers": vc.Schema([vc.Ordinal("x", 1, 3), SEX]),
    "bins": vc.Schema([vc.Ordinal("x", edges=[0, 10_000, 20_000, 50_000]), SEX]),
    "halves": vc.Schema([vc.Ordinal("x", edges=[0, 1, 2, 5]), SEX]),
}
# The bounds of each sum reach the largest number, so that noise for half of the sensitivity would be too little.
HIGHEST = {"whole numbers": 3, "bins": 35_000, "halves": 3}
CUTS = [(), ("sex",), ("x",), ("x", "sex")]


@pytest.fixture(autouse=True)
def _few_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ready-made queries are tried on made-up tables elsewhere; here that would take most of the time."""
    monkeypatch.setattr(distributive, "_TRIALS", 2)


def published(
    schema: vc.Schema, records: tuple[int, ...], unit: PrivacyUnit, neighbours: str, kind: str, by: tuple[str, ...]
) -> tuple[np.ndarray, Fraction]:
    """Return the exact values of all parts, and the scale of the noise of each."""
    query = vc.DistributiveQuery.count() if kind == "count" else vc.DistributiveQuery.sum(0, int(kind))
    table, found = recorded_table(cube_of(schema, records, unit), neighbours)
    table.distributive(query, "x", by=by, epsilon=EPSILON)
    event = found[0].statement.event
    assert isinstance(event, LaplaceEvent)
    return np.array(found[0].exact), event.scale


def small_pairs(neighbours: str, max_rows: int, most: int = 1) -> tuple[list[tuple[int, ...]], np.ndarray]:
    tables, left, right = neighbour_pairs(neighbours, max_rows)
    sizes = np.array([len(records) for records in tables])
    is_small = np.minimum(sizes[left], sizes[right]) <= most
    used, places = np.unique(np.stack([left[is_small], right[is_small]]), return_inverse=True)
    return [tables[place] for place in used], places.reshape(2, -1)


@pytest.mark.parametrize("by", CUTS)
@pytest.mark.parametrize("kind", ["count", "sum"])
@pytest.mark.parametrize("max_rows", UNITS)
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("numbers", SCHEMAS)
def test_no_output_of_noisy_parts_is_likelier_than_the_promise_allows(
    numbers: str, neighbours: str, max_rows: int, kind: str, by: tuple[str, ...]
) -> None:
    tables, (left, right) = small_pairs(neighbours, max_rows)
    asked = "count" if kind == "count" else str(HIGHEST[numbers])
    parts = [published(SCHEMAS[numbers], records, UNITS[max_rows], neighbours, asked, by) for records in tables]
    (scale,) = {scale for _, scale in parts}
    exact = np.array([values for values, _ in parts])
    ratio = int(np.abs(exact[left] - exact[right]).sum(axis=1).max()) / scale
    assert ratio <= EPSILON
    if by and not (numbers == "halves" and kind == "sum"):
        # No more noise than the promise needs, where exchanged rows can change two parts. The middle of the last bin
        # of "halves" lies above the bound by a half.
        assert ratio > EPSILON / 2


@pytest.mark.parametrize("by", [("sex",), ("x", "sex")])
@pytest.mark.parametrize("max_rows", UNITS)
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_squared_changes_of_noisy_parts_stay_within_a_rho(neighbours: str, max_rows: int, by: tuple[str, ...]) -> None:
    tables, (left, right) = small_pairs(neighbours, max_rows, most=max_rows)
    found = []
    for records in tables:
        table, measured = recorded_table(cube_of(SCHEMAS["whole numbers"], records, UNITS[max_rows]), neighbours)
        table.distributive(vc.DistributiveQuery.sum(0, 3), "x", by=by, rho=EPSILON)
        found += measured
    (event,) = {one.statement.event for one in found}
    assert isinstance(event, GaussianEvent)
    exact = np.array([one.exact for one in found])
    squares = int(((exact[left] - exact[right]) ** 2).sum(axis=1).max())
    assert squares / (2 * event.sigma_squared) <= EPSILON
    # The declared sensitivity allows an exchanged row to change one part twice; a sum changes two parts once each.
    assert squares == event.sensitivity_squared / (1 if neighbours == "add-remove" else 2)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("numbers", SCHEMAS)
@pytest.mark.parametrize("kind", ["max", "min"])
def test_no_score_of_a_value_that_can_be_drawn_changes_by_more_than_one_a_row(
    kind: str, numbers: str, neighbours: str
) -> None:
    schema, tables_and_pairs = SCHEMAS[numbers], small_pairs(neighbours, 1, most=3)
    tables, (left, right) = tables_and_pairs
    cells = cell_numbers(schema.attributes[0])
    query = getattr(vc.DistributiveQuery, kind)(range(10**9)).fitted(cells)
    counts = [np.bincount(np.array(records, dtype=np.int64), minlength=6).reshape(schema.shape) for records in tables]
    scores = np.array([[query.scores_of(cells.numbers, part) for part in table.T] for table in counts])
    changes = np.abs(scores[left] - scores[right]).max(axis=2).sum(axis=1)
    assert changes.max() == (1 if neighbours == "add-remove" else 2)
