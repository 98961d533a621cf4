"""Release a table: plan, charge, measure, publish, answer.

The order is the promise: the plan comes from public facts, the charge is on disk before the first random bit, and what
leaves ``release`` holds nothing private.
"""

import logging
import warnings
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TypeAlias

from veilcube.analyst import Release
from veilcube.curator import (
    WAYS_OUT,
    WORKING_BYTES,
    ChargeDetails,
    Cube,
    GroupedTablesMechanism,
    Ledger,
    LinearMechanism,
    Mechanism,
    Progress,
    Receipt,
    RowList,
    Source,
    Tally,
    mechanism_for,
)
from veilcube.errors import CapacityError, LedgerError, PlanError, TableError
from veilcube.planner import (
    DEFAULT_EPSILON,
    LARGEST_CUBE_COUNTED,
    Plan,
    StrategyLike,
    has_room_for_cube,
    make_plan,
    named_strategy,
)
from veilcube.privacy import (
    Currency,
    EpsilonLike,
    Neighbours,
    PrivacyStatement,
    PrivacyUnit,
    Promise,
    leaves_no_trace,
    paid_for,
    pure_rho,
    show_fraction,
)
from veilcube.query import Workload
from veilcube.record import MeasuredCap, NoisyMeasurement, ReleaseRecord, require_savable
from veilcube.schema import Schema
from veilcube.session.accounts import open_account, paying
from veilcube.session.beyond_cap import CapWish
from veilcube.session.remembering import details_of, note_of_table, read_details
from veilcube.system import read_kind, read_progress, read_text, require_memory

_log = logging.getLogger(__name__)

Counted: TypeAlias = Cube | Tally | RowList


@leaves_no_trace
def release(
    source: object,
    epsilon: EpsilonLike | None = None,
    strategy: StrategyLike | None = None,
    neighbours: str | None = None,
    ledger: Ledger | str | None = None,
    dataset: str | None = None,
    *,
    schema: Schema | str | Path | None = None,
    plan: Plan | None = None,
    workload: Workload | None = None,
    person: str | None = None,
    max_rows: int | None = None,
    table: str | None = None,
    analyst: str | None = None,
    progress: Progress | None = None,
    delta: EpsilonLike | None = None,
    rho: EpsilonLike | None = None,
    note: str | None = None,
    output: str | Path | None = None,
    measure_cap: EpsilonLike | None = None,
    most_rows: int | None = None,
    max_groups: Mapping[str, int] | None = None,
) -> Release:
    """Turn a cube, or a table with its schema, into a release, once, for the price of ``epsilon``.

    A ``delta`` beside epsilon, or a ``rho`` in its place, allows Gaussian noise, as in ``plan``.

    A table is counted first (``schema``, ``person``, ``max_rows``, ``max_groups`` and ``table`` as in ``count``). With
    a ``ledger`` the price is charged to ``dataset`` before any noise is drawn; without one, keeping account is left to
    the caller, and the privacy statement says so. Without a ready ``plan``, which brings its own, epsilon is 1, the
    strategy "auto" and neighbours are "add-remove".

    ``note`` and ``output``, the file that the release will go to, are kept in the ledger beside the charge. A dataset
    whose table has changed since its last charge is released with a warning, which only the caller sees.

    ``measure_cap`` is an epsilon in addition, with a person unit, that measures how many rows lie beyond ``max_rows``;
    nobody is taken to have more than ``most_rows`` rows, ten times ``max_rows`` unless said.
    """
    account, wish = open_account(ledger, dataset), CapWish.read(measure_cap, most_rows)
    _check_wishes(plan, strategy, neighbours, analyst)
    told = read_details(account is not None, note, output)
    if plan is not None:
        _refuse_a_waste_of_rho(account, plan)
    read_progress(progress, TableError)
    if plan is not None and not isinstance(source, Cube):
        schema = plan.schema if schema is None else schema
        if person is None and max_rows is None:
            person, max_rows = plan.unit.column, plan.unit.max_rows if plan.unit.kind == "person" else None
    named = Source.read(source, schema, person, max_rows, table, max_groups)
    wish.bins(named.unit)
    promise = promise_for(account if plan is None else None, epsilon, delta, rho)
    wishes = (plan, promise, strategy, neighbours, workload)
    chosen = _plan_for(named.schema, named.unit, *wishes, has_cube=named.is_cube)
    _log.info("reading the table under the schema %s of %s", named.schema.fingerprint(), ", ".join(named.schema.names))
    takes_tables = not named.is_cube and chosen.strategy.counts_tables
    counted: Counted = _count_for(chosen, named, progress) if takes_tables else named.count(progress)
    return _measure(counted, chosen, account, analyst, told, wish)


