"""``audit``: looks for anything by which two neighbouring tables can be told apart better than was promised."""

from collections.abc import Callable, Sequence
from typing import Any

from veilcube.auditing.callables import (
    SmallTables,
    check_exactly,
    check_replay,
    check_statistics,
    require_outputs,
    takes_noise,
    unheard,
)
from veilcube.auditing.ours import OURS, findings_of_ours, units_of_rows
from veilcube.auditing.report import AuditFinding, AuditReport
from veilcube.auditing.statistics import Claim
from veilcube.errors import AuditError, quoted
from veilcube.privacy import EpsilonLike, Neighbours, Promise, epsilon_for
from veilcube.system import did_you_mean, read_progress, read_whole, show

# Deltas at which a promise in rho is looked at by statistics, which see no smaller ones.
DELTAS_OF_RHO = ("1/10", "1/100")
MOST_RECORDS, MOST_TRIALS, MOST_UNIT_ROWS = 12, 10**8, 4
Progress = Callable[[float | None], None]


def audit(
    mechanism: str | Callable[..., Any],
    domain: Sequence[object] | None = None,
    epsilon: EpsilonLike | None = None,
    delta: EpsilonLike | None = None,
    neighbours: str = "add-remove",
    records: int = 4,
    trials: int = 100_000,
    *,
    rho: EpsilonLike | None = None,
    max_rows: int = 1,
    progress: Progress | None = None,
) -> AuditReport:
    """Look for tables by which a mechanism breaks its promise.

    ``mechanism`` is a function of a list of records, each one unit, from ``domain``. If it has an argument ``noise``,
    it is handed exact noise that can be replayed and listed. ``records`` is how many a table has at most, ``trials``
    how often it runs on each of the two tables that are tested in the end; more runs than these choose them.

    A name in place of a function audits one of veilcube's own mechanisms on tables of six cells, whose units have at
    most ``max_rows`` rows each: persons, if that is more than 1.
    """
    promise = _promise(epsilon, delta, rho)
    relation = Neighbours.read(neighbours)
    most = read_whole(records, "records", 1, MOST_RECORDS, AuditError)
    runs = read_whole(trials, "trials", 100, MOST_TRIALS, AuditError)
    told = read_progress(progress, AuditError) or (lambda share: None)
    rows = read_whole(max_rows, "max_rows", 1, MOST_UNIT_ROWS, AuditError)
    if isinstance(mechanism, str):
        return _audit_ours(mechanism, domain, promise, relation, most, runs, rows, told)
    if not callable(mechanism):
        raise AuditError(f"the mechanism must be a function of a list of records, not {show(mechanism)}")
    if rows != 1:
        raise AuditError("max_rows is for mechanisms of veilcube; a record of a function of your own is one unit")
    tables = SmallTables.of(_domain(domain), most, relation)
    findings = _findings(mechanism, tables, promise, runs, told)
    name = getattr(mechanism, "__name__", type(mechanism).__name__)
    return AuditReport(name, promise.words, str(relation), tables.words, findings)


def _audit_ours(
    name: str,
    domain: Sequence[object] | None,
    promise: Promise,
    relation: Neighbours,
    records: int,
    trials: int,
    max_rows: int,
    told: Progress,
) -> AuditReport:
    if name not in OURS:
        hint = did_you_mean(name, OURS)
        raise AuditError(f"veilcube has no mechanism '{quoted(name)}'; {hint}name one of {', '.join(OURS)}")
    if domain is not None:
        raise AuditError("mechanisms of veilcube have a domain of their own, of six cells; leave domain out")
    tables = SmallTables.of(units_of_rows(max_rows), records, relation)
    findings = findings_of_ours(name, tables, promise, claims_of(promise), trials, max_rows, told)
    return AuditReport(name, promise.words, str(relation), tables.words, findings)


def _promise(epsilon: EpsilonLike | None, delta: EpsilonLike | None, rho: EpsilonLike | None) -> Promise:
    if rho is None and epsilon is None:
        epsilon = 1
    return Promise.read(epsilon, None if str(delta) in ("0", "0.0") else delta, rho)


def _domain(domain: Sequence[object] | None) -> Sequence[object]:
    if domain is None:
        raise AuditError(
            "a function needs the records that its tables are made of: domain=[...], on the command line --domain or a "
            "list DOMAIN in the file"
        )
    if not isinstance(domain, Sequence) or isinstance(domain, str) or not domain:
        raise AuditError(f"domain must be a list of at least one record, not {show(domain)}")
    return list(domain)


def claims_of(promise: Promise) -> list[Claim]:
    """Return what a promise says of events."""
    if promise.rho is not None and promise.is_in_rho:
        return [Claim(float(epsilon_for(promise.rho, delta)), _share(delta)) for delta in DELTAS_OF_RHO]
    return [Claim(float(promise.epsilon), float(promise.delta))]


def _share(text: str) -> float:
    one, _, other = text.partition("/")
    return int(one) / int(other)


def _findings(
    mechanism: Callable[..., Any], tables: SmallTables, promise: Promise, trials: int, told: Progress
) -> tuple[AuditFinding, ...]:
    found, claims = [], claims_of(promise)
    require_outputs(mechanism, tables)
    with unheard():
        if takes_noise(mechanism):
            found.append(check_exactly(mechanism, tables, claims))
            told(0.1)
    if takes_noise(mechanism):
        found.append(check_replay(mechanism, tables, promise))
        told(0.2)
    else:
        why = "The function has no argument noise, so that its noise can be neither listed nor frozen."
        found.append(AuditFinding("exact and replay", None, why))
    with unheard():
        found.append(check_statistics(mechanism, tables, claims, trials, lambda share: told(0.2 + 0.8 * share)))
    return tuple(found)
