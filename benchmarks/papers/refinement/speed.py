"""Seconds and memory of a large cube with many facts, each strategy in a process of its own."""

import json
import subprocess
import sys
from dataclasses import dataclass

from benchmarks.papers.privelet.verdict import Verdict

PART = "speed"
SECONDS_BAR, BYTES_BAR = 30.0, 2e9


@dataclass(frozen=True)
class Large:
    """Seconds of refining, of the processors while refining, and of a thousand answers; the peak of memory in bytes."""

    strategy: str
    shape: tuple[int, ...]
    facts: int
    kind: str
    refining: float
    processor: float
    answering: float
    peak: float


def run_large(strategy: str, shape: tuple[int, ...], facts: int, kind: str = "equal") -> Large:
    """Run one strategy, with known counts (``equal``) or with as many inequalities (``bounded``)."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.papers.refinement.large",
        strategy,
        ",".join(map(str, shape)),
        str(facts),
        kind,
    ]
    finished = subprocess.run(command, capture_output=True, text=True, check=True)
    return Large(strategy, shape, facts, kind, **json.loads(finished.stdout))


def judge_large(found: list[Large]) -> list[Verdict]:
    """Return seconds and memory beside their bars."""
    verdicts = []
    for one in found:
        kind = "facts" if one.kind == "equal" else "inequalities"
        what = f"{one.strategy}, {' x '.join(map(str, one.shape))} cells, {one.facts:,} {kind}"
        note = f"{one.processor:.1f} s of processor; 1,000 answers in {one.answering:.1f} s"
        verdicts += [
            Verdict(PART, f"{what}: refined in", one.refining, "s", high=SECONDS_BAR, note=note),
            Verdict(PART, f"{what}: peak of memory", one.peak / 1e9, "GB", high=BYTES_BAR / 1e9),
        ]
    return verdicts
