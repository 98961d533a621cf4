"""All of veilcube's mechanisms by name, and the audit of each of them."""

from collections.abc import Callable, Sequence
from itertools import combinations_with_replacement

from veilcube.auditing.callables import (
    SmallTables,
    check_exactly,
    check_replay,
    check_statistics,
    require_outputs,
    unheard,
)
from veilcube.auditing.ours.asked import ASKED, ask
from veilcube.auditing.ours.claims import check_claims
from veilcube.auditing.ours.courses import check_courses
from veilcube.auditing.ours.strategies import CELLS, LARGE, MEASURED, StrategyMechanism
from veilcube.auditing.report import AuditFinding
from veilcube.auditing.statistics import Claim
from veilcube.privacy import Promise

OURS = (*MEASURED, *ASKED)
# Pairs of tables that statistics begin with: the exact check has gone through all of them.
COMPARED = 60
Told = Callable[[float], None]


def units_of_rows(max_rows: int) -> list[tuple[int, ...]]:
    """Return all units with at most so many rows, each row by the number of its cell."""
    return [rows for size in range(1, max_rows + 1) for rows in combinations_with_replacement(range(CELLS), size)]


def findings_of_ours(
    name: str,
    tables: SmallTables,
    promise: Promise,
    claims: Sequence[Claim],
    trials: int,
    max_rows: int,
    told: Told,
) -> tuple[AuditFinding, ...]:
    """Audit one of our mechanisms in every way that its kind allows."""
    found: list[AuditFinding] = []
    if name in MEASURED:
        mechanism = StrategyMechanism.named(name, promise, tables.neighbours, max_rows)
        large = StrategyMechanism.named(name, promise, tables.neighbours, max_rows, LARGE)
        found.append(check_claims([part.operator for part in large.publish([(0,), (1,), (7,)])]))
        found += check_courses(mechanism, tables, promise)
        drawn: Callable[..., object] = mechanism
    else:
        asked = ask(name, promise, tables.neighbours, max_rows)
        if asked.by_noise is not None:
            require_outputs(asked.by_noise, tables)
            with unheard():
                found.append(check_exactly(asked.by_noise, tables, claims))
            found.append(check_replay(asked.by_noise, tables, promise))
        drawn = asked.drawn
    require_outputs(drawn, tables)
    told(0.2)
    with unheard():
        found.append(check_statistics(drawn, tables, claims, trials, lambda share: told(0.2 + 0.8 * share), COMPARED))
    return tuple(found)
