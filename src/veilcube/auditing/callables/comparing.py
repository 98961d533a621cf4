"""Compares many runs of a function on neighbouring tables, and says what that shows."""

from collections.abc import Callable, Sequence
from typing import Any

from veilcube.auditing.callables.domain import SmallTables
from veilcube.auditing.callables.noise import LiveNoise
from veilcube.auditing.callables.running import call, takes_noise, unheard
from veilcube.auditing.report import AuditFinding, Witness
from veilcube.auditing.statistics import ERROR, MOST_PAIRS, Claim, Found, Raised, search_and_test, show_epsilon
from veilcube.errors import AuditError, quoted

# Tables on which a function is tried first.
TRIED = 20


def require_outputs(mechanism: Callable[..., Any], tables: SmallTables) -> None:
    """Refuse a function that fails on everything: it would tell no two tables apart."""
    noise = LiveNoise() if takes_noise(mechanism) else None
    with unheard():
        outputs = [call(mechanism, tables.rows_of(pair.right), noise) for pair in tables.some_pairs(TRIED)]
    raised = [output for output in outputs if isinstance(output, Raised)]
    if len(raised) == len(outputs):
        raise AuditError(f"the mechanism raised {raised[0].kind} on every table; correct it: {quoted(raised[0].words)}")


def check_statistics(
    mechanism: Callable[..., Any],
    tables: SmallTables,
    claims: Sequence[Claim],
    trials: int,
    told: Callable[[float], None],
    most_pairs: int = MOST_PAIRS,
) -> AuditFinding:
    """Run a function many times on pairs of neighbours, and test the events that looked best on fresh runs."""
    noise = LiveNoise() if takes_noise(mechanism) else None

    def run(table: tuple[int, ...], times: int) -> list[object]:
        rows = tables.rows_of(table)
        return [call(mechanism, list(rows), noise) for _ in range(times)]

    pairs = [(pair.left, pair.right) for pair in tables.some_pairs(most_pairs)]
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
