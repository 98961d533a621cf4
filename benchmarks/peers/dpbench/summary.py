"""Many results in few numbers: geometric means, worst cases and coverage of each arm, and which bars are reached."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from statistics import fmean

from benchmarks.peers.dpbench.arms import DEFAULT, IDENTITY, LEAST_SQUARES
from benchmarks.peers.dpbench.measure import Result
from benchmarks.peers.dpbench.published import (
    BARS,
    COVERAGE_ON_AVERAGE,
    COVERAGE_ON_EACH,
    MOST_TIMES_LINEAR,
    PEER_EPSILON,
)


@dataclass(frozen=True)
class Summary:
    """One arm on one task at one epsilon, over all arrays and workloads; ``peers`` says how many had a peer."""

    task: str
    epsilon: float
    arm: str
    results: int
    peers: int
    to_peer: float | None
    to_peer_stderr: float | None
    worst_to_peer: float | None
    to_matched: float
    worst_to_matched: float
    coverage: float
    least_coverage: float
    release_seconds: float
    answer_seconds: float


@dataclass(frozen=True)
class Verdict:
    """A figure that must be reached; ``where`` names the worst case, ``stderr`` its noise where known."""

    what: str
    value: float
    stderr: float | None
    bar: float
    at_most: bool
    where: str = ""

    @property
    def is_reached(self) -> bool:
        """Whether the figure itself meets the bar; its noise is no excuse."""
        return self.value <= self.bar if self.at_most else self.value >= self.bar


def geometric_mean(ratios: Iterable[float]) -> float:
    """Return exp of the mean logarithm; a ratio of 0, which only exact answers give, makes it 0."""
    found = list(ratios)
    return exp(fmean(map(log, found))) if min(found) > 0 else 0.0


def summarise(results: Sequence[Result]) -> list[Summary]:
    """Return one summary for each task, epsilon and arm, in the order of the results."""
    groups: dict[tuple[str, float, str], list[Result]] = {}
    for result in results:
        groups.setdefault((result.task, result.epsilon, result.arm), []).append(result)
    return [_summarise_group(*key, group) for key, group in groups.items()]


def _summarise_group(task: str, epsilon: float, arm: str, group: Sequence[Result]) -> Summary:
    to_peer = [result.to_peer for result in group if result.to_peer is not None]
    return Summary(
        task=task,
        epsilon=epsilon,
        arm=arm,
        results=len(group),
        peers=len(to_peer),
        to_peer=geometric_mean(to_peer) if to_peer else None,
        to_peer_stderr=_stderr_of_ratio([result for result in group if result.to_peer is not None]),
        worst_to_peer=max(to_peer, default=None),
        to_matched=geometric_mean(result.to_matched for result in group),
        worst_to_matched=max(result.to_matched for result in group),
        coverage=fmean(result.coverage for result in group),
        least_coverage=min(result.coverage for result in group),
        release_seconds=fmean(result.release_seconds for result in group),
        answer_seconds=fmean(result.fit_seconds + result.answer_seconds for result in group),
    )


def _stderr_of_ratio(group: Sequence[Result]) -> float | None:
    """Return the standard error of the geometric mean of the ratios to peers: the mean times its relative error."""
    ratios = [result.to_peer for result in group if result.to_peer is not None]
    relative = _stderr_of_mean(
        group, [None if result.rmse_stderr is None else result.rmse_stderr / result.rmse for result in group]
    )
    return None if relative is None else relative * geometric_mean(ratios)


def _stderr_of_mean(group: Sequence[Result], errors: Sequence[float | None]) -> float | None:
    """Return the standard error of a mean; workloads that share their releases are taken as fully dependent."""
    by_release: dict[tuple[str, str], float] = {}
    for result, error in zip(group, errors, strict=True):
        if error is None:
            return None
        key = (result.task, result.array)
        by_release[key] = by_release.get(key, 0.0) + error
    return sqrt(sum(error**2 for error in by_release.values())) / len(group) if group else None


def judge(results: Sequence[Result]) -> list[Verdict]:
    """Return every figure of the default arm that has a bar."""
    own = [result for result in results if result.arm == DEFAULT.name]
    verdicts = [verdict for summary in summarise(own) for verdict in _against_peers(summary, own)]
    for epsilon in dict.fromkeys(result.epsilon for result in own):
        verdicts += _coverage([result for result in own if result.epsilon == epsilon], epsilon)
    return verdicts + _against_linear(results)


def _against_peers(summary: Summary, own: Sequence[Result]) -> list[Verdict]:
    bar = BARS.get(summary.task)
    if bar is None or summary.epsilon != PEER_EPSILON or summary.to_peer is None:
        return []
    rated = [r for r in own if (r.task, r.epsilon) == (summary.task, summary.epsilon) and r.to_peer is not None]
    worst = max(rated, key=lambda result: result.to_peer or 0.0)
    assert worst.to_peer is not None
    stderr = None if worst.rmse_stderr is None else worst.rmse_stderr / worst.rmse * worst.to_peer
    name = f"{summary.task}, epsilon {summary.epsilon:g}: ratio to best peer"
    return [
        Verdict(f"{name}, geometric mean", summary.to_peer, summary.to_peer_stderr, bar.mean, True),
        Verdict(f"{name}, worst", worst.to_peer, stderr, bar.worst, True, _place(worst)),
    ]


def _coverage(own: Sequence[Result], epsilon: float) -> list[Verdict]:
    least = min(own, key=lambda result: result.coverage)
    name = f"epsilon {epsilon:g}: coverage of the 95% interval"
    mean = fmean(result.coverage for result in own)
    stderr = _stderr_of_mean(own, [result.coverage_stderr for result in own])
    return [
        Verdict(f"{name}, average", mean, stderr, COVERAGE_ON_AVERAGE, False),
        Verdict(f"{name}, least", least.coverage, least.coverage_stderr, COVERAGE_ON_EACH, False, _place(least)),
    ]


def _against_linear(results: Sequence[Result]) -> list[Verdict]:
    """Compare with the exact errors of identity and least squares: they have no noise of their own."""
    cube = [result for result in results if result.task == "4d"]
    verdicts = []
    for own in (result for result in cube if result.arm == DEFAULT.name):
        linear = [
            other.expected
            for other in cube
            if other.arm in (IDENTITY.name, LEAST_SQUARES.name)
            and (other.array, other.workload, other.epsilon) == (own.array, own.workload, own.epsilon)
            and other.expected is not None
        ]
        if len(linear) == 2:
            best = min(linear)
            stderr = None if own.rmse_stderr is None else own.rmse_stderr / best
            name = f"4d, epsilon {own.epsilon:g}: ratio to the better of identity and least squares"
            verdicts.append(Verdict(name, own.rmse / best, stderr, MOST_TIMES_LINEAR, True, _place(own)))
    return verdicts


def _place(result: Result) -> str:
    return f"{result.array}, {result.workload} ({result.task})"
