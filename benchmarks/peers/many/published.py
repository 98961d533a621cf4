"""The errors of other programs on the same questions, as peers.csv tells them."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isclose
from pathlib import Path

from benchmarks.peers.dpbench.arrays import InputError
from benchmarks.peers.many.coded import metric_of

# A pure promise is the stronger one; no peer gives it, so it is compared with those that have this delta.
DELTA_FOR_PURE = 1e-9
# Counts of single attributes with all of the budget: best at those, and no answer to anything else.
BASELINES = ("Independent",)


@dataclass(frozen=True)
class Peer:
    """The best figure of others, and whose it is."""

    algorithm: str
    error: float


@dataclass(frozen=True)
class Peers:
    """All figures of a peers.csv; none if there is no such file."""

    rows: tuple[Mapping[str, str], ...] = field(default=(), repr=False)

    @classmethod
    def read(cls, path: Path) -> "Peers":
        """Read a file of one figure a line."""
        if not path.is_file():
            return cls()
        with path.open(newline="", encoding="utf-8") as file:
            rows = tuple(csv.DictReader(file))
        try:
            for row in rows:
                row["dataset"], row["algo"], row["workload"], row["metric"]
                float(row["epsilon"]), float(row["delta"]), float(row["value"])
        except (KeyError, TypeError, ValueError) as problem:
            raise InputError(
                f"{path} has a line that is no figure: {problem!r}; see --help for the format"
            ) from problem
        return cls(rows)

    def best(self, table: str, kind: str, epsilon: float, delta: float | None) -> Peer | None:
        """Return the smallest figure for the same table, questions and promise; None if nobody was measured."""
        delta = DELTA_FOR_PURE if delta is None else delta
        found = [
            Peer(row["algo"], float(row["value"]))
            for row in self.rows
            if (row["dataset"], row["workload"], row["metric"]) == (table, kind, metric_of(kind))
            and isclose(float(row["epsilon"]), epsilon)
            and isclose(float(row["delta"]), delta)
            and row["algo"] not in BASELINES
        ]
        return min(found, key=lambda peer: peer.error, default=None)
