"""Protect a table: the curator's rows and budget and, beside a refusal, what the analyst's side knows from history."""

from pathlib import Path

from veilcube.analyst import KernelPCA
from veilcube.curator import Desk, Ledger, PrivateRows, ProtectedTable, Source
from veilcube.errors import LedgerError, TableError, VeilcubeError
from veilcube.privacy import EpsilonLike, Neighbours, PrivacyUnit, leaves_no_trace
from veilcube.query import Answers
from veilcube.record import Moment, Question, linear_queries
from veilcube.schema import Schema
from veilcube.system import read_text

# Beyond this, fitting would take longer than a refusal may; who wants more fits the history with open eyes.
MOST_ANSWERS_TO_LEARN_FROM = 1500


@leaves_no_trace
def protect(
    source: object,
    schema: Schema | str | Path | None = None,
    ledger: Ledger | str | Path | None = None,
    dataset: str | None = None,
    epsilon: EpsilonLike | None = None,
    *,
    person: str | None = None,
    max_rows: int | None = None,
    neighbours: str = "add-remove",
    analyst: str | None = None,
    analyst_epsilon: EpsilonLike | None = None,
    table: str | None = None,
    rho: EpsilonLike | None = None,
    analyst_rho: EpsilonLike | None = None,
) -> ProtectedTable:
    """Put a table behind a budget: questions are answered with noise, charged to ``dataset``, and remembered.

    ``epsilon`` is the dataset's whole budget, set now unless the ledger has it (then it may be left out); ``rho`` in
    its place makes a budget that pays for Gaussian noise too. ``analyst`` is who asks, ``analyst_epsilon`` or
    ``analyst_rho`` what they may spend of the budget. ``source``, ``person``, ``max_rows`` and
    ``table`` are as in ``count``; a cube brings its schema and unit along. The table is read, checked and kept here, so
    that a row which does not fit the schema is refused to the curator, and never to who asks.
    """
    if ledger is None or dataset is None:
        raise LedgerError(
            "a protected table needs a ledger and the name of its dataset, so that every answer is charged"
        )
    has_share = analyst_epsilon is not None or analyst_rho is not None
    if analyst is None and has_share:
        raise LedgerError("analyst_epsilon or analyst_rho is the share of an analyst; name the analyst too")
    if analyst is not None:
        read_text(analyst, "the analyst", LedgerError)
    rows = read_rows(source, schema, person=person, max_rows=max_rows, table=table)
    relation = Neighbours.read(neighbours)
    book = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
    if epsilon is None and rho is None:
        book.budget(dataset)
    else:
        book.ensure(dataset, epsilon, rho=rho, neighbours=str(relation), person=rows.unit.column)
    if analyst is not None and has_share:
        book.ensure_allowed(dataset, analyst, analyst_epsilon, rho=analyst_rho)
    return put_behind(rows, book, dataset, str(relation), analyst)


@leaves_no_trace
def read_rows(
    source: object,
    schema: Schema | str | Path | None = None,
    *,
    person: str | None = None,
    max_rows: int | None = None,
    table: str | None = None,
) -> PrivateRows:
    """Read a table whole and keep its rows, for whoever puts them behind a budget. PRIVATE."""
    named = Source.read(source, schema, person, max_rows, table)
    if named.unit.max_groups:
        raise TableError("a protected table has no caps on groups; give the table itself, or a cube without max_groups")
    return PrivateRows(named.data, named.schema, named.unit, named.table)


def put_behind(
    rows: PrivateRows,
    ledger: Ledger,
    dataset: str,
    neighbours: str,
    analyst: str | None = None,
    see: str = "see 'veilcube history answer'",
) -> ProtectedTable:
    """Put rows that were read behind a budget that is there; ``see`` is where a refusal sends people to."""

    def instead(question: Question) -> str | None:
        return _from_history(ledger, dataset, question, rows.unit, see)

    return ProtectedTable.whole(Desk(rows, ledger, dataset, Neighbours.read(neighbours), analyst, instead=instead))


def _from_history(ledger: Ledger, dataset: str, question: Question, unit: PrivacyUnit, see: str) -> str | None:
    """Tell what stored answers, which are public, say about a question that the budget refuses; None if nothing."""
    try:
        moment = Moment.from_data(question.schema, question.data)
        found = None if moment is None else learn_from_history(ledger, dataset, moment, unit)
    except VeilcubeError:
        return None
    if moment is None or found is None:
        return None
    if moment.by:
        return f"past answers tell its {len(found):,} values at no cost: {see}"
    return f"past answers tell it at no cost as {found[0]} with 95% confidence: {see}"


def learn_from_history(ledger: Ledger, dataset: str, moment: Moment, unit: PrivacyUnit) -> Answers | None:
    """Estimate a count, sum or moment from stored answers alone, for nothing; None if they are too many."""
    if moment.is_mean or moment.size > MOST_ANSWERS_TO_LEARN_FROM:
        return None
    past = ledger.history(dataset).under(moment.schema, unit.max_rows)
    if past.measurements > MOST_ANSWERS_TO_LEARN_FROM:
        return None
    return KernelPCA().fit(past.answered).answer(linear_queries(moment))
