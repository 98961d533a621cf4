"""Measure how many rows persons have, before a cap is chosen: charged and noisy like everything else."""

from fractions import Fraction
from pathlib import Path

from veilcube.analyst import MeasuredRows
from veilcube.curator import Ledger, PersonsMechanism, Progress, Source
from veilcube.errors import LedgerError, PrivacyError, TableError
from veilcube.privacy import EpsilonLike, Neighbours, PrivacyUnit, leaves_no_trace, paid_for, read_epsilon
from veilcube.query import read_confidence
from veilcube.record import LARGEST_CAP_EPSILON, RowBins
from veilcube.schema import Schema
from veilcube.session.accounts import open_account, paying
from veilcube.system import read_progress, read_text

LARGEST_TOLD_APART = 100


@leaves_no_trace
def measure_cap(
    source: object,
    schema: Schema | str | Path,
    person: str,
    epsilon: EpsilonLike,
    *,
    ledger: Ledger | str | None = None,
    dataset: str | None = None,
    largest: int = LARGEST_TOLD_APART,
    neighbours: str = "add-remove",
    confidence: float = 0.95,
    table: str | None = None,
    analyst: str | None = None,
    progress: Progress | None = None,
) -> MeasuredRows:
    """Measure how many persons have how many rows, and what each choice of ``max_rows`` would keep of them.

    The price is ``epsilon``, charged to ``dataset`` of the ``ledger`` before any noise is drawn. Persons with
    ``largest`` rows and more are not told apart; which number that is must not come from the table. ``source``,
    ``schema``, ``person`` and ``table`` are as in ``count``.
    """
    read_progress(progress, TableError)
    read_confidence(confidence)
    if analyst is not None:
        read_text(analyst, "the analyst", LedgerError)
    account, relation = open_account(ledger, dataset), Neighbours.read(neighbours)
    price, bins = read_cap_epsilon(epsilon), RowBins(largest)
    if not isinstance(person, str):
        raise PrivacyError("person names the column that tells whose row it is; a cap is about the rows of a person")
    unit = PrivacyUnit.whole_person(person)
    mechanism = PersonsMechanism(bins, price, relation, unit)
    claim = mechanism.claim
    # One row of each person is enough to pass on how many she has.
    persons = Source.read(source, schema, person, 1, table).count_persons(progress)
    with paying(account, claim, f"rows per person by {person}", analyst) as receipt:
        measured = paid_for(lambda: mechanism.measure(persons, receipt))
    return MeasuredRows(measured, confidence)


def read_cap_epsilon(epsilon: EpsilonLike) -> Fraction:
    """Return the epsilon for what is measured about a cap."""
    price = read_epsilon(epsilon)
    if price > LARGEST_CAP_EPSILON:
        raise PrivacyError(f"epsilon for measuring a cap is at most {LARGEST_CAP_EPSILON:,}; 0.05 is usual")
    return price