def _check_wishes(plan: object, strategy: object, neighbours: object, analyst: object) -> None:
    if plan is not None:
        read_kind(plan, Plan, "plan is what veilcube.plan returns", PlanError)
    if strategy is not None:
        named_strategy(strategy)  # type: ignore[arg-type]
    if neighbours is not None:
        Neighbours.read(neighbours)  # type: ignore[arg-type]
    if analyst is not None:
        read_text(analyst, "the analyst", LedgerError)


def _measure(
    counted: Counted,
    chosen: Plan,
    account: tuple[Ledger, str] | None,
    analyst: str | None,
    told: ChargeDetails,
    wish: CapWish,
) -> Release:
    """Charge for a plan, and only then carry it out."""
    mechanism = LinearMechanism() if isinstance(counted, Tally) else mechanism_for(chosen)
    of_cap = wish.of_cap(counted, chosen)
    statement = of_cap.beside(mechanism.claim(chosen))
    # What could not be carried out, kept or saved must not be paid for.
    _require_possible(chosen, mechanism, statement)
    _warn_of_delta(counted, chosen, statement)
    _log.info("counted; planned: %r", chosen)
    purpose = f"release of {', '.join(chosen.schema.names)} by {chosen.strategy.name}"
    seen = note_of_table(account, counted)
    with paying(account, statement, purpose, analyst, details_of(told, chosen)) as receipt:
        seen()
        _log.info("paid for: %s", receipt.statement)
        try:
            measurements, cap = paid_for(
                lambda: of_cap.carry_out(
                    receipt, mechanism.claim(chosen), lambda paid: _carry_out(counted, chosen, paid)
                )
            )
        except MemoryError:
            raise CapacityError(_out_of_memory(account)) from None
        _log.info("drew the noise; exact counts are let go")
        return Release(_record(chosen, receipt.statement, measurements, cap))


def require_releasable(chosen: Plan) -> None:
    """Refuse a plan that no release could carry out here, as a release of it would: nothing is read for that."""
    chosen.require_memory()
    mechanism = mechanism_for(chosen)
    _require_possible(chosen, mechanism, mechanism.claim(chosen))


def _require_possible(chosen: Plan, mechanism: Mechanism, statement: PrivacyStatement) -> None:
    """Refuse, before anything is charged, what could not be measured or saved."""
    require_memory(8 * mechanism.words_to_measure(chosen), "drawing the noise", WAYS_OUT, beside=WORKING_BYTES)
    chosen.require_range()
    require_savable(chosen.schema, statement, chosen.parts, chosen.to_dict())


def _warn_of_delta(counted: Counted, chosen: Plan, statement: PrivacyStatement) -> None:
    """Warn of a delta above 1/rows, where the number of rows is public: rows are exchanged, none comes or goes."""
    is_public = chosen.neighbours is Neighbours.REPLACE and chosen.unit.kind == "row"
    if not is_public or chosen.promise.is_in_rho or statement.delta * round(counted.exact_rows) <= 1:
        return
    delta, rows = show_fraction(statement.delta), f"{round(counted.exact_rows):,}"
    warnings.warn(
        f"a delta of {delta} is above 1/{rows}, one over the number of rows: with that probability what is told of a "
        f"row may go beyond epsilon, so that among {rows} rows some may well be told; choose one far below 1/{rows}",
        UserWarning,
        stacklevel=4,
    )


def _carry_out(counted: Counted, chosen: Plan, receipt: Receipt) -> tuple[NoisyMeasurement, ...]:
    if isinstance(counted, Tally):
        return LinearMechanism().measure(counted, chosen, receipt)
    if isinstance(counted, RowList):
        return GroupedTablesMechanism().measure(counted, chosen, receipt)
    return mechanism_for(chosen).measure(counted, chosen, receipt)


