"""Where both sides meet, and the only place where they do: plan, charge, measure, publish, answer.

The order is the promise: the plan comes from public facts, the charge is on disk before the first random bit, and what
leaves ``release`` holds nothing private.
"""

from datetime import UTC, datetime
from importlib.metadata import version
from math import prod
from pathlib import Path

from veilcube.analyst import Release
from veilcube.curator.capacity import require_memory, require_range
from veilcube.curator.counting import Progress, count
from veilcube.curator.cube import Cube
from veilcube.curator.ledger import Ledger, Receipt
from veilcube.curator.mechanisms import mechanism_for
from veilcube.curator.noise import discrete_laplace
from veilcube.errors import LedgerError, PlanError, TableError
from veilcube.planner import Plan, Strategy
from veilcube.planner import plan as make_plan
from veilcube.privacy import EpsilonLike, PrivacyStatement, read_epsilon
from veilcube.query import Workload
from veilcube.release import NoisyMeasurement, ReleaseRecord, require_savable
from veilcube.schema import Schema


def release(
    source: object,
    epsilon: EpsilonLike | None = None,
    strategy: Strategy | str | None = None,
    neighbours: str | None = None,
    ledger: Ledger | str | None = None,
    dataset: str | None = None,
    *,
    schema: Schema | str | Path | None = None,
    plan: Plan | None = None,
    workload: Workload | None = None,
    person: str | None = None,
    max_rows: int | None = None,
    analyst: str | None = None,
    progress: Progress | None = None,
) -> Release:
    """Turn a cube, or a table with its schema, into a release, once, for the price of ``epsilon``.

    A table is counted first (``schema``, ``person`` and ``max_rows`` as in ``count``). With a ``ledger`` the price is
    charged to ``dataset`` before any noise is drawn; without one, keeping account is left to the caller, and the
    privacy statement says so. Without a ready ``plan``, which brings its own, epsilon is 1, the strategy "auto" and
    neighbours are "add-remove".
    """
    account = _open_account(ledger, dataset)
    cube = source if isinstance(source, Cube) else _count(source, schema, person, max_rows, progress)
    if isinstance(source, Cube) and (schema, person, max_rows) != (None, None, None):
        raise TableError("a cube brings its own schema and privacy unit; leave out schema, person and max_rows")
    chosen = _plan_for(cube, plan, epsilon, strategy, neighbours, workload)
    mechanism = mechanism_for(chosen)
    statement = mechanism.claim(chosen)
    parts = chosen.parts
    rows = sum(prod(operator.measurement_shape) for operator, _ in parts)
    require_memory(8 * (cube.schema.cells + 2 * rows), "drawing the noise")
    # What could not be kept or saved must not be paid for.
    require_range(cube, chosen.operator.sensitivity("add-remove"))
    require_savable(cube.schema, statement, parts, chosen.to_dict())
    receipt = _charge(
        account, statement, f"release of {', '.join(cube.schema.names)} by {chosen.strategy.name}", analyst
    )
    measurements = mechanism.measure(cube, chosen, receipt, discrete_laplace)
    return Release(_record(cube.schema, chosen, receipt.statement, measurements))


def _record(
    schema: Schema, chosen: Plan, statement: PrivacyStatement, measurements: tuple[NoisyMeasurement, ...]
) -> ReleaseRecord:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return ReleaseRecord(schema, statement, measurements, chosen.to_dict(), now, f"veilcube {version('veilcube')}")


def _open_account(ledger: Ledger | str | None, dataset: str | None) -> tuple[Ledger, str] | None:
    if ledger is None and dataset is None:
        return None
    if ledger is None or dataset is None:
        raise LedgerError("ledger and dataset go together: name the ledger and the dataset in it that is charged")
    return (ledger if isinstance(ledger, Ledger) else Ledger(ledger)), dataset


def _count(
    source: object,
    schema: Schema | str | Path | None,
    person: str | None,
    max_rows: int | None,
    progress: Progress | None,
) -> Cube:
    if schema is None:
        raise TableError("a table needs its schema: pass schema=veilcube.Schema.from_toml('table.toml')")
    return count(source, schema, person, max_rows, progress=progress)


def _plan_for(
    cube: Cube,
    ready: Plan | None,
    epsilon: EpsilonLike | None,
    strategy: Strategy | str | None,
    neighbours: str | None,
    workload: Workload | None,
) -> Plan:
    if ready is None:
        person, max_rows = (cube.unit.column, cube.unit.max_rows) if cube.unit.kind == "person" else (None, None)
        return make_plan(
            cube.schema,
            1.0 if epsilon is None else epsilon,
            strategy or "auto",
            workload,
            neighbours or "add-remove",
            person=person,
            max_rows=max_rows,
        )
    same_price = epsilon is None or read_epsilon(epsilon) == ready.epsilon
    same_strategy = strategy in (None, "auto", ready.strategy, ready.strategy.name)
    if not same_price or not same_strategy or neighbours not in (None, str(ready.neighbours)):
        raise PlanError(
            "the plan has another epsilon, strategy or neighbours than are given beside it; leave those out"
        )
    if ready.schema != cube.schema:
        raise PlanError("the plan is for another schema than the cube; plan with the cube's schema")
    if ready.unit != cube.unit:
        raise PlanError(f"the plan protects {ready.unit.words}, but the cube was counted for {cube.unit.words}")
    return ready


def _charge(
    account: tuple[Ledger, str] | None, statement: PrivacyStatement, purpose: str, analyst: str | None
) -> Receipt:
    if account is None:
        return Receipt.uncharged(statement)
    ledger, dataset = account
    return ledger.charge(dataset, statement, purpose=purpose, analyst=analyst)
