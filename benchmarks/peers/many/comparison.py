"""Figures beside figures: ours and the best peer's, or one strategy's and the best of the others."""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.peers.dpbench.summary import geometric_mean
from benchmarks.peers.many.measure import Result
from benchmarks.peers.many.published import Peer, Peers


@dataclass(frozen=True)
class AgainstPeers:
    """A result, the best peer of each kind that has one, and the ratios."""

    result: Result
    peers: dict[str, Peer]
    ratios: dict[str, float]
    ratio: float | None


@dataclass(frozen=True)
class AgainstOthers:
    """How a strategy did on one table beside others; figures are geometric means over the kinds that both answer.

    ``ratio`` is to the other strategy that is best over all kinds, ``ratio_by_kind`` to the best other of each kind,
    which no single release reaches.
    """

    table: str
    epsilon: float
    delta: float | None
    strategy: str
    best: str | None
    ratio: float | None
    ratio_by_kind: float | None


def against_peers(result: Result, peers: Peers) -> AgainstPeers:
    """Return a result beside the best peers at the same promise."""
    found = {}
    for kind in result.kinds:
        peer = peers.best(result.table, kind, result.epsilon, result.delta)
        if peer is not None:
            found[kind] = peer
    ratios = {kind: _over(result.kinds[kind].error, peer.error) for kind, peer in found.items()}
    return AgainstPeers(result, found, ratios, mean_ratio(list(ratios.values())))


def against_others(results: Sequence[Result]) -> AgainstOthers:
    """Compare the first of some results on one table with the best of the rest; refused ones are left out."""
    own, *others = results
    able = [other for other in others if own.kinds.keys() & other.kinds.keys()]
    if not able:
        return AgainstOthers(own.table, own.epsilon, own.delta, own.strategy, None, None, None)
    to_each = {
        other.strategy: geometric_mean(
            _over(own.kinds[kind].error, figures.error) for kind, figures in other.kinds.items() if kind in own.kinds
        )
        for other in able
    }
    # The best of the others is the one that is hardest to beat.
    best = max(to_each, key=lambda strategy: to_each[strategy])
    least = {
        kind: min(other.kinds[kind].error for other in able if kind in other.kinds)
        for kind in own.kinds
        if any(kind in other.kinds for other in able)
    }
    by_kind = geometric_mean(_over(own.kinds[kind].error, error) for kind, error in least.items())
    return AgainstOthers(own.table, own.epsilon, own.delta, own.strategy, best, to_each[best], by_kind)


def mean_ratio(ratios: Sequence[float | None]) -> float | None:
    """Return the geometric mean of the ratios that there are."""
    known = [ratio for ratio in ratios if ratio is not None]
    return geometric_mean(known) if known else None


def _over(own: float, other: float) -> float:
    """Return the ratio of two errors; both may be 0 where answers are exact."""
    if other > 0:
        return own / other
    return 1.0 if own == 0 else float("inf")
