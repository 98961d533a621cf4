"""What is measured about a cap: exact numbers by brute force, and the claim on every small table and its neighbours.

What is proved in docs/proofs/cap.md is tested here.
"""

from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import veilcube as vc
from veilcube.curator.counting import count
from veilcube.curator.ledger import Receipt
from veilcube.curator.mechanisms import ExcessMechanism, PersonsMechanism
from veilcube.curator.persons import PersonRows
from veilcube.errors import LedgerError, PrivacyError
from veilcube.privacy import Neighbours, PrivacyUnit, epsilon_of
from veilcube.record import ExcessBins, MeasuredCap, MeasuredPersons, RowBins

EPSILON = Fraction(1, 3)
MOST = 9  # rows of a person in the tables that are enumerated, beyond the last bin too
SCHEMA = vc.Schema([vc.Ordinal("x", 0, 3)])


def of(people: tuple[int, ...]) -> PersonRows:
    persons = PersonRows()
    persons.add(pa.array([0, *people], pa.int64()))
    return persons


def table(people: tuple[int, ...]) -> pa.Table:
    who = np.repeat(np.arange(len(people)), people)
    return pa.table({"who": who, "x": np.arange(who.size) % 4})


def no_noise(scale: Fraction, shape: tuple[int, ...]) -> np.ndarray:
    return np.zeros(shape, dtype=np.int64)


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("bins", [RowBins(2), RowBins(6), ExcessBins(1, 2), ExcessBins(2, 7), ExcessBins(3, 8)])
def test_the_claim_is_the_dearest_change_between_all_small_tables(
    bins: RowBins | ExcessBins, neighbours: Neighbours
) -> None:
    """Laplace noise of scales s tells tables apart by exp(Σ|change|/s) at most, and by no less (identity.md)."""
    unit = PrivacyUnit.whole_person("who")
    if isinstance(bins, RowBins):
        persons_mechanism = PersonsMechanism(bins, EPSILON, neighbours, unit)
        claim = persons_mechanism.claim
        found = persons_mechanism.measure(of((1,)), Receipt.uncharged(claim), no_noise)
        scales = [found.noise.scale] * len(bins.first)
    else:
        excess_mechanism = ExcessMechanism(bins, EPSILON, neighbours, unit)
        claim = excess_mechanism.claim
        measured = excess_mechanism.measure(of((1,)), Receipt.uncharged(claim), no_noise)
        scales = [noise.scale for noise in measured.noises]
    dearest = Fraction(0)
    for size in range(3):
        for others in combinations_with_replacement(range(1, MOST + 1), size):
            base = of(others).measured_by(bins)
            with_one = [of((*others, rows)).measured_by(bins) for rows in range(1, MOST + 1)]
            pairs = (
                [(base, one) for one in with_one]
                if neighbours is Neighbours.ADD_REMOVE
                else [(one, other) for one in with_one for other in with_one]
            )
            for one, other in pairs:
                changes = zip(np.abs(one - other).tolist(), scales, strict=True)
                dearest = max(dearest, sum((change / scale for change, scale in changes), Fraction(0)))
    assert dearest <= epsilon_of(claim.event) <= EPSILON == claim.epsilon
    if isinstance(bins, RowBins) or neighbours is Neighbours.ADD_REMOVE:
        assert dearest == EPSILON  # reached, not only bounded
    else:
        assert dearest > EPSILON * 3 / 4


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.integers(1, 400), max_size=30), st.integers(1, 50), st.integers(1, 300))
def test_bins_count_what_brute_force_counts(people: list[int], max_rows: int, above: int) -> None:
    persons, rows = of(tuple(people)), RowBins(max_rows + 1)
    histogram = [
        sum(low <= n and (n <= high or high == rows.largest) for n in people)
        for low, high in zip(rows.first, rows.last, strict=True)
    ]
    assert persons.measured_by(rows).tolist() == histogram
    assert sum(histogram) == len(people)
    bins = ExcessBins(max_rows, max_rows + above)
    starts = (0, *bins.ends[:-1])
    excess = [max(n - max_rows, 0) for n in people]
    expected = [sum(e for e in excess if low < e <= high) for low, high in zip(starts, bins.ends, strict=True)]
    assert persons.measured_by(bins).tolist() == [*expected, sum(e > above for e in excess)]


@pytest.mark.parametrize("max_rows", [1, 2, 5])
def test_every_way_of_counting_tells_how_many_rows_persons_have(max_rows: int) -> None:
    people = (1, 1, 3, 7, 2, 7)
    cube = count(table(people), SCHEMA, person="who", max_rows=max_rows)
    assert cube.exact_persons is not None
    held = dict(zip((bins := RowBins(9)).first, cube.exact_persons.measured_by(bins).tolist(), strict=True))
    assert {rows: many for rows, many in held.items() if many} == dict(Counter(people))
    assert vc.Cube(SCHEMA, [1, 1, 1, 1]).exact_persons is None


def test_what_is_held_of_persons_is_not_shown() -> None:
    persons = of((3, 4))
    assert repr(persons) == "PersonRows(exact values not shown)"
    with pytest.raises(PrivacyError, match="cannot be copied"):
        persons.__reduce__()


def test_a_receipt_pays_for_its_own_measurement_once() -> None:
    unit = PrivacyUnit.whole_person("who")
    mechanism = PersonsMechanism(RowBins(5), EPSILON, Neighbours.ADD_REMOVE, unit)
    dearer = PersonsMechanism(RowBins(5), EPSILON * 2, Neighbours.ADD_REMOVE, unit)
    receipt = Receipt.uncharged(mechanism.claim)
    with pytest.raises(PrivacyError, match="another measurement"):
        dearer.measure(of((1,)), receipt)
    assert isinstance(mechanism.measure(of((1,)), receipt), MeasuredPersons)
    with pytest.raises(LedgerError, match="used up"):
        mechanism.measure(of((1,)), receipt)
    excess = ExcessMechanism(ExcessBins(2, 9), EPSILON, Neighbours.REPLACE, unit)
    assert isinstance(excess.measure(of((1, 5)), Receipt.uncharged(excess.claim)), MeasuredCap)


@pytest.mark.parametrize(
    ("max_rows", "most_rows"), [(5, 5), (5, 4), (0, 4), (5, 10**7), (5, 2.5), (True, 4), (5, None), (5, "9")]
)
def test_bounds_that_cannot_be_are_refused(max_rows: object, most_rows: object) -> None:
    with pytest.raises(PrivacyError):
        ExcessBins(max_rows, most_rows)  # type: ignore[arg-type]
