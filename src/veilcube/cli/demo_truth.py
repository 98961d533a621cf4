"""DEMO ONLY: exact counts beside the estimates.

This is the one place in veilcube that shows what is true, and it may do so only because the Adult table is public. No
other code may import it.
"""

from dataclasses import dataclass

import numpy as np

from veilcube.analyst import Release
from veilcube.curator.cube import Cube
from veilcube.query import Answers, read_sql


@dataclass(frozen=True)
class Comparison:
    """One query of the demo: what the release says, and the true count."""

    query: str
    value: float
    low: float
    high: float
    true_demo_only: int

    @property
    def holds(self) -> bool:
        """Whether the interval holds the true count."""
        return self.low <= self.true_demo_only <= self.high

    def to_dict(self) -> dict[str, object]:
        """Return plain data for JSON."""
        estimate = {"query": self.query, "value": self.value, "low": self.low, "high": self.high}
        return estimate | {"true_demo_only": self.true_demo_only, "interval_holds_it": self.holds}


def compare(release: Release, cube: Cube, query: str) -> Comparison:
    """Ask the release, and count the same in the public table's cube."""
    answer = release.count(query)
    if isinstance(answer, Answers):
        raise TypeError("a query of the demo counts once, so it must not have GROUP BY")
    boxes = read_sql(cube.schema, query).region.boxes
    true = sum(int(cube.exact_counts[np.ix_(*map(box.mask, range(len(box.shape))))].sum()) for box in boxes)
    return Comparison(query, answer.value, answer.low, answer.high, true)
