"""``audit``: looks for anything by which two neighbouring tables can be told apart better than was promised."""

from collections.abc import Callable, Sequence
from typing import Any

from veilcube.auditing.callables import LiveNoise, SmallTables, call, check_exactly, check_replay, takes_noise, unheard
from veilcube.auditing.report import AuditFinding, AuditReport, Witness
from veilcube.auditing.statistics import ERROR, MOST_PAIRS, Claim, Found, Raised, search_and_test, show_epsilon
from veilcube.errors import AuditError, quoted
from veilcube.privacy import EpsilonLike, Neighbours, Promise, epsilon_for
from veilcube.system import read_progress, read_whole, show

# Deltas at which a promise in rho is looked at by statistics, which see no smaller ones.
DELTAS_OF_RHO = ("1/10", "1/100")
MOST_RECORDS, MOST_TRIALS = 12, 10**8
# Tables on which a function is tried first.
TRIED = 20
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
    progress: Progress | None = None,
) -> AuditReport:
    """Look for tables by which a mechanism breaks its promise.

    ``mechanism`` is a function of a list of records, each one unit, from ``domain``. If it has an argument ``noise``,
    it is handed exact noise that can be replayed and listed. ``records`` is how many a table has at most, ``trials``
    how often it runs on each of the two tables that are tested in the end; more runs than these choose them.
    """
    promise = _promise(epsilon, delta, rho)
    relation = Neighbours.read(neighbours)
    most = read_whole(records, "records", 1, MOST_RECORDS, AuditError)
    runs = read_whole(trials, "trials", 100, MOST_TRIALS, AuditError)
    told = read_progress(progress, AuditError) or (lambda share: None)
    if not callable(mechanism):
        raise AuditError(f"the mechanism must be a function of a list of records, not {show(mechanism)}")
    tables = SmallTables.of(_domain(domain), most, relation)
    findings = _findings(mechanism, tables, promise, runs, told)
    name = getattr(mechanism, "__name__", type(mechanism).__name__)
    return AuditReport(name, promise.words, str(relation), tables.words, findings)


def _promise(epsilon: EpsilonLike | None, delta: EpsilonLike | None, rho: EpsilonLike | None) -> Promise:
    if rho is None and epsilon is None:
        epsilon = 1
    return Promise.read(epsilon, None if str(delta) in ("0", "0.0") else delta, rho)


def _domain(domain: Sequence[object] | None) -> Sequence[object]:
    if domain is None:
        raise AuditError("a function needs the records that its tables are made of: domain=[...]")
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
    _require_outputs(mechanism, tables)
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
        found.append(_statistics(mechanism, tables, claims, trials, lambda share: told(0.2 + 0.8 * share)))
    return tuple(found)


def _require_outputs(mechanism: Callable[..., Any], tables: SmallTables) -> None:
    """Refuse a function that fails on everything: it would tell no two tables apart."""
    noise = LiveNoise() if takes_noise(mechanism) else None
    with unheard():
        outputs = [call(mechanism, tables.rows_of(pair.right), noise) for pair in tables.some_pairs(TRIED)]
    raised = [output for output in outputs if isinstance(output, Raised)]
    if len(raised) == len(outputs):
        raise AuditError(f"the mechanism raised {raised[0].kind} on every table; correct it: {quoted(raised[0].words)}")


def _statistics(
    mechanism: Callable[..., Any],
    tables: SmallTables,
    claims: Sequence[Claim],
    trials: int,
    told: Callable[[float], None],
) -> AuditFinding:
    noise = LiveNoise() if takes_noise(mechanism) else None

    def run(table: tuple[int, ...], times: int) -> list[object]:
        rows = tables.rows_of(table)
        return [call(mechanism, list(rows), noise) for _ in range(times)]

    pairs = [(pair.left, pair.right) for pair in tables.some_pairs(MOST_PAIRS)]
    results = search_and_test(run, pairs, claims, trials, told)
    return statistics_finding(results, tables, len(pairs))


def statistics_finding(results: Sequence[Found], tables: SmallTables, pairs: int) -> AuditFinding:
    """Return the finding of a statistical test: the claim that fared worst."""
    if not results:
        return AuditFinding("statistics", None, "No event was found that happens on one table and not on another.", 0.0)
    worst = max(results, key=lambda one: (one.is_broken, one.epsilon - one.claim.epsilon))
    at = f" at delta {worst.claim.delta:g}" if worst.claim.delta else ""
    told, promised, power = (show_epsilon(one) for one in (worst.epsilon, worst.claim.epsilon, worst.power))
    words = (
        f"At {1 - ERROR:.1%} confidence epsilon is at least {told}{at}, by {worst.runs:,} runs on {pairs} pairs of "
        f"tables; {promised} is promised, and a noisy count that spends {power} would be found out in 19 of 20 audits."
    )
    event = f"{worst.event}: {worst.hits[0]:,} against {worst.hits[1]:,} of {worst.trials:,} runs"
    return AuditFinding(
        "statistics",
        not worst.is_broken,
        words,
        worst.epsilon,
        Witness(tuple(tables.rows_of(worst.left)), tuple(tables.rows_of(worst.right)), event),
        {"runs": worst.runs, "trials": worst.trials, "confidence": 1 - ERROR, "finds from epsilon": worst.power},
    )