def _out_of_memory(account: tuple[Ledger, str] | None) -> str:
    """Say what is left of a release that other programs took the memory from: memory was there when it was asked."""
    charged = "" if account is None else f"; the budget of '{account[1]}' is charged all the same"
    return f"memory ran out while the noise was drawn, so there is no release{charged}; free some before the next one"


def _count_for(chosen: Plan, named: Source, progress: Progress | None) -> Counted:
    """Count what a plan measures: its tables, or the cube, or where that would be too large the rows."""
    if chosen.design.tables is not None:
        return named.count_tables(chosen.design.tables, progress)
    is_small = chosen.schema.cells <= LARGEST_CUBE_COUNTED and has_room_for_cube(chosen.schema)
    return named.count(progress) if is_small else named.list_rows(progress)


def _record(
    chosen: Plan, statement: PrivacyStatement, measurements: tuple[NoisyMeasurement, ...], cap: MeasuredCap | None
) -> ReleaseRecord:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    made_with = f"veilcube {version('veilcube')}"
    return ReleaseRecord(chosen.schema, statement, measurements, chosen.to_dict(), now, made_with, cap)


def _plan_for(
    schema: Schema,
    unit: PrivacyUnit,
    ready: Plan | None,
    promise: Promise | None,
    strategy: StrategyLike | None,
    neighbours: str | None,
    workload: Workload | None,
    *,
    has_cube: bool,
) -> Plan:
    if ready is None:
        relation, wanted = Neighbours.read(neighbours or "add-remove"), promise or Promise.read(DEFAULT_EPSILON)
        return make_plan(schema, wanted, strategy or "auto", workload, relation, unit, has_cube=has_cube)
    same_price = promise is None or promise == ready.promise
    wish = None if strategy is None else named_strategy(strategy)
    same_strategy = wish is None or wish == ready.strategy or strategy == ready.strategy.name
    if not same_price or not same_strategy or neighbours not in (None, str(ready.neighbours)):
        raise PlanError(
            "the plan has another epsilon, delta, rho, strategy or neighbours than are given beside it; leave those out"
        )
    if workload is not None and workload.digest() != ready.workload.digest():
        raise PlanError("the plan was made for other questions than the workload beside it; leave the workload out")
    if ready.schema != schema:
        raise PlanError("the plan is for another schema than the table's; plan with the table's schema")
    if ready.unit.without_groups != unit.without_groups:
        raise PlanError(
            f"the plan protects {ready.unit.words}, but the table is counted for {unit.words}; plan for that"
        )
    return ready if ready.unit == unit else replace(ready, unit=unit)


def promise_for(
    account: tuple[Ledger, str] | None,
    epsilon: EpsilonLike | None,
    delta: EpsilonLike | None,
    rho: EpsilonLike | None,
) -> Promise | None:
    """Return what was asked for; None if nothing was. A budget in rho pays the price of rho whatever the noise."""
    promise = _named_beside(epsilon, delta, rho)
    if promise is None or account is None or account[0].currency(account[1]) is Currency.EPSILON:
        return promise
    return promise.priced_in_rho()


def _refuse_a_waste_of_rho(account: tuple[Ledger, str] | None, ready: Plan) -> None:
    """Refuse a plan whose pair is kept by Laplace noise of the whole epsilon where its rho would cost far less."""
    promise = ready.promise
    if account is None or promise.rho is None or promise.is_in_rho or ready.family != "laplace":
        return
    if account[0].currency(account[1]) is Currency.RHO:
        raise PlanError(
            f"the plan keeps its epsilon and delta by Laplace noise, which costs a budget in rho "
            f"{show_fraction(pure_rho(promise.epsilon))} where they cost {show_fraction(promise.rho)}; plan with rho, "
            "or give epsilon and delta to release and no plan"
        )


def _named_beside(epsilon: EpsilonLike | None, delta: EpsilonLike | None, rho: EpsilonLike | None) -> Promise | None:
    return None if epsilon is None and delta is None and rho is None else Promise.read(epsilon, delta, rho)
