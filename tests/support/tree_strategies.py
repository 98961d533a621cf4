"""A tree strategy with nothing to choose: every attribute a balanced tree of one fan-out, equal weights."""

from dataclasses import dataclass
from functools import lru_cache

from numpy.typing import ArrayLike

from support.seeded import SeededWords
from veilcube.analyst import Release
from veilcube.curator.cube import Cube
from veilcube.curator.ledger import Receipt
from veilcube.curator.mechanisms import LinearMechanism
from veilcube.curator.sampling import discrete_laplace
from veilcube.operators import ProductOperator
from veilcube.operators.tree.axis import tree_axis
from veilcube.planner import MeasuredOnce, plan
from veilcube.record import ReleaseRecord
from veilcube.schema import Schema


@dataclass(frozen=True)
class PlainTree(MeasuredOnce):
    branching: int = 4

    @property
    def name(self) -> str:
        return "tree"

    def operator(self, schema: Schema) -> ProductOperator:
        return _operator(schema.shape, schema.names, self.branching)

    def to_dict(self) -> dict[str, object]:
        return {"name": self.name, "branching": self.branching}


@lru_cache(maxsize=4)
def _operator(shape: tuple[int, ...], names: tuple[str, ...], branching: int) -> ProductOperator:
    """Build the trees once for the many releases of one schema that a coverage test draws."""
    return ProductOperator(tuple(tree_axis(size, branching) for size in shape), names)


def tree_release(schema: Schema, counts: ArrayLike, branching: int, epsilon: object = 1, seed: int = 0) -> Release:
    """Return a release of given counts by plain trees, with seeded noise."""
    chosen = plan(schema, epsilon, PlainTree(branching))
    claim = LinearMechanism().claim(chosen)
    source = SeededWords(seed)
    measured = LinearMechanism().measure(
        Cube(schema, counts),
        chosen,
        Receipt.uncharged(claim),
        lambda scale, shape: discrete_laplace(scale, shape, source=source),
    )
    return Release(ReleaseRecord(schema, claim, measured, chosen.to_dict(), "2026-01-01T00:00:00+00:00", "test"))
